"""Reports that meet the settlement of the same call: whoever is second sees what the first has done (C15.4, C29.2)."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.causes import cause
from tests.storage.dispatch.test_claims import CLOCK, NOW, NUMBER, ORGANIZATION, of, stored
from tests.waiting import until_locked_out

from recado.domain.channels.policy import ReportGuard
from recado.domain.channels.source import Source
from recado.domain.core.ids import MESSAGE, IdSource
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Moved
from recado.storage.dispatch import dispatch, epochs, settlements
from recado.storage.dispatch.dispatch import CLAIMED
from recado.storage.dispatch.settlements import Departed, Failed, Uncertain
from recado.storage.messages import receipts
from recado.storage.messages.receipts import ReportRow

ANY_ID = IdSource(CLOCK, random.Random(6)).new(MESSAGE)
LEFT_AT = NOW + timedelta(milliseconds=40)
DAY = timedelta(hours=24)
Settling = Callable[[Any, str], Awaitable[Any]]


async def sending(db: Database) -> str:
    message_id = await stored(db)
    epoch = await epochs.take_epoch(db, NOW)
    assert await dispatch.claim(db, [of(message_id)], epoch, NOW) == [CLAIMED]
    return message_id


def report(message_id: str, status: str) -> ReportRow:
    return ReportRow(ORGANIZATION, "test", "chatapp", message_id, status, NOW, None, "provider-1")


async def departs(connection: Any, message_id: str, at: datetime = NOW) -> list[Moved]:
    departed = Departed(
        ORGANIZATION, "test", "chatapp", message_id, NUMBER, "provider-1", at, "utility", None, NOW
    )  # fmt: skip
    return list(await settlements.departed(connection, [departed]))


async def becomes_uncertain(connection: Any, message_id: str) -> None:
    """As `settlements.uncertain` and the rescuer write it."""
    await connection.execute(
        "update dispatch set reason = 'uncertain', not_before = 'infinity' where id = $1", message_id
    )


@asynccontextmanager
async def while_it_settles(db: Database, settle: Settling, message_id: str) -> AsyncIterator[None]:
    """The block begins before the settlement is committed; it is committed when somebody waits for it."""
    begun = asyncio.Event()

    async def settling() -> None:
        async with db.transaction() as connection:
            await settle(connection, message_id)
            begun.set()
            await until_locked_out(db)  # the report waits for the settlement

    task = asyncio.create_task(settling())
    await begun.wait()
    try:
        yield
    finally:
        await task


@pytest.mark.parametrize(
    ("settle", "moves"),
    [
        (becomes_uncertain, [("sending", "sent"), ("sent", "read")]),
        (departs, [("sent", "read")]),
    ],
    ids=["unknown", "accepted"],
)
async def test_a_report_that_meets_the_settlement_of_its_call_moves_the_message_once(
    database: Database, settle: Settling, moves: list[tuple[str, str]]
) -> None:
    message_id = await sending(database)

    async with while_it_settles(database, settle, message_id):
        found = await receipts.apply(database, [report(message_id, "read")], NOW)

    assert [(move.from_status, move.to_status) for move in found[message_id]] == moves
    assert await database.fetchval("select count(*) from dispatch where id = $1", message_id) == 0
    assert await database.fetchval("select status from messages where id = $1", message_id) == "read"
    later = await receipts.apply(database, [report(message_id, "delivered")], NOW)
    assert later == {message_id: []}


async def is_delivered(connection: Any, message_id: str) -> None:
    await receipts.apply(connection, [report(message_id, "delivered")], NOW)


async def test_reports_at_the_same_moment_move_the_message_one_after_the_other(database: Database) -> None:
    message_id = await sending(database)
    await departs(database, message_id)

    async with while_it_settles(database, is_delivered, message_id):
        found = await receipts.apply(database, [report(message_id, "read")], NOW)

    assert [(move.from_status, move.to_status) for move in found[message_id]] == [("delivered", "read")]


@pytest.mark.parametrize("status", ["delivered", "read", "failed"])
async def test_a_report_before_the_answer_leaves_the_departure_to_the_answer(database: Database, status: str) -> None:
    message_id = await sending(database)
    early = replace(report(message_id, status), cause=cause("provider_error: no") if status == "failed" else None)
    await receipts.apply(database, [early], NOW)

    assert await departs(database, message_id, LEFT_AT) == []

    row = await database.fetchrow("select status, sent_at from messages where id = $1", message_id)
    assert row is not None
    assert (row["status"], row["sent_at"]) == (status, LEFT_AT)


async def test_a_report_of_a_message_that_is_not_there_is_not_answered(database: Database) -> None:
    assert await receipts.apply(database, [report(ANY_ID, "read")], NOW) == {}


async def test_a_report_from_another_environment_leaves_a_message_that_it_names_in_the_queue(
    database: Database,
) -> None:
    """A provider may name any id: without its row of the queue the message would never end."""
    message_id = await sending(database)

    assert await receipts.apply(database, [replace(report(message_id, "delivered"), env="live")], NOW) == {}

    assert await database.fetchval("select count(*) from dispatch where id = $1", message_id) == 1
    assert await departs(database, message_id, LEFT_AT) != []


async def test_a_report_that_a_channel_does_not_know_of_what_it_has_in_hand_leaves_it_in_the_queue(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a channel whose providers tell of no reading: its policy lists no such report."""
    message_id = await sending(database)
    monkeypatch.setattr(receipts, "report_guard", lambda channel, kind: ReportGuard(None, (), ()))

    assert await receipts.apply(database, [report(message_id, "read")], NOW) == {message_id: []}

    assert await database.fetchval("select count(*) from dispatch where id = $1", message_id) == 1
    assert await departs(database, message_id, LEFT_AT) != []


