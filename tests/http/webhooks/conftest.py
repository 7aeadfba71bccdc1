"""Webhooks over HTTP before a real endpoint on this machine that answers as a test says."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from tests.waiting import until

from recado.storage.webhooks import events


class Endpoint:
    """A local endpoint that answers `status` as long as its `gate` is open."""

    def __init__(self) -> None:
        self.status = 200
        self.url = ""
        self.received: list[Any] = []
        self.gate = asyncio.Event()
        self.gate.set()


@pytest.fixture
async def endpoint() -> AsyncIterator[Endpoint]:
    made = Endpoint()

    async def handle(request: web.Request) -> web.Response:
        made.received.append(await request.json())
        await made.gate.wait()
        return web.Response(status=made.status, text="+5511987654321")

    application = web.Application()
    application.router.add_post("/hook", handle)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/hook"
    yield made
    await runner.cleanup()


async def subscribe(api: Any, endpoint: Endpoint, *names: str, **fields: Any) -> str:
    answer = await api.post("/webhooks", {"url": endpoint.url, "events": list(names) or ["*"], **fields})
    assert answer.status == 201, answer.body
    return f"/webhooks/{answer.body['id']}"


async def emit(api: Any, event: str = "wallet.depleted", **data: Any) -> None:
    async with api.database.transaction() as connection:
        keys = await events.emit(
            connection,
            api.ids,
            organization_id=api.organizations[0].organization.id,
            env="test",
            type=event,
            data=data,
            keys=api.key_ring,
        )
    api.webhooks.queued(keys)


async def listed(api: Any, path: str, wanted: str, count: int = 1) -> list[Any]:
    """The deliveries of that status, once there are so many."""

    async def enough() -> list[Any]:
        items = (await api.get(f"{path}/deliveries?status={wanted}")).body["items"]
        return list(items) if len(items) >= count else []

    return await until(enough, f"{count} deliveries are {wanted}")
