"""Two processes write at once, each with a memory of its own: where they meet, rows decide (C6.2, C15.6, C25.2)."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import pytest
from tests.emptied import Emptied
from tests.purse import ENV, Purse
from tests.waiting import until_locked_out

from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.engine.clock import SystemClock
from recado.services.dispatch.row import Row, row_from
from recado.services.effects.campaigns import Campaigns
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.recording import Recording
from recado.services.effects.totals import MessageTotals
from recado.storage.batches.totals import TotalsKey
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch
from recado.storage.dispatch.settlements import Departed
from recado.storage.messages import messages
from recado.storage.messages.messages import Bound, NewMessage, Stored

CLOCK = SystemClock()
CAMPAIGN = "spring"
TOTALS = "select accepted, queued, sent, held_coins, charged_coins from totals where kind = 'campaign'"


@pytest.fixture
async def purses(database: Database, emptied_database: Emptied) -> AsyncIterator[tuple[Purse, Purse]]:
    """The same organization, as each process has it: with connections, ids, caches and an admission of its own."""
    other = Database(emptied_database.arguments, clock=CLOCK, pool_size=4, hot_size=4)
    await other.start()
    try:
        first, second = (Purse(db, CLOCK, IdSource(CLOCK, random.Random(os.urandom(8)))) for db in (database, other))
        await first.open()
        second.organization_id = first.organization_id
        yield first, second
    finally:
        await other.stop()


def prices(results: Sequence[Any], batch: Sequence[NewMessage]) -> int:
    """The coins of what was stored; all else got 402."""
    held = 0
    for result, message in zip(results, batch, strict=True):
        if type(result) is Stored:
            held += message.coins or 0
        else:
            assert isinstance(result, Problem), result
            assert result.code == "PAYMENT_REQUIRED"
    return held


# The wallet -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
async def test_two_writers_hold_all_that_the_wallet_has_and_no_more(purses: tuple[Purse, Purse], seed: int) -> None:
    chance = random.Random(seed)
    await purses[0].credit(10_000)

    async def accepts(purse: Purse) -> int:
        held = 0
        for _ in range(30):
            batch = [purse.message(chance.choice([100, 200, 300])) for _ in range(chance.randint(1, 4))]
            held += prices(await purse.store(*batch), batch)
        return held

    held = sum(await asyncio.gather(*[accepts(purse) for purse in purses for _ in range(2)]))
    assert await purses[0].standing() == (10_000, held)
    assert 10_000 - held in (0, 100, 200)  # what is left covers less than some of what was refused
    await purses[0].check()


@pytest.mark.parametrize("seed", range(3))
async def test_the_order_of_the_ledger_is_that_of_the_balances_whoever_writes(
    purses: tuple[Purse, Purse], seed: int
) -> None:
    """Ids are made before the wallet is locked: those of two processes may stand the other way round."""
    chance = random.Random(seed)
    await purses[0].credit(100_000)

    async def sends(purse: Purse) -> None:
        for _ in range(12):
            batch = [purse.message(chance.choice([100, 200, 300])) for _ in range(chance.randint(1, 4))]
            await purse.store(*batch)
            for message in batch:
                await purse.claim(message)
            await purse.depart(*batch)
            if chance.random() < 0.3:
                await purse.credit(50)

    await asyncio.gather(*[sends(purse) for purse in purses for _ in range(2)])
    entries = await purses[0].database.fetch(
        "select position, coins, balance_after from ledger where organization_id = $1 and env = $2 order by position",
        purses[0].organization_id,
        ENV,
    )
    assert [entry["position"] for entry in entries] == list(range(1, len(entries) + 1))
    balance = 0
    for entry in entries:
        balance += entry["coins"]
        assert entry["balance_after"] == balance
    wallet = await purses[0].wallet()
    assert (wallet.balance_coins, wallet.held_coins, wallet.ledger_position) == (balance, 0, len(entries))
    await purses[0].check()


# Idempotency keys -----------------------------------------------------------------------------------------------------


class Undone(Exception):
    """The first does not commit."""


def keyed(purse: Purse, key: bytes) -> NewMessage:
    return purse.message(100, key_hash=key, fingerprint=b"f" * 32)


@pytest.mark.parametrize("commits", [True, False])
async def test_who_comes_second_with_a_key_waits_for_the_first(purses: tuple[Purse, Purse], commits: bool) -> None:
    first, second = purses
    await first.credit(10_000)
    one, other = keyed(first, b"k" * 32), keyed(second, b"k" * 32)
    with suppress(Undone):
        async with first.database.hot.transaction() as connection:
            assert await messages.accept(connection, [one]) == [messages.STORED]
            storing = asyncio.ensure_future(second.store(other))
            await until_locked_out(first.database)
            if not commits:
                raise Undone
    (result,) = await storing
    if commits:
        assert isinstance(result, Bound)
        assert (result.message_id, result.fingerprint) == (one.id, one.fingerprint)
    else:
        assert type(result) is Stored
    stored = await first.database.fetch("select id from messages")
    assert [row["id"] for row in stored] == [one.id if commits else other.id]
    assert await first.standing() == (10_000, 100)


async def test_a_key_that_both_writers_get_at_once_makes_one_message(purses: tuple[Purse, Purse]) -> None:
    """Also where the wallet covers only some: then batches are admitted row by row."""
    await purses[0].credit(3_000)
    keys = [bytes([n]) * 32 for n in range(40)]

    async def accepts(purse: Purse, keys: Sequence[bytes]) -> dict[bytes, Any]:
        found: dict[bytes, Any] = {}
        for start in range(0, len(keys), 5):
            batch = [keyed(purse, key) for key in keys[start : start + 5]]
            for message, result in zip(batch, await purse.store(*batch), strict=True):
                key = message.key_hash
                assert key is not None
                found[key] = message.id if type(result) is Stored else result
        return found

    results = await asyncio.gather(*[accepts(purse, order) for purse in purses for order in (keys, keys[::-1])])
    bound = await purses[0].database.fetch("select key_hash, message_id from idempotency")
    assert len(bound) == 30
    of_key = {row["key_hash"]: row["message_id"] for row in bound}
    for key in keys:
        found = [each[key] for each in results]
        made = [each for each in found if isinstance(each, str)]
        assert made == [of_key[key]] if key in of_key else made == []
        assert {each.message_id for each in found if isinstance(each, Bound)} <= set(made)
    assert await purses[0].standing() == (3_000, 3_000)
    assert {row["id"] for row in await purses[0].database.fetch("select id from messages")} == set(of_key.values())


# Totals ---------------------------------------------------------------------------------------------------------------


class Owner:
    """The process that sends, where nothing is billed and nobody hears of departures."""

    def __init__(self, purse: Purse) -> None:
        self._purse = purse
        self._outbox = Outbox(purse.directories.subscriptions, ids=purse.ids, queued=lambda keys: None)
        self.emptied: list[TotalsKey] = []
        self._totals = MessageTotals(clock=CLOCK, emptied=self.emptied.extend)
        self._recording = Recording(
            purse.database,
            consequences=Consequences(self._outbox, self._totals, Campaigns()),
            outbox=self._outbox,
            wallet=None,
            totals=self._totals,
        )

    async def send(self, sender_id: str) -> int:
        """All that its lane finds in the table; how many."""
        database = self._purse.database
        found = await dispatch.refill(database, self._purse.organization_id, sender_id, 1, "", 100)
        rows = [row_from(record) for record in found]
        await database.execute("update dispatch set claimed_epoch = 1, claimed_at = now()")
        await database.execute("update messages set status = 'sending' where status = 'queued'")
        if rows:
            await self._recording.record([_departed(row, CLOCK.now()) for row in rows])
        return len(rows)


def _departed(row: Row, at: datetime) -> Departed:
    return Departed(
        row.organization_id, row.env, row.channel, row.id, row.sender_id, row.id, at, "utility", look_ups=None,
        settled_at=at, totaled=row.totaled,
    )  # fmt: skip


async def test_totals_close_of_a_campaign_that_another_process_began(purses: tuple[Purse, Purse]) -> None:
    """The owner had sent of the environment before, when nothing of it was counted."""
    front, other = purses
    owner = Owner(other)
    plain, counted = front.message(None), front.message(None, campaign_id=CAMPAIGN)
    await front.store(plain)
    assert await owner.send(plain.sender_id) == 1
    assert owner.emptied == []
    await front.store(counted)
    assert await owner.send(plain.sender_id) == 1
    assert tuple(await front.database.fetchrow(TOTALS)) == (1, 0, 1, 0, 0)
    assert owner.emptied == [(front.organization_id, ENV, "campaign", CAMPAIGN)]


async def test_totals_close_when_both_writers_count_at_once(purses: tuple[Purse, Purse]) -> None:
    await purses[0].credit(100_000)

    async def sends(purse: Purse) -> None:
        for _ in range(10):
            batch = [purse.message(100, campaign_id=CAMPAIGN) for _ in range(3)]
            await purse.store(*batch)
            for message in batch:
                await purse.claim(message)
            await purse.depart(*batch)

    await asyncio.gather(*[sends(purse) for purse in purses for _ in range(2)])
    assert tuple(await purses[0].database.fetchrow(TOTALS)) == (120, 0, 120, 0, 12_000)
    assert await purses[0].database.fetchval("select status from campaigns") == "running"
