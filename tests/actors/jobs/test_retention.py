"""The daily round of retention (C32)."""

import os
import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.captured import capture_logs
from tests.waiting import until

from recado.actors.jobs.clock_confirmation import ClockConfirmation
from recado.actors.jobs.retention import Retention
from recado.domain.core.ids import AUDIT, CUSTOMER_EVENT, EXECUTION, MESSAGE, IdSource, lowest_id
from recado.engine.clock import VirtualClock
from recado.storage.access.organizations import create_organization
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions

NOW = datetime(2031, 6, 15, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


async def note(database: Database, at: datetime) -> None:
    """Somebody did something then."""
    await database.execute(
        "insert into audit (organization_id, id, actor_type, actor_id, action, details) "
        "select id, $1, 'system', 'system', 'number.create', '{}' from organizations limit 1",
        lowest_id(AUDIT, at),
    )


async def store_old_rows(database: Database, clock: VirtualClock) -> None:
    """One row of each kind that the next round removes or empties."""
    ids = IdSource(clock, random.Random(8))
    async with database.transaction() as connection:
        made = await create_organization(connection, ids, name="Acme", now=NOW, random_bytes=os.urandom)
    organization_id = made.organization.id
    sender_id = await database.fetchval("select id from numbers where organization_id = $1", organization_id)
    for at in (NOW - timedelta(days=400), NOW - timedelta(days=900)):
        await ensure_partitions(database, at, months_ahead=0)
        await database.execute(
            "insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient, "
            "recipient_hash, class, force, payload, updated_at) "
            "values ($1, 'test', 'chatapp', $2, 'outbound', 'sent', 'text', $3, '+1', 1, 1, false, '{}', now())",
            organization_id, lowest_id(MESSAGE, at), sender_id,
        )  # fmt: skip
    for table in ("tier_recipients", "chat_windows"):
        await database.execute(
            f"insert into {table} values ($1, $2, 1, $3)", organization_id, sender_id, NOW - timedelta(days=2)
        )
    await database.execute(
        "insert into sender_minutes values ($1, $2, $3, 1, 0, 0)", organization_id, sender_id, NOW - timedelta(days=900)
    )
    await database.execute(
        "insert into audit (organization_id, id, actor_type, actor_id, action, details) "
        "values ($1, $2, 'system', 'system', 'number.age', '{}')",
        organization_id, lowest_id(AUDIT, NOW - timedelta(days=2000)),
    )  # fmt: skip
    for env in ("live", "test"):
        await database.execute(
            "insert into customer_events (organization_id, env, event_id, id, name, occurred_at, currency) "
            "values ($1, $2, 'order-1', $3, 'order.paid', $4, 'BRL')",
            organization_id, env, ids.new(CUSTOMER_EVENT), NOW - timedelta(days=900),
        )  # fmt: skip
        await database.execute(
            "insert into executions (organization_id, env, journey_id, id, chain_id, versao, contact_id, status, "
            "origem, teste, hurried, entrada, step_id, arrived_at, started_at, ended_at) values ($1, $2, 'jrn_1', $3, "
            "'jrn_1', 1, 'cnt_1', 'concluida', 'api', false, false, '{}', 'end', $4, $4, $4)",
            organization_id, env, lowest_id(EXECUTION, NOW - timedelta(days=900)), NOW - timedelta(days=900),
        )  # fmt: skip


async def left(database: Database) -> list[int]:
    """How many rows there are of what is stored by `store_old_rows`; of messages, and of those with content."""
    counts = [
        "select count(*) from messages",
        "select count(payload) from messages",
        "select count(*) from tier_recipients",
        "select count(*) from chat_windows",
        "select count(*) from sender_minutes",
        "select count(*) from audit where action = 'number.age'",
        "select count(*) from customer_events",
        "select count(*) from executions",
    ]
    return [await database.fetchval(count) for count in counts]


async def test_a_round_removes_everything_that_is_past_its_time(database: Database, clock: VirtualClock) -> None:
    retention = Retention(database, clock=clock, confirmation=ClockConfirmation(database, clock=clock))
    await store_old_rows(database, clock)
    await note(database, NOW - timedelta(days=1, hours=1))
    assert await left(database) == [2, 2, 1, 1, 1, 1, 2, 2]
    with capture_logs() as logs:
        await retention.work()
        assert await left(database) == [1, 0, 1, 1, 0, 0, 0, 0]  # what counts for a day is not a day older than that
        await clock.advance(86_400)
        await retention.work()
    assert await left(database) == [1, 0, 0, 0, 0, 0, 0, 0]
    assert logs == []


async def test_the_first_round_comes_with_the_start(database: Database, clock: VirtualClock) -> None:
    retention = Retention(database, clock=clock, confirmation=ClockConfirmation(database, clock=clock))
    await store_old_rows(database, clock)
    await note(database, NOW - timedelta(days=2))
    await retention.start()
    try:

        async def gone() -> bool:
            return await left(database) == [1, 0, 1, 1, 0, 0, 0, 0]

        await until(gone, "the first round is through")
    finally:
        await retention.stop()
    await retention.stop()


async def test_a_clock_that_runs_years_ahead_costs_what_was_past_its_time_before(database: Database) -> None:
    """Of what is stored, one message's content is past its time, and one message."""
    clock = VirtualClock(NOW + timedelta(days=3_000))
    await store_old_rows(database, clock)
    await note(database, NOW)
    await note(database, clock.now())  # by the clock that is in question

    with capture_logs() as logs:
        await Retention(database, clock=clock, confirmation=ClockConfirmation(database, clock=clock)).work()

    assert await left(database) == [1, 0, 0, 0, 0, 0, 0, 0]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("retention_held_back", "error")]


async def test_nothing_goes_while_nothing_speaks_for_the_clock(database: Database, clock: VirtualClock) -> None:
    retention = Retention(database, clock=clock, confirmation=ClockConfirmation(database, clock=clock))
    await database.execute("insert into tier_recipients values ('org_1', 'num_1', 1, $1)", NOW - timedelta(days=2))
    with capture_logs() as logs:
        await retention.work()
        assert (await left(database))[2] == 1
        await clock.advance(86_400)
        await retention.work()
        assert (await left(database))[2] == 0
    assert logs == []
