"""Holds, captures and releases in the commits of a message's moves (C15.4, C25.2)."""

import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.purse import Purse

from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import FailureCode
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Moved
from recado.storage.messages.messages import STORED

CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(8))


@pytest.fixture
async def purse(database: Database) -> Purse:
    return await Purse(database, CLOCK, IDS).open()


async def test_a_message_holds_its_price_until_it_is_sent_and_is_charged_then(purse: Purse) -> None:
    await purse.credit(1_000_000)
    message = purse.message(600)

    assert await purse.store(message) == [STORED]
    assert await purse.standing() == (1_000_000, 600)

    await purse.claim(message)
    await purse.depart(message)
    assert await purse.standing() == (999_400, 0)
    assert await purse.charges() == {message.id: 600}
    await purse.depart(message)
    await purse.report(message, "delivered")
    assert await purse.charges() == {message.id: 600}
    await purse.check()


async def test_a_report_that_is_faster_than_the_settlement_charges_once(purse: Purse) -> None:
    await purse.credit(1_000_000)
    messages = [purse.message(600) for _ in range(3)]
    await purse.store(*messages)
    for message, status in zip(messages, ("sent", "read", "failed"), strict=True):
        await purse.claim(message)
        await purse.report(message, status)
    await purse.depart(*messages)

    assert await purse.charges() == {message.id: 600 for message in messages}
    assert await purse.standing() == (1_000_000 - 3 * 600, 0)


@pytest.mark.parametrize("end", ["archived", "expired", "refused", "given up"])
async def test_what_is_not_sent_gives_its_price_back(purse: Purse, end: str) -> None:
    await purse.credit(1_000_000)
    message = purse.message(600)
    await purse.store(message)
    match end:
        case "archived":
            assert await purse.archive(message)
        case "expired":
            await purse.fail(message, FailureCode.EXPIRED, queued=True)
        case "refused":
            await purse.claim(message)
            await purse.fail(message, FailureCode.RECIPIENT_UNREACHABLE, queued=False)
        case _:
            await purse.claim(message)
            await purse.fail(message, FailureCode.OUTCOME_UNKNOWN, queued=False)

    assert await purse.standing() == (1_000_000, 0)
    assert await purse.charges() == {}
    await purse.check()


async def test_a_message_given_up_is_charged_when_it_was_sent_after_all_below_zero_if_need_be(purse: Purse) -> None:
    await purse.credit(600)
    message = purse.message(600)
    await purse.store(message)
    await purse.claim(message)
    await purse.fail(message, FailureCode.OUTCOME_UNKNOWN, queued=False)
    await purse.credit(-600)

    await purse.report(message, "delivered")

    assert await purse.standing() == (-600, 0)
    await purse.report(message, "failed")  # as if its outcome were unknown again
    await purse.report(message, "read")
    assert await purse.charges() == {message.id: 600}
    await purse.check()


async def test_a_message_that_is_sent_fails_and_was_sent_after_all_in_one_batch_is_charged_once(purse: Purse) -> None:
    await purse.credit(1_000)
    message = purse.message(600)
    await purse.store(message)
    whose = (message.organization_id, message.env, message.channel, message.id)
    moves = [
        Moved(*whose, "sending", "sent", 600),
        Moved(*whose, "sent", "failed"),
        Moved(*whose, "failed", "delivered", 600),
    ]
    async with purse.database.transaction() as connection:
        await connection.execute("delete from dispatch")
        await purse.consequences.write(connection, moves)

    assert await purse.charges() == {message.id: 600}
    assert await purse.standing() == (400, 0)


async def test_units_captured_in_a_month_bring_the_next_tier_and_no_others_count(purse: Purse) -> None:
    await purse.credit(1_000_000)
    prices, organization_id = purse.directories.prices, purse.organization_id

    async def price() -> int:
        unit = (organization_id, "live", "chatapp_utility", "BR", purse.clock.now())
        return (await prices.price_of(*unit)).coins

    await purse.database.execute(
        "insert into price_volumes "
        "select $1, 'chatapp', date_trunc('month', $2 at time zone 'America/Sao_Paulo')::date, 9998",
        organization_id,
        purse.clock.now(),
    )
    assert await price() == 600
    batch = [purse.message(600), purse.message(100, price_kind=None), purse.message(600)]
    await purse.store(*batch)
    for message in batch:
        await purse.claim(message)
    await purse.depart(*batch[:2])
    assert await price() == 600
    await purse.depart(batch[2])
    assert await price() == 550
    assert await purse.database.fetchval("select units from price_volumes") == 10_000


async def test_units_at_an_agreed_price_of_nothing_count_too_once_and_charge_nothing(purse: Purse) -> None:
    free = [purse.message(0), purse.message(0), purse.message(0, price_kind=None)]
    await purse.store(*free)
    for message in free:
        await purse.claim(message)
    await purse.depart(free[0], free[2])
    await purse.fail(free[1], FailureCode.PROVIDER_ERROR, queued=False)
    await purse.depart(*free)
    await purse.report(free[0], "delivered")

    assert await purse.database.fetchval("select sum(units) from price_volumes") == 1
    assert await purse.charges() == {}
    assert await purse.standing() == (0, 0)