async def test_a_message_that_was_sent_after_all_and_failed_for_certain_is_not_sent_once_more(
    database: Database,
) -> None:
    """Its `originalError` still tells of the unknown outcome; its price must be told to the totals once."""
    message_id = await sending(database)
    await database.execute("delete from dispatch where id = $1", message_id)
    await database.execute(
        "update messages set status = 'failed', original_error = 'outcome_unknown: no report', price_coins = 7, "
        "last_error = 'replaced by msg_1', failure_code = 'outcome_unknown', outcome_certain = false where id = $1",
        message_id,
    )
    moves: list[Moved] = []
    for status in ("sent", "failed", "delivered"):
        row = replace(report(message_id, status), cause=cause("provider_error: no") if status == "failed" else None)
        moves += (await receipts.apply(database, [row], NOW))[message_id]

    assert [(move.from_status, move.to_status, move.coins) for move in moves] == [
        ("failed", "sent", 7),
        ("sent", "failed", 0),
    ]
    assert await database.fetchval("select status from messages where id = $1", message_id) == "failed"


# A message that a report settles left when its call began, up to 50 ms after its claim (C14.5) ------------------------


async def sent_at(db: Database, message_id: str) -> datetime:
    return await db.fetchval("select sent_at from messages where id = $1", message_id)  # type: ignore[no-any-return]


async def test_a_message_of_unknown_outcome_that_a_report_settles_left_when_its_call_began(database: Database) -> None:
    message_id = await sending(database)
    await settlements.uncertain(database, [Uncertain(ORGANIZATION, message_id, NUMBER, LEFT_AT)])

    await receipts.apply(database, [report(message_id, "sent")], NOW)

    assert await sent_at(database, message_id) == LEFT_AT


async def test_a_report_that_is_faster_than_the_answer_is_told_when_the_call_began(database: Database) -> None:
    message_id = await sending(database)

    await receipts.apply(database, [replace(report(message_id, "delivered"), departed_at=LEFT_AT)], NOW)

    row = await database.fetchrow("select sent_at, delivered_at from messages where id = $1", message_id)
    assert row is not None
    assert (row["sent_at"], row["delivered_at"]) == (LEFT_AT, LEFT_AT)  # no report comes before its call


# What failed by unknown outcome left when its call began, a day or more before its report (C14.4, C15.4) --------------

GIVEN_UP_AT = LEFT_AT + DAY + timedelta(seconds=1)
LATE = GIVEN_UP_AT + timedelta(hours=3)
SENT, DELIVERED, READ = "sent_at", "delivered_at", "read_at"


