"""Campaigns as rows: opened with their messages, completed once they are through, opened again (C15.6)."""

import asyncio
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import asyncpg
import pytest
from tests.plans import indexes, plan_for_any, whole_tables
from tests.waiting import until_locked_out

from recado.domain.batches.campaign import CampaignStatus
from recado.domain.core.ids import BATCH, MESSAGE, IdSource
from recado.engine.clock import VirtualClock
from recado.storage.batches import campaigns, totals
from recado.storage.batches.campaigns import Gain
from recado.storage.core.connections.pool import Pool
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Moved
from recado.storage.core.upkeep.migrate import migrate, read_migrations

ORGANIZATION = "org_" + "1" * 21
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
KEY = (ORGANIZATION, "test", "spring")
_ids = IdSource(VirtualClock(START), random.Random(5))


def moves(
    count: int, before: str | None, after: str, *, campaign: str = "spring", channel: str = "chatapp", coins: int = 0
) -> list[Moved]:
    return [
        Moved(ORGANIZATION, "test", channel, _ids.new(MESSAGE), before, after, coins, campaign_id=campaign)
        for _ in range(count)
    ]


async def commit(db: Database, moved: Sequence[Moved], at: datetime = START) -> None:
    """What the commit of these moves writes, in its order."""
    async with db.transaction() as connection:
        await totals.add(connection, totals.deltas(moved), at)
        new = {(m.organization_id, m.env, m.campaign_id or "", m.channel) for m in moved if m.from_status is None}
        if new:
            await campaigns.opened(connection, new)


async def complete(db: Database, at: datetime) -> campaigns.Campaign | None:
    async with db.transaction() as connection:
        return await campaigns.complete(connection, KEY, at - QUARTER, at)


async def batch(db: Database, status: str, *, requested: int = 0, skipped: int = 0, campaign: str = "spring") -> None:
    await db.execute(
        "insert into batches (organization_id, env, id, channel, sender_id, type, class, campaign_id, status,"
        " requested, skipped, skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at)"
        " values ($1, 'test', $2, 'chatapp', 'num_', 'template', 2, $3, $4, $5, $6, '{}', '[]', 1, 0, 0, $7, now())",
        ORGANIZATION, _ids.new(BATCH), campaign, status, requested, skipped,
        status in {"building", "running", "paused"},
    )  # fmt: skip


async def test_a_campaign_comes_to_be_with_its_first_message(database: Database) -> None:
    assert await campaigns.get(database, *KEY) is None
    await commit(database, moves(3, None, "queued"))
    found = await campaigns.get(database, *KEY)
    assert found is not None
    assert (found.status, found.channels, found.completions) == (CampaignStatus.RUNNING, ["chatapp"], 0)
    assert (found.requested, found.accepted, found.queued) == (3, 3, 3)
    assert (found.first_message_at, found.last_message_at, found.completed_at) == (START, START, None)


async def test_it_knows_every_channel_and_when_the_last_message_came(database: Database) -> None:
    later = START + timedelta(minutes=3)
    await commit(database, [*moves(1, None, "queued"), *moves(1, None, "queued", channel="sms")])
    await commit(database, moves(1, None, "queued", channel="rcs"), later)
    found = await campaigns.get(database, *KEY)
    assert found is not None
    assert found.channels == ["chatapp", "rcs", "sms"]
    assert (found.first_message_at, found.last_message_at) == (START, later)


async def test_it_is_through_when_nothing_waits_and_a_quarter_of_an_hour_has_passed(database: Database) -> None:
    await commit(database, moves(2, None, "queued"))
    assert await campaigns.through(database, START + timedelta(hours=2), 10) == []
    await commit(database, [*moves(1, "sending", "sent"), *moves(1, "queued", "failed")])
    assert await campaigns.through(database, START - timedelta(seconds=1), 10) == []
    assert await campaigns.through(database, START, 10) == [KEY]