async def test_each_unit_counts_in_the_month_and_all_of_a_message_are_one_charge(purse: Purse) -> None:
    await purse.credit(1_000_000)
    whole, late, one = purse.message(1_800, units=3), purse.message(1_200, units=2), purse.message(600)
    await purse.store(whole, late, one)
    for message in (whole, late, one):
        await purse.claim(message)
    await purse.depart(whole, one)
    assert await purse.database.fetchval("select units from price_volumes") == 4
    await purse.fail(late, FailureCode.OUTCOME_UNKNOWN, queued=False)
    await purse.report(late, "delivered")

    assert await purse.database.fetchval("select units from price_volumes") == 6
    assert await purse.charges() == {whole.id: 1_800, late.id: 1_200, one.id: 600}
    await purse.check()


async def test_a_wallet_that_falls_tells_so_once_a_crossing(purse: Purse) -> None:
    await purse.database.execute(
        "insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events, "
        "include_pii, max_attempts, backoff_seconds, status, revision, updated_at) values "
        "($1, 'wbh_1', 'live', 'https://x.test', '', 1, '{wallet.low_balance,wallet.depleted}', false, 8, 1, "
        "'active', 1, now())",
        purse.organization_id,
    )

    async def told() -> list[tuple[str, Any]]:
        rows = await purse.database.fetch("select type, data from events order by id")
        return [(row["type"], row["data"]) for row in rows]

    await purse.credit(111_000)
    for _ in range(4):
        await purse.store(purse.message(4_500))
    assert [event for event, _ in await told()] == ["wallet.low_balance"]
    (_, data) = (await told())[0]
    assert '"availableCoins":97500' in data
    assert '"thresholdCoins":100000' in data

    last = purse.message((await purse.wallet()).available_coins)
    assert await purse.store(last) == [STORED]
    assert (await purse.wallet()).status == "depleted"
    assert [event for event, _ in await told()] == ["wallet.low_balance", "wallet.depleted"]
    await purse.archive(last)
    assert (await purse.wallet()).status == "low"
    await purse.credit(100_000)
    assert (await purse.wallet()).status == "ok"
    assert len(await told()) == 2
    assert await purse.database.fetchval("select count(*) from delivery_queue") == 2


STEPS = st.one_of(
    st.tuples(st.just("send"), st.lists(st.sampled_from([0, 100, 600, 4_500]), min_size=1, max_size=5)),
    st.tuples(st.just("credit"), st.sampled_from([-700, 500, 5_000])),
    st.tuples(
        st.sampled_from(["claim", "depart", "refuse", "give up", "expire", "sent", "delivered", "failed", "archive"]),
        st.integers(0, 30),
    ),
)


@settings(
    max_examples=examples(60),
    deadline=timedelta(seconds=30),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=5, max_size=40))
async def test_whatever_happens_the_ledger_sums_up_nothing_is_charged_twice_and_no_hold_is_lost(
    database: Database, steps: list[tuple[str, Any]]
) -> None:
    purse = await Purse(database, CLOCK, IDS).open()
    messages: list[Any] = []
    late = 0
    for step, how in steps:
        if step == "credit":
            if how > 0 or (await purse.wallet()).available_coins >= -how:
                await purse.credit(how)
        elif step == "send":
            before = (await purse.wallet()).available_coins
            batch = [purse.message(coins) for coins in how]
            for message, result in zip(batch, await purse.store(*batch), strict=True):
                if result == STORED:
                    before -= message.coins or 0
                    messages.append(message)
                else:
                    assert isinstance(result, Problem)
                    assert result.status == 402
                    assert (message.coins or 0) > before
        elif messages:
            message = messages[how % len(messages)]
            before = await purse.status(message)
            match step:
                case "claim":
                    await purse.claim(message)
                case "depart":
                    await purse.depart(message)
                case "refuse":
                    await purse.fail(message, FailureCode.RECIPIENT_UNREACHABLE, queued=False)
                case "give up":
                    await purse.fail(message, FailureCode.OUTCOME_UNKNOWN, queued=False)
                case "expire":
                    await purse.fail(message, FailureCode.EXPIRED, queued=True)
                case "archive":
                    await purse.archive(message)
                case _:
                    await purse.report(message, step)
                    if before == "failed":
                        late += message.coins or 0
        await purse.check()
        assert (await purse.wallet()).available_coins >= -late
    charged = await purse.charges()
    for message in messages:
        gone = await purse.status(message) in {"sent", "delivered", "read"}
        if gone and message.coins:
            assert charged[message.id] == message.coins
        elif await purse.status(message) in {"queued", "sending", "archived"} and message.id in charged:
            # Only what was sent and then failed may be put away after it was charged.
            assert await purse.status(message) == "archived"
