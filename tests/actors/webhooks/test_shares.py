"""All subscriptions of an organization together: what they have under way, and that all is delivered (C31)."""

import asyncio

import pytest
from aiohttp import web
from tests.actors.webhooks.conftest import Place, Receiver
from tests.waiting import until

from recado.actors.webhooks import webhook_fair_queue, webhook_window

SUBSCRIPTIONS, EVENTS, CALLS = 4, 30, 6


async def test_the_subscriptions_of_an_organization_share_its_calls_and_deliver_everything(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhook_fair_queue, "CALLS_OF_AN_ORGANIZATION", CALLS)
    monkeypatch.setattr(webhook_fair_queue, "CALLS_IN_ANY_CASE", 1)
    monkeypatch.setattr(webhook_fair_queue, "MOST_UNWRITTEN", 20)
    monkeypatch.setattr(webhook_window, "PIECE", 7)
    gate = asyncio.Event()

    async def wait(request: web.Request) -> web.Response:
        await gate.wait()
        return web.Response()

    receiver.answer = wait
    subscriptions = [await place.subscribe(receiver.url) for _ in range(SUBSCRIPTIONS)]
    await place.emit(count=EVENTS)
    await receiver.wait_for(CALLS)
    gate.set()
    for subscription in subscriptions:
        settled = await place.settled(subscription, EVENTS)
        assert {row["status"] for row in settled} == {"delivered"}
    assert receiver.most_at_once <= CALLS + SUBSCRIPTIONS
    assert len(receiver.received) == SUBSCRIPTIONS * EVENTS
    queue = place.webhooks.dispatcher.queue
    await until(lambda: not queue.calls and not vars(queue)["_shares"], "nothing is under way any more")


async def test_no_more_statements_read_deliveries_of_an_organization_than_its_share(
    place: Place, receiver: Receiver
) -> None:
    reading = place.webhooks.dispatcher.reading
    organization_id = place.organization_id
    await place.subscribe(receiver.url)
    async with reading.place(organization_id), reading.place(organization_id):
        await place.emit()
        await until(lambda: vars(reading)["_waiting"], "the reading waits for its organization's share")
        assert receiver.received == []
    await receiver.wait_for(1)
