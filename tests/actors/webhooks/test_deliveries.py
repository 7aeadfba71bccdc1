"""A subscription from its events to their delivery: signatures, retries, health, and what a crash leaves (C23)."""

import asyncio
import os
from datetime import timedelta
from typing import Any

import pytest
import standardwebhooks
from aiohttp import web
from tests.actors.webhooks.conftest import Place, Receiver, make_webhooks

from recado.channels.webhooks.webhook_signing import new_secret
from recado.domain.webhooks.webhook import SubscriptionStatus
from recado.storage.webhooks import deliveries, webhooks
from recado.storage.webhooks.webhooks import SECRET_FIELD, HealthNote, Subscription

S = SubscriptionStatus


def verified(secret: str, received: Any) -> Any:
    headers = {name.lower(): value for name, value in received.headers.items()}
    return standardwebhooks.Webhook(secret).verify(received.body, headers)


def status(code: int, **headers: str) -> Any:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=code, headers=headers)

    return answer


async def test_an_event_is_delivered_signed_and_in_its_envelope(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url, headers={"X-Shop": "7", "Authorization": "Basic abc"})
    await place.emit(displayPhone="+5511987654321")
    received = (await receiver.wait_for(1))[0]
    event = verified(place.secrets[subscription.id], received)
    assert list(event) == ["id", "type", "env", "organizationId", "createdAt", "apiVersion", "data"]
    assert event["data"] == {"number": 0, "displayPhone": "+55*******4321"}
    assert b": " not in received.body
    headers = received.headers
    assert headers["webhook-id"] == event["id"]
    assert (headers["X-SVC-Event"], headers["X-SVC-Attempt"]) == ("wallet.depleted", "1")
    assert (headers["X-Shop"], headers["Authorization"]) == ("7", "Basic abc")
    assert (headers["User-Agent"], headers["Content-Type"]) == ("SVC-Webhooks/2", "application/json")
    logged = (await place.settled(subscription))[0]
    assert (logged["id"], logged["status"], logged["attempts"]) == (headers["X-SVC-Delivery"], "delivered", 1)
    with pytest.raises(standardwebhooks.WebhookVerificationError):
        verified(new_secret(os.urandom), received)


async def test_a_header_stored_before_it_was_refused_is_not_sent(place: Place, receiver: Receiver) -> None:
    await place.subscribe(receiver.url, headers={"user-agent": "Shop/1", "X-Shop": "7"})
    await place.emit()
    headers = (await receiver.wait_for(1))[0].headers
    assert headers.getall("User-Agent") == ["SVC-Webhooks/2"]
    assert headers["X-Shop"] == "7"


async def test_personal_data_is_shown_where_it_was_asked_for(place: Place, receiver: Receiver) -> None:
    await place.subscribe(receiver.url, include_pii=True)
    await place.emit(displayPhone="+5511987654321")
    assert (await receiver.wait_for(1))[0].json["data"]["displayPhone"] == "+5511987654321"


async def test_only_what_takes_an_event_has_it_delivered(place: Place, receiver: Receiver) -> None:
    await place.subscribe(receiver.url, "wallet.low_balance")
    live = await place.subscribe(receiver.url, "*", env="live")
    await place.emit("wallet.depleted")
    assert await place.db.fetchval("select count(*) from events") == 0
    await place.emit("wallet.low_balance")
    assert (await receiver.wait_for(1))[0].headers["X-SVC-Event"] == "wallet.low_balance"
    assert await place.pending(live) == []


async def test_during_a_rotation_both_secrets_sign_and_after_the_grace_the_new_one_alone(
    place: Place, receiver: Receiver
) -> None:
    subscription = await place.subscribe(receiver.url)
    former, new = place.secrets[subscription.id], new_secret(os.urandom)
    where = {"organization_id": place.organization_id, "record_id": subscription.id, "field": SECRET_FIELD}
    await place.db.execute(
        "update webhook_subscriptions set previous_secret_cipher = secret_cipher, secret_cipher = $1, "
        "previous_secret_until = $2, revision = revision + 1",
        place.keys.encrypt(new, **where),
        place.clock.now() + timedelta(hours=1),
    )
    place.webhooks.changed(subscription.key)
    await place.emit()
    received = (await receiver.wait_for(1))[0]
    assert verified(new, received)
    assert verified(former, received)
    assert received.headers["X-SVC-Signature"].count("v1=") == 2
    place.clock.ahead = timedelta(minutes=61)
    await place.emit()
    received = (await receiver.wait_for(2))[1]
    assert received.headers["X-SVC-Signature"].count("v1=") == 1
    assert received.headers["webhook-signature"].count("v1,") == 1


