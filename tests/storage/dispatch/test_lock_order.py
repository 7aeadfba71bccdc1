"""Statements for many messages take their rows in one order: two that want the same ones do not deadlock (C15.4)."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from tests.causes import cause
from tests.people import contact_id, insert_people
from tests.storage.dispatch.test_claims import NOW, NUMBER, ORGANIZATION, of, stored
from tests.waiting import until_locked_out

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.storage.contacts import contact_erasures, contacts
from recado.storage.contacts.contact_erasures import Erasure
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import departures, dispatch, epochs, settlements, withdrawals
from recado.storage.dispatch.departures import Following
from recado.storage.dispatch.dispatch import CLAIMED, HeldRow
from recado.storage.dispatch.settlements import Departed, Failed, Returned, Uncertain
from recado.storage.messages import receipts
from recado.storage.messages.receipts import ReportRow

LATEST = lowest_id(MESSAGE, NOW + timedelta(days=1))

Statement = Callable[[Database, int, list[str]], Awaitable[Any]]


async def claim(db: Database, epoch: int, ids: list[str]) -> None:
    await dispatch.claim(db, [of(each) for each in ids], epoch, NOW)


async def hold(db: Database, epoch: int, ids: list[str]) -> None:
    await dispatch.hold(db, [HeldRow(ORGANIZATION, each, NOW, "rate") for each in ids])


async def fail_in_the_queue(db: Database, epoch: int, ids: list[str]) -> None:
    rows = [Failed(ORGANIZATION, "test", "chatapp", each, cause("expired: late"), NOW, True) for each in ids]
    await settlements.failed(db.hot, rows)


async def depart(db: Database, epoch: int, ids: list[str]) -> None:
    rows = [Departed(ORGANIZATION, "test", "chatapp", each, NUMBER, each, NOW, None, None, NOW) for each in ids]
    await settlements.departed(db.hot, rows)


async def fail(db: Database, epoch: int, ids: list[str]) -> None:
    rows = [Failed(ORGANIZATION, "test", "chatapp", each, cause("provider_error: no"), NOW, False) for each in ids]
    await settlements.failed(db.hot, rows)


async def give_back(db: Database, epoch: int, ids: list[str]) -> None:
    rows = [Returned(ORGANIZATION, "test", "chatapp", each, NOW, NOW, "retry", None, False, NOW) for each in ids]
    await settlements.returned(db, rows, epoch)


async def leave_uncertain(db: Database, epoch: int, ids: list[str]) -> None:
    await settlements.uncertain(db, [Uncertain(ORGANIZATION, each, NUMBER, NOW) for each in ids])


async def report(db: Database, epoch: int, ids: list[str]) -> None:
    rows = [ReportRow(ORGANIZATION, "test", "chatapp", each, "delivered", NOW, None, each) for each in ids]
    await receipts.apply(db.hot, rows, NOW)


QUEUED = (claim, hold, fail_in_the_queue)
SENDING = (depart, fail, give_back, leave_uncertain, report)


@pytest.mark.parametrize("statement", [*QUEUED, *SENDING])
async def test_who_waits_for_the_first_of_its_rows_has_none_of_the_others(
    database: Database, statement: Statement
) -> None:
    epoch = await epochs.take_epoch(database, NOW)
    first, second = sorted([await stored(database), await stored(database)])
    if statement in SENDING:
        assert await dispatch.claim(database, [of(first), of(second)], epoch, NOW) == [CLAIMED] * 2

    async with database.transaction() as connection:
        await connection.execute("select from dispatch where id = $1 for update", first)
        running = asyncio.ensure_future(statement(database, epoch, [second, first]))
        await until_locked_out(database)  # the statement waits for its first row
        free = await connection.fetch("select id from dispatch where id = $1 for update skip locked", second)
        assert [row["id"] for row in free] == [second]
    await running


async def depart_at_once(db: Database, epoch: int, ids: list[str]) -> None:
    rows = [Departed(ORGANIZATION, "test", "chatapp", each, NUMBER, each, NOW, None, None, NOW) for each in ids]
    await departures.depart(db.hot, sorted(rows, key=lambda row: row.id), Following())


@pytest.mark.parametrize("statement", [depart, depart_at_once])
async def test_a_departure_that_waits_for_its_message_has_not_counted_in_its_minute(
    database: Database, statement: Statement
) -> None:
    """Reports of other messages of that minute change messages first, and then the minute."""
    epoch = await epochs.take_epoch(database, NOW)
    first, second = sorted([await stored(database), await stored(database)])
    assert await dispatch.claim(database, [of(first), of(second)], epoch, NOW) == [CLAIMED] * 2
    await statement(database, epoch, [first])

    async with database.transaction() as connection:
        await connection.execute("select from messages where id = $1 for update", second)
        running = asyncio.ensure_future(statement(database, epoch, [second]))
        await until_locked_out(database)  # the departure waits for its message
        assert len(await connection.fetch("select from sender_minutes for update skip locked")) == 1
    await running
    assert await database.fetchval("select sent from sender_minutes") == 2


@pytest.mark.parametrize("first_hash", [1, 2])
async def test_a_refusal_takes_the_messages_of_many_in_the_order_of_their_ids(
    database: Database, first_hash: int
) -> None:
    first, second = sorted([await stored(database), await stored(database)])
    for message_id, consent_hash in ((first, first_hash), (second, 3 - first_hash)):
        await database.execute("update dispatch set consent_hash = $1 where id = $2", consent_hash, message_id)

    async def refuse() -> int:
        async with database.transaction() as connection:
            recipients = [(ORGANIZATION, "test", consent_hash) for consent_hash in (1, 2)]
            return len(await withdrawals.opted_out(connection, withdrawals.refusals(recipients, LATEST), NOW, limit=10))

    async with database.transaction() as connection:
        await connection.execute("select from dispatch where id = $1 for update", first)
        running = asyncio.ensure_future(refuse())
        await until_locked_out(database)  # the refusal waits for its first message
        free = await connection.fetch("select id from dispatch where id = $1 for update skip locked", second)
        assert [row["id"] for row in free] == [second]
    assert await running == 2


async def test_an_erasure_takes_the_messages_of_all_channels_in_the_order_of_their_ids(database: Database) -> None:
    first, second = sorted([await stored(database), await stored(database)])
    await database.execute("update messages set status = 'read', contact_id = 'cnt_1'")
    await database.execute("update messages set channel = 'sms' where id = $1", first)  # last by its key
    erasure = Erasure((ORGANIZATION, "test", "cnt_1"), "")

    async with database.transaction() as connection:
        await connection.execute("select from messages where id = $1 for update", first)
        running = asyncio.ensure_future(contact_erasures.block(database, erasure, NOW, mask=lambda *_: "masked"))
        await until_locked_out(database)  # the erasure waits for its first message
        free = await connection.fetch("select id from messages where id = $1 for update skip locked", second)
        assert [row["id"] for row in free] == [second]
    assert await running is not None
    assert {row["recipient"] for row in await database.fetch("select recipient from messages")} == {"masked"}


async def test_contacts_are_locked_in_the_order_of_their_ids(database: Database) -> None:
    await insert_people(database, ORGANIZATION, "test", [{}, {}])
    first, second = contact_id(1), contact_id(2)

    async def lock() -> list[str]:
        async with database.transaction() as connection:
            return await contacts.lock(connection, ORGANIZATION, "test", [second, first])

    async with database.transaction() as connection:
        await connection.execute("select from contacts where id = $1 for update", first)
        running = asyncio.ensure_future(lock())
        await until_locked_out(database)  # the lock waits for its first contact
        free = await connection.fetch("select id from contacts where id = $1 for update skip locked", second)
        assert [row["id"] for row in free] == [second]
    assert await running == [first, second]