@pytest.mark.parametrize(
    ("status", "waits"),
    [("building", True), ("running", True), ("paused", True), ("completed", False), ("canceled", False)],
)
async def test_a_batch_with_more_to_come_keeps_it_running(database: Database, status: str, waits: bool) -> None:
    await commit(database, moves(1, None, "queued"))
    await commit(database, moves(1, "sending", "sent"))
    await batch(database, status)
    await batch(database, "running", campaign="summer")
    assert await campaigns.through(database, START, 10) == ([] if waits else [KEY])


async def test_a_batch_that_comes_between_the_look_and_the_completion_keeps_it_running(database: Database) -> None:
    await commit(database, moves(1, None, "sent"))
    at = START + QUARTER
    assert await campaigns.through(database, START, 10) == [KEY]
    await batch(database, "building")
    assert await complete(database, at) is None
    await database.execute("update batches set status = 'completed', open = false")
    assert await complete(database, at) is not None


async def test_it_completes_once_and_a_later_message_opens_it_again(database: Database) -> None:
    at = START + QUARTER
    await commit(database, moves(1, None, "queued"))
    assert await complete(database, at) is None
    await commit(database, moves(1, "sending", "sent"))
    completed = await complete(database, at)
    assert completed is not None
    assert (completed.status, completed.completions, completed.completed_at) == (CampaignStatus.COMPLETED, 1, at)
    assert await complete(database, at) is None
    assert await campaigns.through(database, at, 10) == []

    await commit(database, moves(1, None, "queued"), at)
    again = await campaigns.get(database, *KEY)
    assert again is not None
    assert (again.status, again.completions, again.completed_at) == (CampaignStatus.RUNNING, 1, None)
    await commit(database, moves(1, "queued", "archived"))
    second = await complete(database, at + QUARTER)
    assert second is not None
    assert (second.completions, second.accepted, second.archived) == (2, 2, 1)


async def test_reports_do_not_open_it_again(database: Database) -> None:
    await commit(database, moves(1, None, "queued"))
    await commit(database, moves(1, "sending", "sent"))
    await complete(database, START + QUARTER)
    await commit(database, moves(1, "sent", "read"), START + timedelta(hours=1))
    found = await campaigns.get(database, *KEY)
    assert found is not None
    assert (found.status, found.sent, found.read) == (CampaignStatus.COMPLETED, 0, 1)


async def test_a_message_and_a_completion_at_the_same_moment_leave_it_running(database: Database) -> None:
    await commit(database, moves(1, None, "queued"))
    await commit(database, moves(1, "sending", "sent"))
    at = START + QUARTER
    async with database.transaction() as connection:
        assert await campaigns.complete(connection, KEY, START, at) is not None
        accepted = asyncio.create_task(commit(database, moves(1, None, "queued"), at))
        await until_locked_out(database)  # it waits for the completion, which it then undoes
        assert not accepted.done()
    await accepted
    found = await campaigns.get(database, *KEY)
    assert found is not None
    assert (found.status, found.completions, found.queued) == (CampaignStatus.RUNNING, 1, 1)


async def test_what_many_count_at_the_same_moment_adds_up(database: Database) -> None:
    await commit(database, moves(1, None, "queued"))
    gain = Gain(clicks=1, conversions=2, conversion_value=Decimal("0.1"))

    async def add(pool: Pool) -> None:
        async with pool.transaction() as connection:
            await campaigns.add(connection, {KEY: gain})

    async with database.transaction() as connection:
        await campaigns.add(connection, {KEY: gain, (ORGANIZATION, "test", "none"): gain})
        second = asyncio.create_task(add(database.hot))
        await until_locked_out(database)
    await second
    found = await campaigns.get(database, *KEY)
    assert found is not None
    assert (found.clicks, found.conversions, found.conversion_value) == (2, 4, Decimal("0.2"))


