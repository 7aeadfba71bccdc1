"""What waits for its repeat may have left: a report decides it, and nothing ends it as a queued message (C29.2)."""

import random
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.causes import cause
from tests.storage.dispatch.test_claims import CLOCK, NOW, NUMBER, ORGANIZATION, asking, of, refuse, stored
from tests.storage.dispatch.test_report_races import departs, report

from recado.domain.core.ids import MESSAGE, IdSource, lowest_id
from recado.services.effects.consequences import Consequences
from recado.storage.batches import batches
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch, epochs, rescue, settlements, withdrawals
from recado.storage.dispatch.dispatch import CLAIMED, OPTED_OUT, HeldRow
from recado.storage.dispatch.settlements import Failed, Returned, Uncertain
from recado.storage.messages import message_moves, message_reads, receipts
from recado.storage.messages.message_reads import MessageFilter

LEFT_AT = NOW + timedelta(milliseconds=40)
DUE = NOW + timedelta(seconds=5)
AGAIN = DUE + timedelta(seconds=1)
DAY = timedelta(hours=24)
BATCH = "btc_" + "0" * 21
CONTACT = "cnt_" + "0" * 21
ACTOR = AuditPrincipal("key", "key_" + "0" * 21)
PHONE = "+5511987654321"
EXPIRED = cause("expired: its time to live ran out")


async def in_doubt(db: Database) -> str:
    """A message whose call had no answer, and that waits for its repeat."""
    message_id = await stored(db)
    await db.execute("update messages set price_coins = 600, price_kind = 'utility' where id = $1", message_id)
    epoch = await epochs.take_epoch(db, NOW)
    assert await dispatch.claim(db, [of(message_id)], epoch, NOW) == [CLAIMED]
    call = Returned(ORGANIZATION, "test", "chatapp", message_id, NOW, DUE, "retry", None, False, LEFT_AT, LEFT_AT)
    await settlements.returned(db, [call], epoch)
    return message_id


async def ready(db: Database) -> str:
    message_id = await in_doubt(db)
    assert len(await dispatch.release_due(db, DUE)) == 1
    return message_id


async def held(db: Database) -> str:
    message_id = await ready(db)
    await dispatch.hold(db, [HeldRow(ORGANIZATION, message_id, AGAIN, "quiet_hours")])
    return message_id


async def claimed(db: Database) -> str:
    message_id = await ready(db)
    epoch = await epochs.current_epoch(db)
    assert await dispatch.claim(db, [of(message_id, AGAIN)], epoch, AGAIN) == [CLAIMED]
    return message_id


async def slowed_down(db: Database) -> str:
    """Its repeat was not let in: that says nothing of the call before."""
    message_id = await claimed(db)
    back = Returned(ORGANIZATION, "test", "chatapp", message_id, AGAIN, None, None, None, True, AGAIN)
    await settlements.returned(db, [back], await epochs.current_epoch(db))
    return message_id


async def after_a_restart(db: Database) -> str:
    message_id = await stored(db)
    await db.execute("update messages set price_coins = 600, price_kind = 'utility' where id = $1", message_id)
    epoch = await epochs.take_epoch(db, NOW)
    assert await dispatch.claim(db, [of(message_id, LEFT_AT)], epoch, LEFT_AT) == [CLAIMED]
    epoch = await epochs.take_epoch(db, NOW)
    assert await rescue.send_again(db, "chatapp", "test", epoch, NOW, NOW, of_dead=True) == 1
    return message_id


State = Callable[[Database], Awaitable[str]]
IN_THE_QUEUE = [in_doubt, ready, held, slowed_down, after_a_restart]


async def status(db: Database, message_id: str) -> Any:
    return await db.fetchrow("select status, last_error, sent_at from messages where id = $1", message_id)


async def row(db: Database, message_id: str) -> Any:
    return await db.fetchrow(
        "select reason, claimed_at, claimed_epoch is not null as claimed, repeat_of from dispatch where id = $1",
        message_id,
    )


