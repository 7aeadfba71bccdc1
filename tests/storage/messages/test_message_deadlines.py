"""Deadlines as rows: each is found through an index, and taken once."""

import asyncio
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.plans import plan_for_any, whole_tables
from tests.post import LETTERS, POST

from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.journeys.belonging import SINGLE
from recado.domain.messages.message import Cause, MessageEvent, MessageStatus
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import message_deadlines, state_moves

NOW = datetime(2026, 11, 25, 12, tzinfo=UTC)
IDS = IdSource(SystemClock(), random.Random(13))
ORGANIZATION = "org_" + "1".zfill(21)
MOMENTS = ("delivered_at", "read_at", "failed_at", "archived_at")
FILL = """
insert into message_deadlines (organization_id, env, channel, message_id, kind, due_at, held_coins)
select 'org_' || lpad((n % 10)::text, 21, '0'), 'live', 'post', 'msg_' || lpad(n::text, 21, '0'), 'report',
    $1::timestamptz + n * interval '1 second', n % 3
from generate_series(1, 20000) n
"""


async def test_every_look_takes_an_index(database: Database) -> None:
    await database.execute(FILL, NOW)
    await database.execute("analyze message_deadlines")
    await database.execute("analyze messages")
    for name in ("any", "take", "put_off", "end", "belonging", "hold_belonging"):
        found = await plan_for_any(database.hot, getattr(message_deadlines.SQL, name))
        assert not whole_tables(found), (name, found)


async def test_what_is_due_is_taken_once_in_blocks_and_the_rest_waits(database: Database) -> None:
    await database.execute(FILL, NOW)
    at = NOW + timedelta(seconds=5)
    assert not await message_deadlines.any_due(database, NOW)
    assert await message_deadlines.any_due(database, at)
    async with database.hot.transaction() as one, database.transaction() as other:
        first = await message_deadlines.take(one, at, 3)
        second = await message_deadlines.take(other, at, 3)
    assert [each.message_id[-1] for each in first] == ["1", "2", "3"]
    assert [each.message_id[-1] for each in second] == ["4", "5"]
    assert await message_deadlines.take(database, at, 3) == []
    assert await database.fetchval("select count(*) from message_deadlines") == 20_000 - 5


async def stored(database: Database, status: str, channel: str = POST) -> tuple[str, str, str]:
    message_id = IDS.new(MESSAGE)
    await database.execute(
        """
        insert into messages (organization_id, env, channel, id, direction, status, type, recipient, recipient_hash,
            class, force, sent_at, failed_at, last_error, failure_code, outcome_certain, updated_at)
        values ($1, 'live', $2, $3, 'outbound', $4, 'text', '+1', 1, 1, false, $5::timestamptz, $6, 'x: y', 'x', false,
            $5)
        """,
        ORGANIZATION, channel, message_id, status, NOW, NOW if status == "undelivered" else None,
    )  # fmt: skip
    return (ORGANIZATION, "live", message_id)


@pytest.mark.parametrize(
    ("before", "event", "after", "moments"),
    [
        ("sent", MessageEvent.OVERDUE, "undelivered", {"failed_at"}),
        ("sent", MessageEvent.REPORT_DELIVERED, "delivered", {"delivered_at"}),
        ("delivered", MessageEvent.REPORT_READ, "complained", {"delivered_at"}),
        ("undelivered", MessageEvent.LATE_DELIVERED, "delivered", {"delivered_at"}),
        ("delivered", MessageEvent.OVERDUE, "delivered", set()),
    ],
)
async def test_an_event_moves_what_knows_it_and_sets_the_moment_of_its_new_state(
    database: Database, monkeypatch: pytest.MonkeyPatch, before: str, event: MessageEvent, after: str, moments: set[str]
) -> None:
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    key, other = await stored(database, before), await stored(database, before, "chatapp")
    at, cause = NOW + timedelta(hours=72), Cause("indeterminate", "no report", certain=False)
    fails = "failed_at" in moments
    async with database.transaction() as connection:
        moved = await state_moves.move(connection, POST, [key, other], event, at, cause if fails else None)
    assert [(move.id, move.from_status, move.to_status) for move in moved] == (
        [(key[2], before, after)] if before != after else []
    )
    row: Any = await database.fetchrow("select * from messages where id = $1", key[2])
    assert row["status"] == after
    assert {
        name for name in ("delivered_at", "read_at", "failed_at", "archived_at") if row[name] is not None
    } == moments
    assert row["sent_at"] == NOW
    if fails:
        assert (row["last_error"], row["failure_code"]) == ("indeterminate: no report", "indeterminate")
        assert row["outcome_certain"] is False
    elif moved:
        assert (row["last_error"], row["failure_code"], row["outcome_certain"]) == (None, None, None)
    assert await database.fetchval("select status from messages where id = $1", other[2]) == before


def test_no_state_of_a_message_that_has_left_lacks_a_moment() -> None:
    assert set(MessageStatus) - set(state_moves.REACHED_AT) == {MessageStatus.QUEUED, MessageStatus.SENDING}


async def test_a_look_at_whom_a_message_belongs_to_waits_for_nobody_and_who_holds_it_does(database: Database) -> None:
    key = await stored(database, "sent")
    due = message_deadlines.DueDeadline(*key[:2], POST, key[2], "fallback", NOW, 0)

    async def hold() -> None:
        async with database.hot.transaction() as connection:
            await connection.execute("set local lock_timeout = '20ms'")
            await message_deadlines.hold_belonging(connection, due)

    async with database.transaction() as another:
        await another.execute("select from messages where id = $1 for update", key[2])
        found = await asyncio.wait_for(message_deadlines.belonging(database.hot, due), 10)
        assert found is not None
        assert found.owner(key[2]) == SINGLE
        with pytest.raises(Unavailable):
            await hold()
