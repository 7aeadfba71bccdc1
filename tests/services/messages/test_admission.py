"""Batches of accepted messages against a wallet that may not cover them (C25.2.2)."""

import asyncio
import random
from typing import Any

import pytest
from tests.purse import Purse

from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.engine.clock import SystemClock
from recado.storage.billing.holds import HoldsRefused
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import messages
from recado.storage.messages.messages import STORED, STORED_EARLIER, Bound

KEYED = {"key_hash": b"k" * 32, "fingerprint": b"f" * 32}


@pytest.fixture
async def purse(database: Database) -> Purse:
    clock = SystemClock()
    return await Purse(database, clock, IdSource(clock, random.Random(8))).open()


def said(results: Any) -> list[Any]:
    """The results, each refusal as what it costs and what was available."""
    return [
        (result.code, result.meta["requiredCoins"], result.meta["availableCoins"])
        if isinstance(result, Problem) and result.meta
        else result
        for result in results
    ]


async def stored(purse: Purse) -> int:
    return int(await purse.database.fetchval("select count(*) from messages"))


async def test_what_is_refused_does_not_count_against_cheaper_ones_behind_it(purse: Purse) -> None:
    await purse.credit(1_000)

    results = await purse.store(*(purse.message(coins) for coins in (600, 4_500, 500, 400, 0, 1)))

    refused = "PAYMENT_REQUIRED"
    assert said(results) == [STORED, (refused, 4_500, 400), (refused, 500, 400), STORED, STORED, (refused, 1, 0)]
    assert await stored(purse) == 3
    assert await purse.standing() == (1_000, 1_000)
    await purse.check()


async def test_a_message_without_a_price_needs_no_wallet(purse: Purse) -> None:
    results = await purse.store(purse.message(None), purse.message(600), purse.message(None))

    assert said(results) == [STORED, ("PAYMENT_REQUIRED", 600, 0), STORED]
    rows = await purse.database.fetch("select price_coins from messages")
    assert [row["price_coins"] for row in rows] == [None, None]


async def test_the_empty_wallet_of_one_organization_costs_another_nothing(purse: Purse) -> None:
    rich = await Purse(purse.database, purse.clock, purse.ids).open()
    await rich.credit(1_000_000)
    batch = [purse.message(600), rich.message(600), purse.message(600), rich.message(600)]

    for _ in range(2):  # the second time the empty one is known
        assert [result == STORED for result in await purse.store(*batch)] == [False, True, False, True]
        batch = [purse.message(600), rich.message(600), purse.message(600), rich.message(600)]
    assert await rich.standing() == (1_000_000, 2_400)


async def test_a_credit_is_noticed_by_the_next_batch(purse: Purse) -> None:
    assert (await purse.store(purse.message(600)))[0] != STORED
    await purse.credit(1_000_000)
    assert await purse.store(purse.message(600), purse.message(600)) == [STORED, STORED]
    assert await purse.standing() == (1_000_000, 1_200)


@pytest.mark.parametrize("coins", [600, 1_000_000])
async def test_a_batch_that_runs_again_holds_only_for_what_its_first_run_had_not_stored(
    purse: Purse, coins: int
) -> None:
    await purse.credit(coins)
    batch = [purse.message(200), purse.message(200, **KEYED)]
    assert await purse.store(*batch) == [STORED, STORED]

    results = await purse.store(*batch, purse.message(200), purse.message(200, **KEYED))

    assert results[:3] == [STORED_EARLIER, STORED_EARLIER, STORED]
    assert isinstance(results[3], Bound)
    assert await purse.standing() == (coins, 600)
    await purse.check()


async def test_a_repeat_gets_the_first_message_though_the_wallet_is_empty_now(purse: Purse) -> None:
    await purse.credit(600)
    first, repeat = purse.message(600, **KEYED), purse.message(600, **KEYED)

    results = await purse.store(first, repeat, purse.message(600))

    assert results[0] == STORED
    assert isinstance(results[1], Bound)
    assert results[1].message_id == first.id
    assert said(results[2:]) == [("PAYMENT_REQUIRED", 600, 0)]
    again = await purse.store(purse.message(600, **KEYED))
    assert isinstance(again[0], Bound)


async def test_a_key_of_a_refused_message_stays_free(purse: Purse) -> None:
    assert said(await purse.store(purse.message(600, **KEYED))) == [("PAYMENT_REQUIRED", 600, 0)]
    assert await purse.database.fetchval("select count(*) from idempotency") == 0
    await purse.credit(600)
    assert await purse.store(purse.message(600, **KEYED)) == [STORED]


async def test_a_statement_that_would_change_the_status_of_the_wallet_is_refused_whole(purse: Purse) -> None:
    await purse.credit(111_000)
    with pytest.raises(HoldsRefused):
        await messages.accept(purse.database, [purse.message(600), purse.message(11_000)])
    assert await stored(purse) == 0
    assert await purse.standing() == (111_000, 0)


async def test_batches_that_race_for_the_last_coins_spend_each_once(purse: Purse) -> None:
    await purse.credit(600 * 100)
    others = [Purse(purse.database, purse.clock, purse.ids) for _ in range(3)]
    for other in others:
        other.organization_id = purse.organization_id

    async def spend(whose: Purse) -> int:
        admitted = 0
        for _ in range(8):
            results = await whose.store(*(whose.message(600) for _ in range(7)))
            admitted += sum(result == STORED for result in results)
        return admitted

    assert sum(await asyncio.gather(*(spend(whose) for whose in [purse, *others]))) == 100
    assert await purse.standing() == (60_000, 60_000)
    await purse.check()