@pytest.mark.parametrize("word", ["sent", "delivered", "read", "failed"])
@pytest.mark.parametrize("state", [*IN_THE_QUEUE, claimed])
async def test_a_report_decides_what_waits_for_its_repeat(database: Database, state: State, word: str) -> None:
    message_id = await state(database)
    error = "provider_error: no" if word == "failed" else None

    found = await receipts.apply(
        database, [replace(report(message_id, word), cause=cause(error) if error else None)], AGAIN
    )

    moves = [("sending", "sent", 600), *([] if word == "sent" else [("sent", word, 0)])]
    assert [(move.from_status, move.to_status, move.coins) for move in found[message_id]] == moves
    left_at = AGAIN if state is claimed else LEFT_AT
    assert tuple(await status(database, message_id)) == (word, error, left_at)
    assert await row(database, message_id) is None
    assert await database.fetchval("select sum(sent) from sender_minutes where sender_id = $1", NUMBER) == 1


@pytest.mark.parametrize("state", IN_THE_QUEUE)
async def test_it_is_sending_all_the_while_and_nothing_refused_it(database: Database, state: State) -> None:
    message_id = await state(database)

    assert tuple(await status(database, message_id)) == ("sending", None, None)
    wanted = MessageFilter(organization_id=ORGANIZATION, env="test", status="sending")
    assert [each.id for each in (await message_reads.list_page(database, wanted, limit=2)).items] == [message_id]
    queued = replace(wanted, status="queued")
    assert (await message_reads.list_page(database, queued, limit=2)).items == []


async def test_its_repeat_is_claimed_as_any_row_is_and_accepted_it_is_sent(database: Database) -> None:
    message_id = await claimed(database)
    for table in ("dispatch", "messages"):
        assert await database.fetchval(f"select attempts from {table} where id = $1", message_id) == 2

    moved = await departs(database, message_id, AGAIN)

    assert [(move.from_status, move.to_status) for move in moved] == [("sending", "sent")]
    assert (await status(database, message_id))["status"] == "sent"


async def test_the_answer_of_a_call_that_was_given_up_settles_it_before_its_repeat(database: Database) -> None:
    message_id = await in_doubt(database)

    assert len(await departs(database, message_id, LEFT_AT)) == 1

    assert (await status(database, message_id))["status"] == "sent"
    assert await row(database, message_id) is None


async def fails(db: Database, message_id: str) -> int:
    failed = Failed(ORGANIZATION, "test", "chatapp", message_id, EXPIRED, AGAIN, True)
    return len(await settlements.failed(db, [failed]))


async def archived(db: Database, message_id: str) -> int:
    ids = IdSource(CLOCK, random.Random(1))
    return await message_moves.archive(db, ids, ACTOR, ORGANIZATION, "test", message_id, AGAIN, Consequences())


async def forced(db: Database, message_id: str) -> int:
    ids = IdSource(CLOCK, random.Random(1))
    moved = await message_moves.force(db, ids, ACTOR, ORGANIZATION, "test", message_id, AGAIN)
    assert not await db.fetchval("select force from dispatch where id = $1", message_id)
    return moved


async def batch_canceled(db: Database, message_id: str) -> int:
    await db.execute("update dispatch set owner = $2 where id = $1", message_id, BATCH)
    await db.execute("insert into batch_ranges values ($1, $2, $3, $3)", ORGANIZATION, BATCH, message_id)
    return len(await batches.withdraw(db, (ORGANIZATION, "test", BATCH), AGAIN, 10))


async def opted_out(db: Database, message_id: str) -> int:
    await db.execute("update dispatch set consent_hash = 1 where id = $1", message_id)
    refused = withdrawals.refusals([(ORGANIZATION, "test", 1)], lowest_id(MESSAGE, AGAIN + DAY))
    assert not await withdrawals.left_of(db, refused)
    return len(await withdrawals.opted_out(db, refused, AGAIN, limit=10))


async def contact_deleted(db: Database, message_id: str) -> int:
    await db.execute("update messages set contact_id = $2 where id = $1", message_id, CONTACT)
    moved, _ = await withdrawals.of_contact(db, ORGANIZATION, "test", CONTACT, AGAIN, limit=10)
    return len(moved)


