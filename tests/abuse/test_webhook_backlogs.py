"""Backlogs of webhooks: the endpoints of one organization come back, and all that was held for them is delivered."""

import asyncio
import itertools
import secrets
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.abuse.conftest import NEIGHBOUR, Resident
from tests.abuse.neighbour import WAITED
from tests.program import Api, Service, free_port
from tests.waiting import until

from recado.domain.core.timestamps import format_timestamp

pytestmark = [pytest.mark.alone, pytest.mark.long]

SUBSCRIPTIONS = 20  # as many as an environment may have
EVENTS = 4_000  # of each of them
EVENT = "contact.created"
TOLD_WITHIN = 1.0  # seconds from a neighbour's call to the delivery of its event
PATIENCE = 30.0  # seconds


@asynccontextmanager
async def customers_endpoint() -> AsyncIterator[str]:
    """The URL of an endpoint that answers at once, in a process of its own."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bench.endpoint", "--port", str(port))
    try:

        async def listens() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return False
            writer.transport.abort()
            return True

        await until(listens, "the endpoint listens")
        yield f"http://127.0.0.1:{port}/hook"
    finally:
        process.terminate()
        await process.wait()


async def hold(api: Api, url: str) -> list[str]:
    """Subscriptions that are paused, each with a backlog that a replay made; their paths."""
    hook = {"url": url, "events": [EVENT]}
    paths = [f"/webhooks/{(await api.call('POST', '/webhooks', hook))['id']}" for _ in range(SUBSCRIPTIONS)]
    for path in paths:
        await api.call("PATCH", path, {"status": "paused"})
    phones = itertools.count(secrets.randbelow(10**7))
    contacts = [{"phone": f"+55119{next(phones):08}", "name": "Ana Souza"} for _ in range(EVENTS)]
    made = await api.call("POST", "/contacts/import", {"contacts": contacts, "options": {"emitEvents": True}})

    async def through() -> bool:
        return bool((await api.call("GET", f"/contacts/imports/{made['id']}"))["status"] == "completed")

    await until(through, "the import is through", every=0.1)
    now = datetime.now(UTC)
    lately = {"from": format_timestamp(now - timedelta(hours=1)), "to": format_timestamp(now + timedelta(hours=1))}
    for path in paths:
        assert (await api.call("POST", f"{path}/replay", lately))["queued"] == EVENTS
    return paths


class Told:
    """The neighbour's own subscription, at an endpoint in this process: how long its single deliveries take."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._came = asyncio.Event()
        self._phones = itertools.count(secrets.randbelow(10**7))

    @asynccontextmanager
    async def subscribed(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        try:
            hook = {"url": f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/", "events": [EVENT]}
            await self._api.call("POST", "/webhooks", hook)
            yield
        finally:
            server.close()

    async def once(self) -> float:
        """Seconds from a call to the delivery of its event."""
        loop = asyncio.get_running_loop()
        self._came.clear()
        began = loop.time()
        async with asyncio.timeout(PATIENCE):
            await self._api.call("POST", "/contacts", {"phone": f"+55118{next(self._phones):08}", "name": "Rui"})
            await self._came.wait()
        return loop.time() - began

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))
            self._came.set()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            await writer.drain()
        writer.close()


async def test_backlogs_of_webhooks_keep_nobody_waiting(tmp_path: Path, seconds: float) -> None:
    async with AsyncExitStack() as stack:
        service = Service(tmp_path, SSRF_ALLOW_CIDRS="127.0.0.0/8")
        stack.push_async_callback(service.wipe)
        await service.start()
        resident = await Resident.settle(service)
        unlimited = await asyncio.to_thread(service.key, "test", org=NEIGHBOUR)  # one call follows the other at once
        told = Told(await stack.enter_async_context(Api(service.url, unlimited)))
        await stack.enter_async_context(told.subscribed())
        api = await stack.enter_async_context(Api(service.url, await asyncio.to_thread(service.key, "test")))
        paths = await hold(api, await stack.enter_async_context(customers_endpoint()))
        neighbour = await stack.enter_async_context(resident.measured())
        loop = asyncio.get_running_loop()
        waits = []

        async with neighbour.held():
            end = loop.time() + seconds
            for path in paths:
                await api.call("PATCH", path, {"status": "active"})
            while loop.time() < end:
                waits.append(await told.once())
        delivered = [await api.call("GET", f"{path}/deliveries", status="delivered", limit=1) for path in paths]
        assert all(page["items"] for page in delivered)
        print(f"{len(waits)} deliveries of the neighbour, the slowest after {max(waits) * 1000:.0f} ms")
        assert max(waits) <= TOLD_WITHIN, f"{WAITED}: {max(waits):.2f} s for a delivery"