async def test_each_attempt_is_counted_and_signed_anew_until_it_succeeds(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url)
    receiver.answer = status(500)
    await place.emit()
    await place.until_attempted(subscription)
    place.clock.ahead = timedelta(seconds=40)
    await receiver.wait_for(2)
    await place.until_attempted(subscription, 2)
    receiver.answer = None
    place.clock.ahead = timedelta(seconds=240)
    logged = (await place.settled(subscription))[0]
    assert (logged["status"], logged["attempts"], len(logged["history"])) == ("delivered", 3, 3)
    assert [r.headers["X-SVC-Attempt"] for r in receiver.received] == ["1", "2", "3"]
    assert len({r.headers["X-SVC-Signature"] for r in receiver.received}) == 3
    assert len({r.headers["webhook-id"] for r in receiver.received}) == 1


@pytest.mark.parametrize(
    ("code", "asked", "least", "most"),
    [(503, "3600", 3_590, 3_600), (429, "99999", 21_590, 21_600), (429, "5", 20, 33), (500, "3600", 20, 33)],
)
async def test_a_longer_retry_after_is_obeyed(
    place: Place, receiver: Receiver, code: int, asked: str, least: float, most: float
) -> None:
    """Of 429 and 503, up to six hours (C23.3.3)."""
    subscription = await place.subscribe(receiver.url)
    receiver.answer = status(code, **{"Retry-After": asked})
    await place.emit()
    row = await place.until_attempted(subscription)
    assert least < (row["due_at"] - place.clock.now()).total_seconds() <= most


async def test_after_the_last_attempt_it_is_dropped(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url, max_attempts=2)
    receiver.answer = status(500)
    await place.emit()
    await place.until_attempted(subscription)
    place.clock.ahead = timedelta(minutes=1)
    logged = (await place.settled(subscription))[0]
    assert (logged["status"], logged["attempts"], logged["last_error"]) == ("dropped", 2, "the endpoint answered 500")


async def test_what_waited_for_72_hours_is_dropped_also_while_paused(place: Place) -> None:
    subscription = await place.subscribe("http://127.0.0.1:1/")
    await place.emit()
    await place.until_attempted(subscription)
    await change(place, subscription, "paused")
    place.clock.ahead = timedelta(hours=71)
    await place.webhooks.tidy()
    assert len(await place.pending(subscription)) == 1
    place.clock.ahead = timedelta(hours=72, minutes=10)
    await place.webhooks.tidy()
    logged = (await place.settled(subscription))[0]
    assert (logged["status"], logged["attempts"]) == ("dropped", 1)


async def test_an_active_subscription_drops_what_is_too_old_by_itself(place: Place) -> None:
    subscription = await place.subscribe("http://127.0.0.1:1/")
    await place.emit(count=3)
    await place.until_attempted(subscription)
    place.clock.ahead = timedelta(hours=73)
    rows = await place.settled(subscription, 3)
    assert {(row["status"], row["attempts"]) for row in rows} == {("dropped", 1)}


async def test_a_paused_subscription_gets_nothing_queued_and_a_resumed_one_all_that_waited(
    place: Place, receiver: Receiver
) -> None:
    subscription = await place.subscribe(receiver.url)
    receiver.answer = status(500)
    await place.emit()
    await place.until_attempted(subscription)
    await change(place, subscription, "paused")
    receiver.answer = None
    await place.emit()
    place.clock.ahead = timedelta(minutes=1)
    await place.webhooks.poll()
    assert len(await place.pending(subscription)) == 1
    assert await place.db.fetchval("select count(*) from events") == 2
    await change(place, subscription, "active")
    await place.settled(subscription)
    assert len(receiver.received) == 2


async def change(place: Place, subscription: Subscription, to: str) -> None:
    await place.db.execute(
        "update webhook_subscriptions set status = $1, consecutive_failures = 0, first_failure_at = null, "
        "failing_since = null, probe_at = null, revision = revision + 1",
        to,
    )
    place.webhooks.changed(subscription.key)


async def test_while_failing_one_probe_is_made_and_its_success_frees_the_others(
    place: Place, receiver: Receiver
) -> None:
    subscription = await place.subscribe(receiver.url)
    now = place.clock.now()
    failing = subscription.health
    for number in range(10):
        failing = failing.failed(now + timedelta(seconds=7 * number))
    assert failing.status is S.FAILING
    await webhooks.note_health(place.db, [HealthNote(subscription.key, subscription.url, S.ACTIVE, failing)], now)
    receiver.answer = status(500)
    await place.emit(count=5)
    assert receiver.received == []
    place.clock.ahead = timedelta(seconds=124)
    await receiver.wait_for(1)
    row = await place.until_attempted(subscription)
    assert [one["attempts"] for one in await place.pending(subscription)] == [1, 0, 0, 0, 0]
    assert row["attempts"] == 1
    receiver.answer = None
    place.clock.ahead = timedelta(seconds=260)
    await place.settled(subscription, 5)
    await place.until_status(subscription, S.ACTIVE)
    assert (await place.stored(subscription)).consecutive_failures == 0


