"""A subscription that is changed while it delivers: whose answer counts, what is kept of it, and what ends (C23.2)."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from aiohttp import web
from tests.actors.webhooks.conftest import Place, Receiver
from tests.waiting import until

from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.storage.webhooks import deliveries, events, webhooks
from recado.storage.webhooks.webhooks import HealthNote, Subscription

S = SubscriptionStatus


async def change(place: Place, subscription: Subscription, **fields: Any) -> None:
    names = ", ".join(f"{name} = ${number}" for number, name in enumerate(fields, 2))
    await place.db.execute(
        f"update webhook_subscriptions set {names}, revision = revision + 1 where id = $1",
        subscription.id,
        *fields.values(),
    )
    place.webhooks.changed(subscription.key)


def answers_first(status: int, text: str = "") -> tuple[Callable[[web.Request], Any], asyncio.Event]:
    """An answer to the first request that waits for the event; all others get 200 at once."""
    go, asked = asyncio.Event(), 0

    async def answer(request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked > 1:
            return web.Response()
        await go.wait()
        return web.Response(status=status, text=text)

    return answer, go


async def test_an_answer_of_the_former_address_is_none_of_the_new_one(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url)
    receiver.answer, go = answers_first(410)
    await place.emit()
    await receiver.wait_for(1)
    await change(place, subscription, url=receiver.url.replace("/hook", "/new"))
    await place.emit()
    assert (await receiver.wait_for(2))[1].path == "/new"  # it knows of its new address

    go.set()
    row = await place.until_attempted(subscription)
    assert (row["attempts"], row["last_status"]) == (1, 410)
    place.clock.ahead = timedelta(seconds=40)
    await place.settled(subscription, 2)
    stored = await place.stored(subscription)
    assert (stored.status, stored.consecutive_failures, receiver.received[2].path) == (S.ACTIVE, 0, "/new")


async def test_an_address_that_is_gone_ends_no_subscription_that_has_left_it(place: Place) -> None:
    """The actor may learn of the new address only after it has heard of the old one's end."""
    subscription = await place.subscribe("http://127.0.0.1:1/")
    gone = subscription.health.failed(place.clock.now(), gone=True)
    note = HealthNote(subscription.key, subscription.url, S.ACTIVE, gone)
    await place.db.execute("update webhook_subscriptions set url = 'http://127.0.0.1:1/new'")
    assert await webhooks.note_health(place.db, [note], place.clock.now()) == [False]
    assert (await place.stored(subscription)).status is S.ACTIVE


async def test_what_was_answered_to_phones_in_the_clear_is_sealed_though_they_are_masked_by_now(
    place: Place, receiver: Receiver
) -> None:
    subscription = await place.subscribe(receiver.url, include_pii=True)
    receiver.answer, go = answers_first(500, "+5511987654321")
    await place.emit(displayPhone="+5511987654321")
    await receiver.wait_for(1)
    await change(place, subscription, include_pii=False)
    await place.emit(displayPhone="+5511987654321")
    assert (await receiver.wait_for(2))[1].json["data"]["displayPhone"] == "+55*******4321"

    go.set()
    attempt = (await place.until_attempted(subscription))["history"][0]
    assert "answerCipher" in attempt
    assert "987654321" not in str(attempt)


async def test_what_is_deleted_while_it_delivers_leaves_nothing_behind(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url)
    receiver.answer, go = answers_first(200)
    await place.emit()
    await receiver.wait_for(1)
    await change(place, subscription, status="revoked", deleted_at=place.clock.now())
    row = (await place.settled(subscription))[0]
    assert (row["status"], row["last_error"]) == ("dropped", "the subscription was revoked")

    go.set()
    await until(lambda: not place.webhooks.dispatcher.queue.calls, "the call has ended")
    await place.emit()
    assert await place.pending(subscription) == []
    assert [row["status"] for row in await place.settled(subscription)] == ["dropped"]
    assert (await place.stored(subscription)).status is S.REVOKED


