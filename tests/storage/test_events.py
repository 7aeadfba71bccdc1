"""The outbox: who takes what, and what a batched statement writes for the messages that moved (C23.3.1)."""

import random
import re
from typing import Any

import pytest

from recado.domain.events import EVENT_NAMES
from recado.domain.ids import MESSAGE, WEBHOOK, IdSource
from recado.engine.clock import SystemClock
from recado.storage import deliveries, events
from recado.storage.postgres import Database
from recado.storage.webhooks import SubscriptionDirectory, takers_of

ORGANIZATION = "org_" + "0" * 21
IDS = IdSource(SystemClock(), random.Random(1))


async def subscribe(database: Database, *names: str, status: str = "active", env: str = "test", **more: Any) -> str:
    subscription_id = IDS.new(WEBHOOK)
    await database.execute(
        "insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events, "
        "include_pii, max_attempts, backoff_seconds, status, revision, updated_at, deleted_at) "
        "values ($1, $2, $3, 'https://x', 's', 1, $4, false, 8, 30, $5, 1, now(), case when $6 then now() end)",
        ORGANIZATION,
        subscription_id,
        env,
        list(names),
        status,
        more.get("deleted", False),
    )
    return subscription_id


@pytest.fixture
def directory(database: Database) -> SubscriptionDirectory:
    return SubscriptionDirectory(database, clock=SystemClock())


async def test_an_event_is_queued_for_what_is_in_service_and_logged_for_what_is_not(
    database: Database, directory: SubscriptionDirectory
) -> None:
    active = await subscribe(database, "message.sent")
    failing = await subscribe(database, "*", status="failing")
    await subscribe(database, "message.read", status="paused")
    await subscribe(database, "message.received", deleted=True)
    await subscribe(database, "message.received", env="live")
    takers = await directory.get((ORGANIZATION, "test"))
    assert takers is not None
    assert takers.by_event["message.sent"] == (active, failing)
    assert takers.by_event["message.read"] == (failing,)
    assert set(takers.by_event) == set(EVENT_NAMES)
    assert directory.peek((ORGANIZATION, "test")) is takers
    await database.execute("update webhook_subscriptions set status = 'revoked' where id = $1", failing)
    directory.forget((ORGANIZATION, "test"))
    takers = await directory.get((ORGANIZATION, "test"))
    assert takers is not None
    assert (takers.by_event["message.read"], takers.by_event["apikey.created"]) == ((), ())


def test_nobody_takes_anything_where_nobody_subscribed() -> None:
    takers = takers_of([])
    assert emission_of(takers, "message.sent") is None


def emission_of(takers: Any, type: str, message_id: str = "msg_1") -> Any:  # noqa: A002
    return events.emission(
        takers, IDS, organization_id=ORGANIZATION, env="test", type=type, channel="chatapp", message_id=message_id
    )


async def test_a_batch_writes_events_of_the_messages_that_moved_and_of_no_other(
    database: Database, directory: SubscriptionDirectory
) -> None:
    """With the fragment as the module documents it."""
    first, second = await subscribe(database, "message.sent"), await subscribe(database, "*")
    takers = await directory.get((ORGANIZATION, "test"))
    messages = [IDS.new(MESSAGE) for _ in range(3)]
    emissions = [emission_of(takers, "message.sent", message) for message in messages]
    fragment = re.search(r"\n    emitted as \(.*\n    \)\n", events.__doc__ or "", re.DOTALL)
    assert fragment is not None
    sql = f"with moved as (select unnest($14::text[]) as id), {fragment[0]} select 1"
    for _ in range(2):  # a batch whose connection was lost runs again
        await database.hot.execute(sql, *events.columns_of(emissions), messages[:2])
    stored = await database.fetch("select * from events order by id")
    assert [row["message_id"] for row in stored] == messages[:2]
    assert {(row["type"], row["channel"], row["data"]) for row in stored} == {("message.sent", "chatapp", None)}
    queued = await database.fetch("select * from delivery_queue order by event_id, subscription_id")
    assert [(row["event_id"], row["subscription_id"]) for row in queued] == [
        (row["id"], subscription) for row in stored for subscription in (first, second)
    ]
    assert events.keys_of(emissions) == {(ORGANIZATION, first), (ORGANIZATION, second)}


async def test_results_are_written_once_however_often_the_batch_runs(
    database: Database, directory: SubscriptionDirectory
) -> None:
    subscription = await subscribe(database, "*")
    takers = await directory.get((ORGANIZATION, "test"))
    emissions = [emission_of(takers, "message.sent", IDS.new(MESSAGE)) for _ in range(3)]
    await events.emit_batch(database, emissions)
    key = (ORGANIZATION, subscription)
    now = SystemClock().now()
    found, more = await deliveries.due(database.hot, key, now, set(), 2)
    assert (len(found), more) == (2, True)
    rest, more = await deliveries.due(database.hot, key, now, {due.id for due in found}, 2)
    assert (len(rest), more) == (1, False)
    results = [
        deliveries.Result(key, found[0].id, 0, "delivered", now, 200, None, '{"attempt": 1}', None),
        deliveries.Result(key, found[1].id, 0, None, now, 500, "no", '{"attempt": 1}', now),
    ]
    for _ in range(2):
        await deliveries.settle(database.hot, results)
    listed = await deliveries.list_page(database, key, now, limit=10)
    assert [(one.status, one.attempts, one.last_status) for one in reversed(listed)] == [
        ("delivered", 1, 200),
        ("pending", 1, 500),
        ("pending", 0, None),
    ]
    assert [len(one.history) for one in reversed(listed)] == [1, 1, 0]
    assert await deliveries.waiting(database.hot, now) == [key]


async def test_an_empty_table_misleads_no_plan(database: Database) -> None:
    """A plan that was made before the first event must still find each row through its whole key."""
    now = SystemClock().now()
    lines = await database.hot.fetch(
        "explain " + deliveries.SQL.due.rstrip().rstrip(";"), ORGANIZATION, "wbh_1", now, 100, ["x"]
    )
    plan = "\n".join(line[0] for line in lines)
    assert re.search(r"Index Scan using events_pkey.*\n\s+Index Cond: .*organization_id.* AND .*id\)", plan)
    assert re.search(r"Index Scan using delivery_queue_due", plan)
    assert "Seq Scan" not in plan
    assert "Sort" not in plan
