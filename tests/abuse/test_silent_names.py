"""Names whose server never answers: the look-ups of one organization hang, those of another do not wait behind them."""

import asyncio
import itertools
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.conftest import Resident
from tests.program import Api, Service
from tests.required import only_where

pytestmark = [pytest.mark.alone, pytest.mark.long]

AT_ONCE = 64
NAME_SERVER = "127.0.0.153"
SILENT, ANSWERED = "silent.example", "hooks.example"
PATIENCE = 3.0  # seconds; a look-up that hangs is given up after 5
PACE = 0.25  # seconds from one to the next, within the limit of writes
ADDRESS, NO_NAME = 1, b"\xc0\x0c"  # of DNS: the type A, a pointer to the question's name


class NameServer(asyncio.DatagramProtocol):
    """Says 127.0.0.1 of every name, and nothing at all of those under `SILENT`."""

    def __init__(self) -> None:
        self.unanswered = 0
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport

    def connection_lost(self, _: Exception | None) -> None:
        self.closed.set()

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        end = data.index(0, 12) + 5  # of the question: the name, its type, its class
        question, asked = data[12:end], int.from_bytes(data[end - 4 : end - 2], "big")
        if SILENT.split(".")[0].encode() in question:
            self.unanswered += 1
            return
        found = [NO_NAME + b"\0\x01\0\x01" + bytes(4) + b"\0\x04" + bytes([127, 0, 0, 1])] if asked == ADDRESS else []
        head = data[:2] + b"\x81\x80\0\x01" + len(found).to_bytes(2, "big") + bytes(4)
        self._transport.sendto(head + question + b"".join(found), addr)


@pytest.fixture
async def name_server(tmp_path: Path) -> AsyncIterator[NameServer]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(NameServer, local_addr=(NAME_SERVER, 53))
    yield server
    transport.close()
    await server.closed.wait()


class Elsewhere(Service):
    """The service on a machine with another name server: in a view of its own of /etc/resolv.conf."""

    def __init__(self, folder: Path, **settings: str) -> None:
        super().__init__(folder, **settings)
        servers = folder / "resolv.conf"
        servers.write_text(f"nameserver {NAME_SERVER}\n")
        mounted = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
        self.starts_with = ("unshare", "--mount", "sh", "-c", mounted, str(servers), sys.executable, "-m", "recado")


def may_mount() -> bool:
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode == 0


@only_where(may_mount(), "only root may give a process a name server of its own")
async def test_names_that_stay_silent_keep_nobody_waiting(
    tmp_path: Path, name_server: NameServer, seconds: float
) -> None:
    async with AsyncExitStack() as stack:
        service = Elsewhere(tmp_path, SSRF_ALLOW_CIDRS="127.0.0.0/8")
        stack.push_async_callback(service.wipe)
        await service.start()
        resident = await Resident.settle(service)
        neighbour = await stack.enter_async_context(resident.measured())
        token = (await asyncio.to_thread(service.command, "keys", "create", "--scopes", "all", "--json"))["token"]
        attacker = Attacker("127.0.0.1", service.port, token)
        names = itertools.count()

        async def hang() -> int:
            hook = {"url": f"http://h{next(names)}.{SILENT}/", "events": ["message.sent"]}
            return await attacker.ask("POST", "/webhooks", hook)

        async with Api(service.url, resident.token) as other, neighbour.held():
            attack = asyncio.create_task(keep_on(seconds, AT_ONCE, hang))
            while not attack.done():
                async with asyncio.timeout(PATIENCE):
                    hook = {"url": f"http://h{next(names)}.{ANSWERED}/", "events": ["message.sent"]}
                    made = await other.call("POST", "/webhooks", hook)
                await other.call("DELETE", f"/webhooks/{made['id']}")
                await asyncio.wait({attack}, timeout=PACE)
            answers = await attack
        assert name_server.unanswered > 0
        assert set(answers) <= {422, 429, 503}