@pytest.mark.parametrize("statement", [campaigns.SQL.lock_several, campaigns.SQL.add])
async def test_campaigns_to_count_in_are_found_by_their_key(database: Database, statement: str) -> None:
    """Also by a plan that was made while the table was empty."""
    found = await plan_for_any(database.hot, statement)
    assert not whole_tables(found)
    assert indexes(found) == {"campaigns_pkey"}


async def test_what_batches_left_out_and_have_still_to_make_was_requested_too(database: Database) -> None:
    await commit(database, moves(4, None, "queued", coins=600))
    await commit(database, moves(1, "sending", "sent", coins=600))
    await batch(database, "building", requested=10, skipped=3)
    found = await campaigns.get(database, *KEY)
    assert found is not None
    # No message of the batch was made yet: ten are asked for beside the four.
    assert (found.requested, found.accepted, found.skipped, found.charged_coins) == (14, 4, 3, 600)


async def test_the_list_shows_the_newest_first_by_status_and_period(database: Database) -> None:
    names = ["a", "b", "c", "d"]
    for position, name in enumerate(names):
        await commit(database, moves(1, None, "queued", campaign=name), START + timedelta(hours=position))
    await database.execute("update campaigns set status = 'completed' where campaign_id = 'b'")
    await database.execute(
        "insert into campaigns"
        " select organization_id, 'live', campaign_id, status, channels, first_message_at from campaigns"
    )

    async def listed(**filters: Any) -> tuple[list[str], int]:
        page = await campaigns.list_page(database, ORGANIZATION, "test", **{"limit": 50, "skip": 0, **filters})
        return [item.campaign_id for item in page.items], page.total

    assert await listed() == (["d", "c", "b", "a"], 4)
    assert await listed(limit=2, skip=1) == (["c", "b"], 4)
    assert await listed(status="completed") == (["b"], 1)
    assert await listed(start=START + timedelta(hours=1), end=START + timedelta(hours=3)) == (["c", "b"], 2)


@pytest.mark.long
async def test_messages_from_before_campaigns_are_counted_by_the_migration(postgres: dict[str, Any]) -> None:
    connection = await asyncpg.connect(**postgres)
    await connection.execute("create database recado_campaigns_before")
    await connection.close()
    db = Database(
        {**postgres, "database": "recado_campaigns_before"}, clock=VirtualClock(START), pool_size=2, hot_size=1
    )
    await db.start()
    try:
        before = [migration for migration in read_migrations() if migration.name < "0005"]
        await migrate(db, before)
        clock = VirtualClock(START)
        old, new = IdSource(clock, random.Random(1)), IdSource(clock, random.Random(2))
        await db.execute("create table messages_all partition of messages default")
        rows = [("spring", old.new(MESSAGE), status) for status in ("sent", "read", "failed", "archived", "delivered")]
        rows += [("autumn", new.new(MESSAGE), status) for status in ("queued", "sending", "sent")]
        for campaign, message_id, status in rows:
            await db.execute(
                "insert into messages (organization_id, env, channel, id, direction, status, type, recipient,"
                " recipient_hash, class, force, campaign_id, updated_at)"
                " values ($1, 'test', 'chatapp', $2, 'outbound', $3, 'template', '+5511', 1, 1, false, $4, now())",
                ORGANIZATION, message_id, status, campaign,
            )  # fmt: skip
        await migrate(db)
        spring = await campaigns.get(db, *KEY)
        autumn = await campaigns.get(db, ORGANIZATION, "test", "autumn")
        assert spring is not None
        assert autumn is not None
        counts = (
            spring.accepted,
            spring.queued,
            spring.sent,
            spring.delivered,
            spring.read,
            spring.failed,
            spring.archived,
        )
        assert counts == (5, 0, 1, 1, 1, 1, 1)
        assert (spring.status, spring.completions, spring.completed_at) == ("completed", 1, START + QUARTER)
        assert (spring.first_message_at, spring.channels) == (START, ["chatapp"])
        assert (autumn.status, autumn.accepted, autumn.queued, autumn.sent) == ("running", 3, 2, 1)
    finally:
        await db.stop()