async def given_up(db: Database) -> str:
    """As the rescuer fails it: no report came within a day."""
    message_id = await sending(db)
    await settlements.uncertain(db, [Uncertain(ORGANIZATION, message_id, NUMBER, LEFT_AT)])
    (found,) = await dispatch.to_give_up(db, GIVEN_UP_AT - DAY)
    error = cause("outcome_unknown: no report")
    unknown = Failed(ORGANIZATION, "test", "chatapp", message_id, error, GIVEN_UP_AT, False, found["called_at"])
    assert len(await settlements.failed(db, [unknown])) == 1
    return message_id


async def minutes(db: Database) -> list[tuple[datetime, int]]:
    rows = await db.fetch("select minute, sent from sender_minutes where sender_id = $1 order by minute", NUMBER)
    return [(row["minute"], row["sent"]) for row in rows]


@pytest.mark.parametrize(
    ("status", "moments"), [("sent", [SENT]), ("delivered", [DELIVERED]), ("read", [DELIVERED, READ])]
)
async def test_a_late_report_tells_when_the_call_of_an_unknown_outcome_began(
    database: Database, status: str, moments: list[str]
) -> None:
    message_id = await given_up(database)
    assert await sent_at(database, message_id) is None
    assert await minutes(database) == []

    await receipts.apply(database, [replace(report(message_id, status), at=LATE)], LATE)

    row = await database.fetchrow("select sent_at, delivered_at, read_at from messages where id = $1", message_id)
    assert row is not None
    reported = dict.fromkeys(set(moments) - {SENT}, LATE)
    assert dict(row) == {SENT: LEFT_AT, DELIVERED: None, READ: None, **reported}
    assert await minutes(database) == [(LEFT_AT.replace(second=0, microsecond=0), 1)]


async def test_a_message_that_a_late_report_revives_counts_once_and_is_known_by_the_provider_s_id(
    database: Database,
) -> None:
    message_id = await given_up(database)

    for status in ("sent", "delivered", "delivered", "read", "failed"):
        told = replace(report(message_id, status), at=LATE, account="pn-1", adapter="bridge")
        await receipts.apply(database, [told], LATE)

    assert [sent for _, sent in await minutes(database)] == [1]
    source = Source("chatapp", "bridge", "test")
    named = await receipts.messages_named(database, source, [("provider-1", "pn-1"), ("provider-1", "pn-2")])
    assert named == [(ORGANIZATION, message_id, source.channel), None]


async def test_late_reports_at_the_same_moment_count_the_message_once(database: Database) -> None:
    message_id = await given_up(database)

    async with while_it_settles(database, is_delivered, message_id):
        found = await receipts.apply(database, [report(message_id, "read")], NOW)

    assert [(move.from_status, move.to_status) for move in found[message_id]] == [("delivered", "read")]
    assert [sent for _, sent in await minutes(database)] == [1]


async def test_a_late_report_by_a_clock_that_is_behind_comes_no_earlier_than_the_call(database: Database) -> None:
    message_id = await given_up(database)

    await receipts.apply(database, [report(message_id, "read")], LATE)

    row = await database.fetchrow("select sent_at, delivered_at, read_at from messages where id = $1", message_id)
    assert row is not None
    assert tuple(row) == (LEFT_AT, LEFT_AT, LEFT_AT)


async def test_a_failure_whose_call_nobody_knows_any_more_left_when_its_report_says(database: Database) -> None:
    """It failed before the moment was kept."""
    message_id = await given_up(database)
    await database.execute("update messages set called_at = null where id = $1", message_id)

    await receipts.apply(database, [replace(report(message_id, "delivered"), at=LATE)], LATE)

    assert await sent_at(database, message_id) == LATE
    assert await minutes(database) == [(LATE.replace(second=0, microsecond=0), 1)]


async def test_a_message_that_fails_for_certain_keeps_no_moment_of_a_call(database: Database) -> None:
    message_id = await sending(database)
    refused = Failed(ORGANIZATION, "test", "chatapp", message_id, cause("provider_error: no"), LEFT_AT, False)

    assert len(await settlements.failed(database, [refused])) == 1

    assert await database.fetchval("select called_at from messages where id = $1", message_id) is None
