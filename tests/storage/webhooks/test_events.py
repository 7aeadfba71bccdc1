"""The outbox: who takes what, and what a batched statement writes for the messages that moved (C23.3.1)."""

import random
import re
from datetime import timedelta
from typing import Any

import pytest
from tests.plans import grow, indexes, plan_for_any, whole_tables

from recado.domain.core.events import EVENT_NAMES
from recado.domain.core.ids import CONTACT, EVENT, MESSAGE, WEBHOOK, IdSource, created_at, lowest_id
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions, partition
from recado.storage.webhooks import deliveries, events
from recado.storage.webhooks.webhooks import SubscriptionDirectory, takers_of

ORGANIZATION = "org_" + "0" * 21
IDS = IdSource(SystemClock(), random.Random(1))


class Asked:
    """A database that remembers which statements it was asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.statements: list[str] = []

    async def fetch(self, query: str, /, *arguments: Any) -> Any:
        self.statements.append(query)
        return await self._database.fetch(query, *arguments)


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


async def test_a_batch_writes_each_event_once_with_its_deliveries(
    database: Database, directory: SubscriptionDirectory
) -> None:
    first, second = await subscribe(database, "message.sent"), await subscribe(database, "*")
    takers = await directory.get((ORGANIZATION, "test"))
    messages = [IDS.new(MESSAGE) for _ in range(3)]
    emissions = [emission_of(takers, "message.sent", message) for message in messages]
    for _ in range(2):  # a batch whose connection was lost runs again
        told = await events.emit_batch(database.hot, emissions)
    stored = await database.fetch("select * from events order by id")
    assert [row["message_id"] for row in stored] == messages
    assert {(row["type"], row["channel"], row["data"]) for row in stored} == {("message.sent", "chatapp", None)}
    queued = await database.fetch("select * from delivery_queue order by event_id, subscription_id")
    assert [(row["event_id"], row["subscription_id"]) for row in queued] == [
        (row["id"], subscription) for row in stored for subscription in (first, second)
    ]
    assert {row["due_at"] for row in queued} == {created_at(row["event_id"]) for row in queued}
    mine = [row["id"] for row in queued if row["subscription_id"] == first]
    assert told[ORGANIZATION, first] == mine
    assert set(told) == {(ORGANIZATION, first), (ORGANIZATION, second)}
    assert await events.emit_batch(database, []) == {}


async def test_a_delivery_is_due_now_while_ids_run_ahead_of_the_clock(
    database: Database, directory: SubscriptionDirectory
) -> None:
    await subscribe(database, "*")
    takers = await directory.get((ORGANIZATION, "test"))
    assert takers is not None
    clock = SystemClock()
    ids = IdSource(clock, random.Random(2))
    assert ids.continue_after(lowest_id(EVENT, clock.now() + timedelta(hours=2)))
    told: dict[str, Any] = {"organization_id": ORGANIZATION, "env": "test"}
    emission = events.emission(takers, ids, **told, type="message.sent", channel="chatapp", message_id=ids.new(MESSAGE))
    assert emission is not None
    await events.emit_batch(database.hot, [emission])
    async with database.transaction() as connection:
        await events.emit(connection, ids, **told, type="apikey.created", data={})
        await events.emit_records(connection, ids, [events.RecordEvent(**told, type="apikey.created", data={})])
    due = await database.fetch("select due_at, id from delivery_queue")
    assert len(due) == 3
    assert all(row["due_at"] <= clock.now() < created_at(row["id"]) for row in due)


async def test_deliveries_are_found_by_their_ids_when_they_are_due(
    database: Database, directory: SubscriptionDirectory
) -> None:
    subscription = await subscribe(database, "*")
    takers = await directory.get((ORGANIZATION, "test"))
    emissions = [emission_of(takers, "message.sent", IDS.new(MESSAGE)) for _ in range(3)]
    key = SubscriptionKey(ORGANIZATION, subscription)
    ids = (await events.emit_batch(database, emissions))[key]
    now = SystemClock().now()
    found = await deliveries.due_of(database.hot, key, now, [*ids[:2], "dlv_unknown"])
    assert [(due.id, due.attempts, due.told.event_id) for due in found] == [
        (delivery_id, 0, each.event_id) for delivery_id, each in zip(ids[:2], emissions[:2], strict=True)
    ]
    assert await deliveries.due_of(database.hot, key, now - timedelta(hours=1), ids) == []
    assert await deliveries.due_of(database.hot, (ORGANIZATION, "wbh_other"), now, ids) == []


async def test_a_failure_is_told_as_it_was_though_the_message_was_sent_again_since(
    database: Database, directory: SubscriptionDirectory
) -> None:
    subscription = await subscribe(database, "message.failed")
    message_id = IDS.new(MESSAGE)
    await database.execute(
        "insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient, "
        "recipient_hash, class, force, last_error, updated_at) "
        "values ($1, 'test', 'chatapp', $2, 'outbound', 'failed', 'text', 'num_1', '+1', 1, 1, false, $3, now())",
        ORGANIZATION, message_id, "expired: too late",
    )  # fmt: skip
    failed = emission_of(await directory.get((ORGANIZATION, "test")), "message.failed", message_id)
    await events.emit_batch(database, [failed])

    async def error() -> str | None:
        ((due,), _) = await deliveries.due(database, (ORGANIZATION, subscription), SystemClock().now(), set(), 1)
        return due.told.message_error

    assert await error() == "expired: too late"
    await database.execute(
        "update messages set original_error = last_error, last_error = 'replaced by msg_1' where id = $1", message_id
    )
    assert await error() == "expired: too late"


async def test_a_message_is_told_with_what_its_customer_calls_its_contact_now(
    database: Database, directory: SubscriptionDirectory
) -> None:
    subscription = await subscribe(database, "message.sent")
    message_id, contact_id = IDS.new(MESSAGE), IDS.new(CONTACT)
    await database.execute(
        "insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient, "
        "recipient_hash, class, force, contact_id, updated_at) "
        "values ($1, 'test', 'chatapp', $2, 'outbound', 'sent', 'text', 'num_1', '+1', 1, 1, false, $3, now())",
        ORGANIZATION, message_id, contact_id,
    )  # fmt: skip
    sent = emission_of(await directory.get((ORGANIZATION, "test")), "message.sent", message_id)
    await events.emit_batch(database, [sent])

    async def contact() -> tuple[str | None, str | None]:
        ((due,), _) = await deliveries.due(database, (ORGANIZATION, subscription), SystemClock().now(), set(), 1)
        return due.told.contact_id, due.told.contact_external_id

    assert await contact() == (contact_id, None)  # it was deleted
    for env, external_id in (("live", "another's"), ("test", "shop-7")):
        await database.execute(
            "insert into contacts (organization_id, env, id, phone, phone_hash, external_id, source, opt_in_status, "
            "search, updated_at) values ($1, $2, $3, '+5511987654321', '', $4, 'api', 'unknown', '', now())",
            ORGANIZATION, env, contact_id, external_id,
        )  # fmt: skip
    assert await contact() == (contact_id, "shop-7")


async def test_results_are_written_once_however_often_the_batch_runs(
    database: Database, directory: SubscriptionDirectory
) -> None:
    subscription = await subscribe(database, "*")
    takers = await directory.get((ORGANIZATION, "test"))
    emissions = [emission_of(takers, "message.sent", IDS.new(MESSAGE)) for _ in range(3)]
    await events.emit_batch(database, emissions)
    key = SubscriptionKey(ORGANIZATION, subscription)
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


async def test_what_is_told_of_this_month_opens_its_table_alone_and_of_another_month_is_read_as_well(
    database: Database, directory: SubscriptionDirectory
) -> None:
    now = SystemClock().now()
    await ensure_partitions(database, now)
    subscription = await subscribe(database, "message.sent")
    takers = await directory.get((ORGANIZATION, "test"))
    key = SubscriptionKey(ORGANIZATION, subscription)
    former = lowest_id(MESSAGE, now.replace(day=1) - timedelta(days=1))
    told = [IDS.new(MESSAGE), former, IDS.new(MESSAGE)]
    for message_id in told:
        await database.execute(
            "insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient, "
            "recipient_hash, class, force, updated_at) "
            "values ($1, 'test', 'chatapp', $2, 'outbound', 'sent', 'text', 'num_1', $3, 1, 1, false, now())",
            ORGANIZATION, message_id, message_id,
        )  # fmt: skip
    gone = IDS.new(MESSAGE)
    emissions = [emission_of(takers, "message.sent", each) for each in (*told, gone)]
    ids = (await events.emit_batch(database, emissions))[key]
    asked: Any = Asked(database)
    at = SystemClock().now() + timedelta(seconds=1)  # an event's moment may lie a moment after this one
    (looked, more), named = (
        await deliveries.due(asked, key, at, set(), 9, database.months),
        await deliveries.due_of(asked, key, at, ids, database.months),
    )
    assert not more
    for found in (looked, named):
        assert [(due.id, due.told.recipient) for due in found] == list(zip(ids, [*told, None], strict=True))
    assert ["messages /*month*/" in each for each in asked.statements] == [False, True, False, True]
    asked.statements.clear()
    assert len(await deliveries.due_of(asked, key, at, [ids[0], ids[2]], database.months)) == 2
    assert [f"from {partition(now)[0]}\n" in each for each in asked.statements] == [True]


async def test_an_empty_table_misleads_no_plan(database: Database) -> None:
    """A plan that was made before the first event must still find each row through its whole key.

    The server counts the rows of a table now and then, and then knows that there are none: these here are new to it,
    and it cannot count them before the block ends.
    """
    now = SystemClock().now()
    async with database.hot.transaction() as connection:
        await connection.execute("truncate delivery_queue, events, contacts, messages, webhook_subscriptions")
        lines = await connection.fetch("explain " + deliveries.DUE, ORGANIZATION, "wbh_1", now, 100, ["x"])
        settling = {sql: await generic_plan(connection, sql) for sql in (deliveries.DUE_OF, deliveries.SQL.settle)}
        waiting = await generic_plan(connection, deliveries.SQL.waiting)
    plan = "\n".join(line[0] for line in lines)
    assert re.search(r"Index Scan using events_pkey.*\n\s+Index Cond: .*organization_id.* AND .*id\)", plan)
    assert re.search(
        r"Index Scan using contacts_pkey.*\n\s+Index Cond: .*organization_id.* AND .*env.* AND .*contact_id", plan
    )
    assert re.search(r"Index Scan using delivery_queue_due", plan)
    assert "Seq Scan" not in plan
    assert "Sort" not in plan
    for plan in settling.values():
        assert re.search(r"Index Scan using delivery_queue_pkey.*\n\s+Index Cond: .*subscription_id.* AND .*id\)", plan)
        assert "delivery_queue_due" not in plan
        assert "Seq Scan" not in plan
    assert "Index Only Scan using delivery_queue_due" in waiting


BACKLOG = """
insert into delivery_queue (organization_id, subscription_id, id, event_id, event, due_at)
    select 'org_7', 'wbh_' || i % 2, 'dlv_' || lpad(i::text, 21, '0'), 'evt_1', 'message.sent', now()
    from generate_series(1, 20000) i;
