"""A stop in the midst of deliveries: what is answered within a moment is not made once more."""

import asyncio

from aiohttp import web
from tests.actors.webhooks.conftest import Place, Receiver, make_webhooks


async def test_what_is_answered_while_the_service_stops_is_settled(place: Place, receiver: Receiver) -> None:
    answer = asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        await answer.wait()
        return web.Response(status=200 if len(receiver.received) % 2 else 500)

    receiver.answer = wait
    subscription = await place.subscribe(receiver.url)
    await place.emit(count=10)
    await receiver.wait_for(10)
    stopping = asyncio.create_task(place.root.stop())
    await asyncio.wait([stopping], timeout=0)
    answer.set()
    await stopping

    assert place.webhooks.dispatcher.queue.calls == 0
    logged = await place.settled(subscription, 0)
    pending = await place.pending(subscription)
    assert len(logged) + len(pending) == 10
    assert [row["attempts"] for row in (*logged, *pending)] == [1] * 10


async def test_a_stop_does_not_wait_for_an_endpoint_that_hangs(place: Place, receiver: Receiver) -> None:
    forever = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await forever.wait()
        return web.Response()

    receiver.answer = hang
    subscription = await place.subscribe(receiver.url)
    await place.emit()
    await receiver.wait_for(1)
    async with asyncio.timeout(30):  # below what its call may take
        await place.root.stop()
    assert [row["attempts"] for row in await place.pending(subscription)] == [0]

    receiver.answer = None
    _, root = make_webhooks(place, place.http)
    await root.start()
    try:
        assert (await place.settled(subscription))[0]["status"] == "delivered"
    finally:
        forever.set()
        await root.stop()
