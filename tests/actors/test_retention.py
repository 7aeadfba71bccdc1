"""The daily round of retention (C32)."""

import os
import random
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs
from tests.waiting import until

from recado.actors.retention import Retention
from recado.domain.ids import AUDIT, MESSAGE, IdSource, lowest_id
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.organizations import create_organization
from recado.storage.partitions import ensure_partitions
from recado.storage.postgres import Database

NOW = datetime(2031, 6, 15, 12, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


async def witness(database: Database, at: datetime, *, by: str = "audit") -> None:
    """Somebody did something then: an entry in the audit, or a minute in which a number sent."""
    organization_id, number_id = await database.fetchrow("select organization_id, id from numbers limit 1")
    if by == "audit":
        await database.execute(
            "insert into audit (organization_id, id, actor_type, actor_id, action, details) "
            "values ($1, $2, 'system', 'system', 'number.create', '{}')",
            organization_id, lowest_id(AUDIT, at),
        )  # fmt: skip
    else:
        await database.execute(
            "insert into number_minutes values ($1, $2, $3, 1, 0, 0)", organization_id, number_id, at
        )


async def store_old_rows(database: Database, clock: VirtualClock) -> None:
    """One row of each kind that the next round removes or empties."""
    ids = IdSource(clock, random.Random(8))
    async with database.transaction() as connection:
        made = await create_organization(connection, ids, name="Acme", now=NOW, random_bytes=os.urandom)
    organization_id = made.organization.id
    number_id = await database.fetchval("select id from numbers where organization_id = $1", organization_id)
    for at in (NOW - timedelta(days=400), NOW - timedelta(days=900)):
        await ensure_partitions(database, at, months_ahead=0)
        await database.execute(
            "insert into messages (organization_id, env, channel, id, direction, status, type, number_id, recipient, "
            "recipient_hash, class, force, payload, updated_at) "
            "values ($1, 'test', 'chatapp', $2, 'outbound', 'sent', 'text', $3, '+1', 1, 1, false, '{}', now())",
            organization_id, lowest_id(MESSAGE, at), number_id,
        )  # fmt: skip
    for table in ("tier_recipients", "chat_windows"):
        await database.execute(
            f"insert into {table} values ($1, $2, 1, $3)", organization_id, number_id, NOW - timedelta(days=2)
        )
    await database.execute(
        "insert into number_minutes values ($1, $2, $3, 1, 0, 0)", organization_id, number_id, NOW - timedelta(days=900)
    )
    await database.execute(
        "insert into audit (organization_id, id, actor_type, actor_id, action, details) "
        "values ($1, $2, 'system', 'system', 'number.age', '{}')",
        organization_id, lowest_id(AUDIT, NOW - timedelta(days=2000)),
    )  # fmt: skip


async def left(database: Database) -> list[int]:
    """How many rows there are of what is stored by `store_old_rows`; of messages, and of those with content."""
    counts = [
        "select count(*) from messages",
        "select count(payload) from messages",
        "select count(*) from tier_recipients",
        "select count(*) from chat_windows",
        "select count(*) from number_minutes",
        "select count(*) from audit where action = 'number.age'",
    ]
    return [await database.fetchval(count) for count in counts]


async def test_a_round_removes_everything_that_is_past_its_time(database: Database, clock: VirtualClock) -> None:
    retention = Retention(database, clock=clock)
    await store_old_rows(database, clock)
    await witness(database, NOW - timedelta(days=2))
    assert await left(database) == [2, 2, 1, 1, 1, 1]
    await retention.work()
    assert await left(database) == [1, 0, 0, 0, 0, 0]
    await retention.work()
    assert await left(database) == [1, 0, 0, 0, 0, 0]


async def test_the_first_round_comes_with_the_start(database: Database, clock: VirtualClock) -> None:
    retention = Retention(database, clock=clock)
    await store_old_rows(database, clock)
    await witness(database, NOW - timedelta(days=2))
    await retention.start()
    try:

        async def gone() -> bool:
            return await left(database) == [1, 0, 0, 0, 0, 0]

        await until(gone, 10, "the first round is through")
    finally:
        await retention.stop()
    await retention.stop()


async def test_a_clock_that_nothing_speaks_for_costs_nothing(database: Database, clock: VirtualClock) -> None:
    retention = Retention(database, clock=clock)
    await store_old_rows(database, clock)
    await witness(database, NOW - timedelta(days=32))
    await witness(database, NOW - timedelta(hours=23))  # by the same clock
    before = await left(database)

    with capture_logs() as logs:
        await retention.work()

    assert await left(database) == before
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("retention_skipped", "error")]


@pytest.mark.parametrize("by", ["audit", "number"])
async def test_whatever_was_stored_within_the_month_speaks_for_the_clock(
    database: Database, clock: VirtualClock, by: str
) -> None:
    await store_old_rows(database, clock)
    await witness(database, NOW - timedelta(days=30), by=by)
    await Retention(database, clock=clock).work()
    assert (await left(database))[:2] == [1, 0]


async def test_a_process_that_was_here_within_the_month_speaks_for_the_clock(
    database: Database, clock: VirtualClock
) -> None:
    retention = Retention(database, clock=clock)
    await store_old_rows(database, clock)
    await witness(database, NOW - timedelta(days=30))
    for _ in range(20):  # nobody does anything for 500 days
        await retention.work()
        await clock.advance(25 * 86_400)
    assert (await left(database))[0] == 0
    await store_old_rows(database, clock)
    await clock.advance(32 * 86_400)
    await retention.work()
    assert (await left(database))[0] == 2


async def test_an_installation_without_old_months_needs_no_witness(database: Database) -> None:
    with capture_logs() as logs:
        await Retention(database, clock=VirtualClock(SystemClock().now())).work()
    assert logs == []