async def test_an_answer_410_revokes_and_drops_what_is_pending(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url)
    receiver.answer = status(410)
    await place.emit(count=30)
    rows = await place.settled(subscription, 30)
    assert {row["status"] for row in rows} == {"dropped"}
    await place.until_status(subscription, S.REVOKED)
    await place.emit()
    assert await place.pending(subscription) == []


async def test_the_answer_410_that_ended_a_subscription_is_written_before_its_deliveries_are_given_up(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, settle, drop_all = asyncio.Event(), deliveries.settle, deliveries.drop_all
    written: list[bool] = []

    async def held(*args: Any) -> None:
        await goes_on.wait()
        await settle(*args)

    async def noted(*args: Any, **kwargs: Any) -> None:
        written.append(goes_on.is_set())
        await drop_all(*args, **kwargs)

    monkeypatch.setattr(deliveries, "settle", held)
    monkeypatch.setattr(deliveries, "drop_all", noted)
    subscription = await place.subscribe(receiver.url)
    receiver.answer = status(410)
    await place.emit()
    await place.until_status(subscription, S.REVOKED)  # noted in the turn that would give them up
    goes_on.set()
    (row,) = await place.settled(subscription)
    assert (row["status"], row["attempts"], row["last_status"]) == ("dropped", 1, 410)
    assert row["last_error"] == "the endpoint answered 410"
    assert all(written)


async def test_what_a_dead_process_had_in_hand_is_delivered_by_the_next(place: Place, receiver: Receiver) -> None:
    forever = asyncio.Event()

    async def hang(request: web.Request) -> web.Response:
        await forever.wait()
        return web.Response()

    receiver.answer = hang
    subscription = await place.subscribe(receiver.url)
    await place.emit(count=50)
    await receiver.wait_for(10)
    # A second process, while the first one has ten calls under way that nobody will hear the end of.
    receiver.answer = None
    successor, root = make_webhooks(place, place.http)
    await root.start()
    try:
        rows = await place.settled(subscription, 50)
    finally:
        await root.stop()
        forever.set()
    assert {row["status"] for row in rows} == {"delivered"}
    assert len({r.headers["webhook-id"] for r in receiver.received}) == 50
    assert successor.dispatcher.queue.calls == 0


async def test_an_actor_that_fails_is_restarted_and_loses_nothing(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = 3
    settle = deliveries.due

    async def failing(*args: Any) -> Any:
        nonlocal failures
        if failures:
            failures -= 1
            raise RuntimeError("a fault of the program")
        return await settle(*args)

    monkeypatch.setattr("recado.actors.webhooks.webhook_subscription.deliveries.due", failing)
    subscription = await place.subscribe(receiver.url)
    await place.emit(count=20)
    assert len(await place.settled(subscription, 20)) == 20


async def test_a_secret_that_cannot_be_read_fails_the_attempt_and_not_the_program(
    place: Place, receiver: Receiver
) -> None:
    subscription = await place.subscribe(receiver.url)
    await place.db.execute("update webhook_subscriptions set secret_cipher = 'v1.test.AAAA'")
    await place.emit()
    row = await place.until_attempted(subscription)
    assert row["last_error"] == "the signing secret cannot be read"
    assert receiver.received == []


async def test_phones_that_cannot_be_read_fail_the_attempt_and_not_the_program(
    place: Place, receiver: Receiver
) -> None:
    subscription = await place.subscribe(receiver.url, include_pii=True)
    await place.emit(displayPhone="+5511987654321", hint=False)
    await place.db.execute("update events set data = replace(data::text, 'v1.test.', 'v1.test.A')::json")
    place.webhooks.queued({subscription.key})
    row = await place.until_attempted(subscription)
    assert row["last_error"] == "what the event tells cannot be read"
    assert receiver.received == []


async def test_what_is_past_its_time_is_removed(place: Place, receiver: Receiver) -> None:
    subscription = await place.subscribe(receiver.url)
    await place.emit(count=3)
    await place.settled(subscription, 3)
    now = place.clock.now()
    await place.webhooks.purge(now + timedelta(days=29))
    assert await place.db.fetchval("select count(*) from deliveries") == 3
    await place.webhooks.purge(now + timedelta(days=31))
    assert await place.db.fetchval("select count(*) from deliveries") == 0
    assert await place.db.fetchval("select count(*) from events") == 0