"""


@pytest.mark.parametrize("sql", [deliveries.DROP_OLD, deliveries.DROP_UNTOLD], ids=["old", "untold"])
@pytest.mark.parametrize("rows", ["select", BACKLOG, BACKLOG + "analyze delivery_queue"], ids=["no", "new", "counted"])
async def test_a_block_of_a_backlog_is_given_up_by_the_places_that_it_was_found_at(
    database: Database, rows: str, sql: str
) -> None:
    await database.execute("alter table delivery_queue set (autovacuum_enabled = off)")
    await database.execute(rows)
    plan = await plan_for_any(database, sql)
    assert indexes(plan) == {"delivery_queue_pkey"}
    assert whole_tables(plan) == set()
    assert [node["Node Type"] for node in plan if node.get("Relation Name") == "delivery_queue"].count("Tid Scan") == 1


async def plan_of(database: Database, sql: str) -> str:
    async with database.hot.transaction() as connection:
        return await generic_plan(connection, sql)


async def generic_plan(connection: Any, sql: str) -> str:
    """The plan for any values, as a batch's connection makes it."""
    arguments = max(map(int, re.findall(r"\$(\d+)", sql)))
    await connection.execute(f"prepare statement_under_test as {sql}")
    lines = await connection.fetch(f"explain execute statement_under_test ({', '.join(['null'] * arguments)})")
    await connection.execute("deallocate statement_under_test")
    return "\n".join(line[0] for line in lines)


