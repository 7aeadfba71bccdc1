"""Prices from the table, and volumes that this process knows at once (C25.3)."""

import random
from datetime import UTC, datetime, timedelta

import pytest
from tests.purse import Purse

from recado.domain.billing.prices import month_of
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.engine.clock import VirtualClock
from recado.storage.billing.prices import Captured, PriceDirectory
from recado.storage.core.connections.postgres import Database

# The table of the rules: kind, four tiers, abroad.
TABLE = [
    ("sms_premium", 1000, 900, 800, 700, 3500),
    ("sms_otp", 1200, 1100, 1000, 900, 4200),
    ("sms_la_dedicada", 1100, 1000, 900, 800, None),
    ("rcs_text", 1100, 1000, 900, 800, 3500),
    ("rcs_other", 1800, 1650, 1500, 1350, 5500),
    ("rcs_otp", 1300, 1200, 1100, 1000, 4200),
    ("chatapp_marketing", 4500, 4500, 4500, 4500, 9000),
    ("chatapp_utility", 600, 550, 500, 450, 1800),
    ("chatapp_authentication", 600, 550, 500, 450, 2500),
    ("chatapp_free_form", 100, 100, 100, 100, 100),
    ("chatapp_platform", 100, 100, 100, 100, 100),
    ("email", 30, 30, 30, 30, 30),
    ("push_simple", 4, 4, 4, 4, 4),
    ("push_rich", 8, 8, 8, 8, 8),
    ("push_silent", 2, 2, 2, 2, 2),
    ("social", 100, 100, 100, 100, 100),
]


@pytest.fixture
async def purse(database: Database) -> Purse:
    clock = VirtualClock(datetime(2026, 11, 15, 12, tzinfo=UTC))
    return await Purse(database, clock, IdSource(clock, random.Random(5))).open()


async def test_the_first_prices_are_those_of_the_rules(purse: Purse) -> None:
    table = await purse.directories.prices.table_of(purse.organization_id)
    expected = {
        key: coins
        for kind, *br, intl in TABLE
        for key, coins in [
            *(((kind, "BR", tier), coins) for tier, coins in enumerate(br, 1)),
            ((kind, "INTL", 1), intl),
        ]
        if coins is not None
    }
    assert table.in_force(purse.clock.now()) == expected


async def test_what_is_not_offered_is_refused(purse: Purse) -> None:
    with pytest.raises(Problem) as refused:
        await purse.directories.prices.price_of(
            purse.organization_id, "live", "sms_la_dedicada", "INTL", purse.clock.now()
        )
    assert refused.value.code == "ROUTE_NOT_AVAILABLE"


async def test_nothing_is_known_without_waiting_until_it_was_read(purse: Purse) -> None:
    prices = purse.directories.prices
    unit = (purse.organization_id, "test", "chatapp_utility", "BR", purse.clock.now())
    assert prices.peek(*unit) is None
    price = await prices.price_of(*unit)
    assert prices.peek(*unit) == price
    assert (price.coins, price.kind) == (600, None)


async def test_what_this_process_captured_counts_at_once_and_what_another_did_within_five_seconds(
    purse: Purse,
) -> None:
    prices, organization_id = purse.directories.prices, purse.organization_id
    elsewhere = PriceDirectory(purse.database, clock=purse.clock)

    async def coins(directory: PriceDirectory) -> int:
        now = purse.clock.now()
        return (await directory.price_of(organization_id, "live", "chatapp_utility", "BR", now)).coins

    assert (await coins(prices), await coins(elsewhere)) == (600, 600)
    month = month_of((await prices.volumes_of(organization_id)).zone, purse.clock.now())
    await purse.database.execute("insert into price_volumes values ($1, 'chatapp', $2, 10000)", organization_id, month)
    prices.captured([Captured(organization_id, "chatapp", month, 10_000)])
    prices.captured([Captured(organization_id, "chatapp", month, 9_000)])  # a commit before it, told later
    assert (await coins(prices), await coins(elsewhere)) == (550, 600)
    await purse.clock.advance(5)
    assert await coins(elsewhere) == 550


async def test_an_organizations_own_price_is_its_alone(purse: Purse) -> None:
    other = await Purse(purse.database, purse.clock, purse.ids).open()
    since = purse.clock.now() - timedelta(days=1)
    await purse.database.execute(
        "insert into prices values ($1, 'chatapp_utility', 'BR', 1, 333, $2, null)", purse.organization_id, since
    )
    for whose, coins in ((purse, 333), (other, 600)):
        unit = (whose.organization_id, "live", "chatapp_utility", "BR", purse.clock.now())
        assert (await whose.directories.prices.price_of(*unit)).coins == coins