async def test_what_is_deleted_is_listed_for_ninety_days(place: Place) -> None:
    subscription = await place.subscribe("http://127.0.0.1:1/")
    kept = await place.subscribe("http://127.0.0.1:1/")
    now = place.clock.now()
    await change(place, subscription, status="revoked", deleted_at=now)
    await change(place, kept, status="revoked")
    await place.webhooks.purge(now + timedelta(days=90))
    assert len(await webhooks.all_keys(place.db)) == 2
    await place.webhooks.purge(now + timedelta(days=90, seconds=1))
    assert await webhooks.all_keys(place.db) == [kept.key]


async def test_of_two_replays_of_one_period_one_queues_it(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url)
    await place.emit(count=3)
    await place.settled(subscription, 3)
    await change(place, subscription, status="paused")
    now = place.clock.now()

    async def replay() -> int:
        async with place.db.transaction() as connection:
            locked = await webhooks.get_locked(connection, place.organization_id, "test", subscription.id)
            assert locked is not None
            span: dict[str, Any] = {"start": now - timedelta(hours=1), "end": now + timedelta(hours=1)}
            return await events.replay_period(
                connection, place.ids, locked, events=None, only_failed=False, now=now, **span
            )

    assert sorted(await asyncio.gather(replay(), replay())) == [0, 3]
    assert len(await place.pending(subscription)) == 3


async def test_what_is_replayed_while_failing_waits_for_its_probe(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url)
    await place.emit(count=3)
    await place.settled(subscription, 3)
    receiver.answer, go = answers_first(500)
    now = place.clock.now()
    probe = {"failing_since": now, "probe_at": now + timedelta(minutes=1), "probe_seconds": 60}
    await change(place, subscription, status="failing", consecutive_failures=10, first_failure_at=now, **probe)
    async with place.db.transaction() as connection:
        period: dict[str, Any] = {"start": now - timedelta(hours=1), "end": now + timedelta(hours=1)}
        stored = await place.stored(subscription)
        await events.replay_period(connection, place.ids, stored, events=None, only_failed=False, now=now, **period)
    await place.webhooks.poll()
    assert len(receiver.received) == 3

    place.clock.ahead = timedelta(seconds=61)
    await receiver.wait_for(4)
    assert place.webhooks.dispatcher.queue.calls == 1
    go.set()
    await place.until_attempted(subscription)
    assert [row["attempts"] for row in await place.pending(subscription)] == [1, 0, 0]
    place.clock.ahead = timedelta(seconds=200)
    assert len(await place.settled(subscription, 6)) == 6
    await place.until_status(subscription, S.ACTIVE)


async def test_an_event_that_is_past_its_time_holds_up_no_other(place: Place, receiver: Receiver) -> None:
    """It was replayed on its last day, and its endpoint did not answer until it was gone."""
    subscription = await place.subscribe(receiver.url)
    await place.emit()
    first = (await place.settled(subscription))[0]
    await change(place, subscription, status="paused")
    place.clock.ahead = timedelta(days=29)
    async with place.db.transaction() as connection:
        stored = await place.stored(subscription)
        now = place.clock.now()
        await events.replay_one(connection, place.ids, stored, first["event_id"], first["event"], now)
    place.clock.ahead = timedelta(days=31)
    await place.webhooks.purge(place.clock.now())

    assert await place.pending(subscription) == []
    dropped = (await deliveries.list_page(place.db, subscription.key, place.clock.now(), limit=5))[0]
    assert (dropped.status, dropped.last_error) == ("dropped", "its event is past its time")
    await change(place, subscription, status="failing", probe_at=place.clock.now(), failing_since=place.clock.now())
    await place.emit(number=1)
    await place.webhooks.poll()  # as each second: a hint may come while what was changed is read
    await place.until_status(subscription, S.ACTIVE)
    assert len(receiver.received) == 2
