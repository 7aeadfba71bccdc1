"""What is due for messages that have left: noted when they leave, gone when they move on, handled when it is due."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.post import LETTERS, POST, RECEIPT, REPORT
from tests.purse import ENV, Purse
from tests.waiting import until_locked_out

from recado.domain.channels.policies import POLICIES
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import FailureCode
from recado.engine.clock import SystemClock
from recado.services.effects import overdue
from recado.services.effects.overdue import Handlers
from recado.storage.billing import ledger
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Money, Moved
from recado.storage.dispatch.settlements import Capture
from recado.storage.messages import message_reads, receipts, state_moves
from recado.storage.messages.message_deadlines import DueDeadline
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.receipts import ReportRow

CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(11))
BALANCE = 1_000_000
SUBSCRIPTION = "wbh_" + "1" * 21
A_SUBSCRIPTION = """
insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events,
    include_pii, max_attempts, backoff_seconds, status, revision, updated_at)
values ($1, $2, $3, 'https://x', 's', 1, '{sms.undelivered,sms.delivered}', false, 8, 30, 'active', 1, now())
"""


@pytest.fixture
async def purse(database: Database, monkeypatch: pytest.MonkeyPatch) -> Purse:
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    purse = await Purse(database, CLOCK, IDS).open()
    await purse.credit(BALANCE)
    await database.execute(A_SUBSCRIPTION, purse.organization_id, SUBSCRIPTION, ENV)
    return purse


async def letters(purse: Purse, *coins: int, **changes: Any) -> list[NewMessage]:
    """Claimed letters of a campaign; what each of them holds."""
    fields: dict[str, Any] = {"channel": POST, "price_kind": "sms_premium", "campaign_id": "spring", **changes}
    stored = [purse.message(each, **fields) for each in coins]
    await purse.store(*stored)
    for message in stored:
        await purse.claim(message)
    return stored


async def deadlines(purse: Purse) -> list[tuple[str, str, datetime, int]]:
    rows = await purse.database.fetch(
        "select message_id, kind, due_at, held_coins from message_deadlines order by message_id, kind"
    )
    return [tuple(row) for row in rows]


async def totals(purse: Purse) -> dict[str, int]:
    row = await purse.database.fetchrow(
        "select queued, sent, delivered, failed, held_coins, charged_coins from totals where kind = 'campaign'"
    )
    return {name: value for name, value in dict(row or {}).items() if value}


async def told(purse: Purse) -> list[str]:
    rows = await purse.database.fetch("select type from events where message_id is not null order by id")
    return [row["type"] for row in rows]


async def test_a_departure_notes_what_is_due_by_the_policy_and_what_it_knows_of_the_message(purse: Purse) -> None:
    plain, soon, silent = await letters(purse, 600, 600, 600)
    soon.details, silent.details = '{"hours":1,"receipt":true}', '{"unreported":true}'
    other = purse.message(600)
    await purse.store(other)
    await purse.claim(other)
    rows = purse.departed(plain, soon, silent, other)
    await purse.recording.record(rows)
    left_at = rows[0].sent_at
    assert await deadlines(purse) == [
        (plain.id, REPORT, left_at + timedelta(hours=72), 0),
        (soon.id, RECEIPT, left_at + timedelta(hours=1), 0),
        (soon.id, REPORT, left_at + timedelta(hours=1), 0),
    ]
    await purse.recording.record(rows)  # as after an answer that was lost
    assert len(await deadlines(purse)) == 3
    await purse.check()


@pytest.mark.parametrize("status", ["ok", "low"], ids=["in one statement", "in steps"])
@pytest.mark.parametrize("kept", [False, True], ids=["released", "kept"])
async def test_what_a_departure_does_not_capture_is_released_with_it_or_stays_held(
    purse: Purse, kept: bool, status: str
) -> None:
    """A wallet that is low may recover by what is let go: it is looked at then."""
    (letter,) = await letters(purse, 1_800, units=3, details=None if kept else '{"unreported":true}')
    await purse.database.execute(
        "update wallets set status = $2, low_balance_threshold_coins = $3 where organization_id = $1",
        purse.organization_id, status, 0 if status == "ok" else 2 * BALANCE,
    )  # fmt: skip

    await purse.depart(letter, capture=Capture(1_100, 1, "rcs_text"))

    rest = 700 if kept else 0
    assert await purse.standing() == (BALANCE - 1_100, rest)
    assert await purse.charges() == {letter.id: 1_100}
    assert [held for *_, held in await deadlines(purse)] == ([700] if kept else [])
    assert await totals(purse) == {"sent": 1, "charged_coins": 1_100, **({"held_coins": 700} if kept else {})}
    volumes = await purse.database.fetch("select family, units from price_volumes")
    assert [tuple(row) for row in volumes] == [("rcs", 1)]
    await purse.check()


async def test_no_more_is_captured_than_is_held_and_nothing_where_nothing_is_billed(purse: Purse) -> None:
    (dear,) = await letters(purse, 600)
    free = purse.message(None, channel=POST)
    await purse.store(free)
    await purse.claim(free)
    await purse.depart(dear, free, capture=Capture(1_100, 1, None))
    assert await purse.charges() == {dear.id: 600}
    await purse.check()


@pytest.mark.parametrize("status", ["delivered", "failed"])
async def test_a_message_that_moves_on_lets_go_of_what_was_due_and_of_what_was_held(purse: Purse, status: str) -> None:
    letter, other = await letters(purse, 1_800, 1_800)
    await purse.depart(letter, other, capture=Capture(1_100, 1, None))
    await purse.report(letter, "sent")  # tells nothing new
    assert len(await deadlines(purse)) == 2

    await purse.report(letter, status)

    assert [message_id for message_id, *_ in await deadlines(purse)] == [other.id]
    assert await purse.standing() == (BALANCE - 2_200, 700)
    assert (await totals(purse))["held_coins"] == 700
    await purse.check()


async def test_what_does_not_come_in_time_moves_the_message_with_all_that_follows(purse: Purse) -> None:
    letter, certain = await letters(purse, 1_800, 600)
    await purse.depart(letter, capture=Capture(1_100, 1, None))
    await purse.depart(certain)
    await purse.report(certain, "delivered")

    await purse.overdue()

    row = await message_reads.get(purse.database, purse.organization_id, ENV, letter.id, [POST])
    assert row is not None
    assert (row.status, row.last_error) == ("undelivered", "indeterminate: nothing was heard of it")
    assert (row.outcome_certain, row.failed_at is not None, row.delivered_at) == (False, True, None)
    assert await purse.status(certain) == "delivered"
    assert await deadlines(purse) == []
    assert await purse.standing() == (BALANCE - 1_700, 0)
    assert await totals(purse) == {"delivered": 1, "failed": 1, "charged_coins": 1_700}
    assert await told(purse) == ["sms.delivered", "sms.undelivered"]
    await purse.check()
    await purse.overdue()
    assert await told(purse) == ["sms.delivered", "sms.undelivered"]


async def test_what_has_moved_on_since_stays_as_it_is_and_holds_no_more(purse: Purse) -> None:
    (letter,) = await letters(purse, 1_800)
    await purse.depart(letter, capture=Capture(1_100, 1, None))
    await purse.database.execute("update messages set status = 'delivered' where id = $1", letter.id)
    await purse.database.execute("update totals set sent = 0, delivered = 1 where kind = 'campaign'")
    await purse.overdue()
    assert await purse.status(letter) == "delivered"
    assert await purse.standing() == (BALANCE - 1_100, 0)
    assert await totals(purse) == {"delivered": 1, "charged_coins": 1_100}
    assert await told(purse) == []


async def test_a_message_whose_month_is_gone_holds_nothing_either(purse: Purse) -> None:
    (letter,) = await letters(purse, 1_800)
    await purse.depart(letter, capture=Capture(1_100, 1, None))
    await purse.database.execute("delete from messages where id = $1", letter.id)
    await purse.overdue()
    assert await purse.standing() == (BALANCE - 1_100, 0)


@pytest.mark.parametrize("settled", [False, True], ids=["never answered", "answered later"])
async def test_a_message_of_which_a_report_tells_that_it_left_has_its_deadlines_too(
    purse: Purse, settled: bool
) -> None:
    (letter,) = await letters(purse, 600)
    await purse.report(letter, "sent")
    if settled:
        await purse.depart(letter)
    ((message_id, kind, due_at, held),) = await deadlines(purse)
    left_at = await purse.database.fetchval("select sent_at from messages where id = $1", letter.id)
    assert (message_id, kind, held) == (letter.id, REPORT, 0)
    assert due_at - left_at < timedelta(hours=72) + timedelta(seconds=5)
    await purse.overdue()
    assert await purse.status(letter) == "undelivered"


async def test_a_report_that_is_faster_than_the_answer_leaves_nothing_due(purse: Purse) -> None:
    (letter,) = await letters(purse, 600)
    await purse.report(letter, "delivered")
    await purse.depart(letter)
    assert await deadlines(purse) == []


@pytest.mark.parametrize("status", ["ok", "low"], ids=["in one statement", "in steps"])
async def test_what_a_faster_report_captured_too_much_of_is_given_back_once(purse: Purse, status: str) -> None:
    """The report knows no other price than what is held."""
    early, other = await letters(purse, 1_800, 1_800)
    await purse.report(early, "delivered")
    assert await purse.charges() == {early.id: 1_800}
    await purse.database.execute(
        "update wallets set status = $2, low_balance_threshold_coins = $3 where organization_id = $1",
        purse.organization_id, status, 0 if status == "ok" else 2 * BALANCE,
    )  # fmt: skip

    rows = purse.departed(early, other, capture=Capture(1_100, 1, None))
    rows[1].deadlines = ()
    for _ in range(2):
        await purse.recording.record(rows)

    assert await purse.standing() == (BALANCE - 2_200, 0)
    entries = await purse.database.fetch("select kind, coins from ledger where message_id = $1 order by 2", early.id)
    assert [tuple(row) for row in entries] == [("charge", -1_800), ("adjustment", 700)]
    assert await totals(purse) == {"sent": 1, "delivered": 1, "charged_coins": 2_200}
    await purse.check()


async def test_a_report_and_the_deadline_of_the_same_moment_do_not_wait_for_each_other(purse: Purse) -> None:
    """The deadline is taken and waits for the message; the report leaves it, and what it holds, to whoever took it."""
    (letter,) = await letters(purse, 1_800)
    await purse.depart(letter, capture=Capture(1_100, 1, None))
    row = ReportRow(purse.organization_id, ENV, POST, letter.id, "delivered", CLOCK.now(), None, None)
    async with purse.database.hot.transaction() as connection:
        found = await receipts.apply(connection, [row], CLOCK.now())
        waiting = asyncio.create_task(purse.overdue())
        await until_locked_out(purse.database)
        await purse.consequences.write(connection, [move for moves in found.values() for move in moves])
    await waiting
    assert await purse.status(letter) == "delivered"
    assert await purse.standing() == (BALANCE - 1_100, 0)
    assert await totals(purse) == {"delivered": 1, "charged_coins": 1_100}
    await purse.check()


def adjusting(coins: int) -> Handlers:
    """In place of an end, so many coins are charged on top, or given back."""

    async def handle(connection: Any, due: Sequence[DueDeadline], now: datetime) -> Sequence[Moved]:
        keys = [(each.organization_id, each.env, each.message_id) for each in due]
        return [replace(move, money=Money(adjusted=coins)) for move in await state_moves.stay(connection, POST, keys)]

    return {(POST, REPORT): handle}


async def test_what_was_given_back_can_be_charged_on_top_again(purse: Purse) -> None:
    (letter,) = await letters(purse, 1_800)
    await purse.report(letter, "sent")
    await purse.depart(letter, capture=Capture(1_100, 1, None))
    await purse.overdue(handlers=adjusting(400))
    entries = await purse.database.fetch("select coins from ledger where message_id = $1 order by position", letter.id)
    assert [row["coins"] for row in entries] == [-1_800, 700, -400]
    assert await totals(purse) == {"sent": 1, "charged_coins": 1_500}
    page = await ledger.list_page(
        purse.database, purse.organization_id, ENV, period=None, before_position=None, kind=None,
        message_id=letter.id, limit=5,
    )  # fmt: skip
    assert [entry.coins for entry in page] == [-400, 700, -1_800]
    await purse.check()


@pytest.mark.parametrize("adjusted", [400, 900, -300])
async def test_a_handler_of_a_channel_books_what_is_charged_on_top_or_given_back(purse: Purse, adjusted: int) -> None:
    (letter,) = await letters(purse, 1_800)
    await purse.depart(letter, capture=Capture(1_100, 1, None))

    await purse.overdue(handlers=adjusting(adjusted))

    assert await purse.standing() == (BALANCE - 1_100 - adjusted, 0)
    entries = await purse.database.fetch(
        "select kind, coins, channel, message_id from ledger where message_id is not null order by position"
    )
    assert [tuple(row) for row in entries] == [
        ("charge", -1_100, POST, letter.id),
        ("adjustment", -adjusted, POST, letter.id),
    ]
    assert await totals(purse) == {"sent": 1, "charged_coins": 1_100 + adjusted}
    assert await told(purse) == []
    await purse.check()


async def test_what_nobody_handles_goes_and_says_so(purse: Purse) -> None:
    (letter,) = await letters(purse, 1_800, details='{"receipt":true}')
    await purse.depart(letter, capture=Capture(1_100, 1, None))
    with capture_logs() as logs:
        await purse.overdue(handlers={})
    assert {(log["event"], log["kind"]) for log in logs} == {
        ("deadline_without_handler", RECEIPT),
        ("deadline_without_handler", REPORT),
    }
    assert await purse.status(letter) == "sent"
    assert await deadlines(purse) == []
    assert await purse.standing() == (BALANCE - 1_100, 0)


async def test_one_that_cannot_be_handled_waits_for_an_hour_and_holds_no_other_up(
    purse: Purse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overdue, "BLOCK", 4)
    stored = await letters(purse, *[1_800] * 6)
    await purse.depart(*stored, capture=Capture(1_100, 1, None))
    moves = overdue.handlers_of_policies()[POST, REPORT]

    async def handle(connection: Any, due: Sequence[DueDeadline], now: datetime) -> Sequence[Moved]:
        if stored[2].id in {each.message_id for each in due}:
            raise ValueError("it cannot be handled")
        return await moves(connection, due, now)

    with capture_logs() as logs:
        await purse.overdue(handlers={(POST, REPORT): handle})

    assert [log["event"] for log in logs] == ["deadline_put_off"]
    statuses = [await purse.status(message) for message in stored]
    assert statuses == ["undelivered" if message is not stored[2] else "sent" for message in stored]
    ((message_id, _, due_at, held),) = await deadlines(purse)
    assert (message_id, held) == (stored[2].id, 700)
    assert due_at > CLOCK.now() + timedelta(minutes=59)
    await purse.check()


async def test_chat_app_has_nothing_due(purse: Purse) -> None:
    message = purse.message(600)
    await purse.store(message)
    await purse.claim(message)
    await purse.depart(message)
    await purse.report(message, "delivered")
    assert await deadlines(purse) == []
    assert {channel for channel, _ in overdue.handlers_of_policies()} == {POST, "sms"}


async def test_what_never_left_has_nothing_due_either(purse: Purse) -> None:
    (letter,) = await letters(purse, 1_800)
    await purse.fail(letter, FailureCode.PROVIDER_ERROR, queued=False)
    assert await deadlines(purse) == []
    assert await purse.standing() == (BALANCE, 0)
