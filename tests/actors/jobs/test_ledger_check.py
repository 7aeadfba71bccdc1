"""The daily check of ledgers against balances (C25.2.5)."""

import random
from datetime import UTC, datetime

import pytest
from tests.captured import capture_logs
from tests.purse import Purse
from tests.waiting import until

from recado.actors.jobs.ledger_check import LedgerCheck
from recado.domain.core.ids import IdSource
from recado.engine.clock import VirtualClock
from recado.storage.core.connections.postgres import Database


@pytest.fixture
async def purse(database: Database) -> Purse:
    clock = VirtualClock(datetime(2026, 11, 15, 12, tzinfo=UTC))
    return await Purse(database, clock, IdSource(clock, random.Random(5))).open()


@pytest.fixture
def check(purse: Purse) -> LedgerCheck:
    return LedgerCheck(purse.database, clock=purse.clock, ids=purse.ids)


async def alarms(purse: Purse) -> int:
    return int(await purse.database.fetchval("select count(*) from audit where action = 'wallet.ledger_mismatch'"))


async def verified(purse: Purse) -> int:
    return int(
        await purse.database.fetchval(
            "select verified_coins from wallets where organization_id = $1 and env = 'live'", purse.organization_id
        )
    )


async def test_what_sums_up_is_not_read_again_whatever_the_clock_showed(purse: Purse, check: LedgerCheck) -> None:
    await purse.credit(1_000)
    await check.work()
    assert await verified(purse) == 1_000
    await purse.database.execute("update ledger set coins = 1 where coins = 1000")  # unread from now on
    await purse.credit(500)
    await purse.database.execute("update ledger set id = 'led_0' where coins = 500")  # by a clock that was set back
    await check.work()
    assert await verified(purse) == 1_500
    assert await alarms(purse) == 0


async def test_a_balance_that_is_not_the_sum_is_an_alarm_until_it_is_mended(purse: Purse, check: LedgerCheck) -> None:
    await purse.credit(1_000)
    await purse.clock.advance(7_200)
    await purse.database.execute("update wallets set balance_coins = 999 where env = 'live'")

    with capture_logs() as logs:
        await check.work()
        await check.work()

    told = [(entry["event"], entry["log_level"], entry["balance"], entry["ledger"]) for entry in logs]
    assert told == [("ledger_mismatch", "error", 999, 1_000)] * 2
    assert await alarms(purse) == 2
    assert await verified(purse) == 0
    await purse.database.execute("update wallets set balance_coins = 1000 where env = 'live'")
    await check.work()
    assert (await alarms(purse), await verified(purse)) == (2, 1_000)


async def test_it_is_checked_when_the_service_starts(purse: Purse, check: LedgerCheck) -> None:
    await purse.database.execute("update wallets set balance_coins = 7 where env = 'live'")

    async def told() -> bool:
        return await alarms(purse) == 1

    await check.start()
    try:
        await until(told, "the alarm is written")
    finally:
        await check.stop()