@pytest.mark.parametrize("rows", ["select", BACKLOG, BACKLOG + "analyze delivery_queue"], ids=["no", "new", "counted"])
async def test_deliveries_of_a_message_are_found_without_a_walk_through_others(database: Database, rows: str) -> None:
    await database.execute("alter table delivery_queue set (autovacuum_enabled = off)")
    await database.execute(rows)
    assert indexes(await plan_for_any(database, events.SQL.of_message)) == {"events_messages"}
    plan = await plan_for_any(database, deliveries.PAGE_OF_EVENTS)
    assert indexes(plan) == {
        "deliveries_pkey", "deliveries_replayed", "delivery_queue_pkey", "delivery_queue_replayed", "events_pkey",
    }  # fmt: skip
    assert whole_tables(plan) == set()


async def test_the_newest_events_of_a_message_are_found_in_the_order_of_the_index(database: Database) -> None:
    """However many it has: each click is one."""
    await database.execute(
        "insert into events (organization_id, id, env, type, channel, message_id) select 'org_7', "
        "'evt_' || lpad(i::text, 21, '0'), 'live', 'email.clicked', 'email', 'msg_' || lpad((i / 4)::text, 21, '0') "
        "from generate_series(1, 4000) i"
    )
    await database.execute("analyze events")
    await grow(database, "events", 4_000_000)
    plan = await plan_for_any(database, events.SQL.of_message)
    assert (indexes(plan), whole_tables(plan)) == ({"events_messages"}, set())
    assert all("Sort" not in node["Node Type"] for node in plan)