ENDS = [fails, archived, forced, batch_canceled, opted_out, contact_deleted]


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("state", IN_THE_QUEUE)
async def test_nothing_that_ends_queued_messages_ends_it_and_a_report_still_decides(
    database: Database, state: State, end: Callable[[Database, str], Awaitable[int]]
) -> None:
    message_id = await state(database)

    assert not await end(database, message_id)

    assert tuple(await status(database, message_id)) == ("sending", None, None)
    found = await receipts.apply(database, [report(message_id, "delivered")], AGAIN)
    assert [(move.to_status, move.coins) for move in found[message_id]] == [("sent", 600), ("delivered", 0)]
    assert (await status(database, message_id))["sent_at"] == LEFT_AT


@pytest.mark.parametrize("end", [fails, contact_deleted])
@pytest.mark.parametrize("state", IN_THE_QUEUE)
async def test_what_cannot_be_repeated_any_more_is_uncertain_from_its_last_call_on(
    database: Database, state: State, end: Callable[[Database, str], Awaitable[int]]
) -> None:
    message_id = await state(database)

    await end(database, message_id)

    assert tuple(await row(database, message_id)) == ("uncertain", LEFT_AT, True, None)
    assert await dispatch.release_due(database, NOW + DAY) == []
    assert await dispatch.expiring(database, NOW + DAY) == []
    assert await dispatch.to_give_up(database, LEFT_AT) == []
    assert [each["id"] for each in await dispatch.to_give_up(database, AGAIN)] == [message_id]


async def test_a_repeat_whose_recipient_refused_since_fails_its_claim_and_is_uncertain(database: Database) -> None:
    message_id = await ready(database)
    await refuse(database, PHONE, by="registry")

    claim = asking(message_id, PHONE, AGAIN)
    assert await dispatch.claim(database, [claim], await epochs.current_epoch(database), AGAIN) == [OPTED_OUT]

    assert await fails(database, message_id) == 0
    assert (await row(database, message_id))["reason"] == "uncertain"


@pytest.mark.parametrize("state", IN_THE_QUEUE)
async def test_without_a_turn_for_a_day_it_fails_by_unknown_outcome_and_a_late_report_is_believed(
    database: Database, state: State
) -> None:
    message_id = await state(database)
    assert await dispatch.to_give_up(database, LEFT_AT) == []
    (found,) = await dispatch.to_give_up(database, AGAIN)
    assert found["id"] == message_id

    error = cause("outcome_unknown: no report")
    unknown = Failed(ORGANIZATION, "test", "chatapp", message_id, error, NOW + DAY, False, found["called_at"])
    (moved,) = await settlements.failed(database, [unknown])

    assert (moved.from_status, moved.to_status) == ("sending", "failed")
    late = await receipts.apply(database, [report(message_id, "delivered")], NOW + DAY)
    assert [(move.from_status, move.to_status, move.coins) for move in late[message_id]] == [
        ("failed", "delivered", 600)
    ]
    assert tuple(await status(database, message_id)) == ("delivered", None, LEFT_AT)


async def test_what_is_under_way_again_is_not_given_up(database: Database) -> None:
    await claimed(database)
    assert await dispatch.to_give_up(database, NOW + DAY) == []


@pytest.mark.parametrize("state", [*IN_THE_QUEUE, claimed])
async def test_a_restart_counts_it_once_in_its_number_s_day(database: Database, state: State) -> None:
    await state(database)
    assert await dispatch.uncertain_of_sender(database, ORGANIZATION, NUMBER, NOW - DAY) == [LEFT_AT]
    assert await dispatch.uncertain_of_sender(database, ORGANIZATION, NUMBER, LEFT_AT) == []


async def test_the_last_repeat_without_an_answer_is_uncertain_and_counted_once(database: Database) -> None:
    message_id = await claimed(database)
    await settlements.uncertain(database, [Uncertain(ORGANIZATION, message_id, NUMBER, AGAIN)])
    assert tuple(await row(database, message_id)) == ("uncertain", AGAIN, True, None)
    assert await dispatch.uncertain_of_sender(database, ORGANIZATION, NUMBER, NOW - DAY) == [AGAIN]


async def test_a_repeat_of_a_dead_process_that_no_adapter_bears_any_more_is_uncertain(database: Database) -> None:
    message_id = await claimed(database)
    epoch = await epochs.take_epoch(database, AGAIN)
    assert await rescue.rescue(database, epoch, NOW, of_dead=True) == 1
    assert tuple(await row(database, message_id)) == ("uncertain", AGAIN, True, None)
