"""What a send costs (C25.3)."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.billing.prices import (
    BR,
    CHATAPP_MARKETING,
    CHATAPP_UTILITY,
    FAMILIES,
    INTL,
    Price,
    PriceRow,
    PriceTable,
    Volumes,
    month_of,
    price_in,
    region_of,
    tier_of,
)

NOW = datetime(2026, 5, 1, 2, 30, tzinfo=UTC)  # still April in São Paulo
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
ZONE = ZoneInfo("America/Sao_Paulo")
APRIL, MAY = date(2026, 4, 1), date(2026, 5, 1)


def row(coins: int, *, kind: str = CHATAPP_UTILITY, region: str = BR, tier: int = 1, **validity: datetime) -> PriceRow:
    return PriceRow(kind, region, tier, coins, validity.get("since", LONG_AGO), validity.get("until"))


TABLE = PriceTable(
    [row(600 - 50 * (tier - 1), tier=tier) for tier in (1, 2, 3, 4)]
    + [row(4_500, kind=CHATAPP_MARKETING, tier=tier) for tier in (1, 2, 3, 4)]
    + [row(1_800, region=INTL)]
)


@pytest.mark.parametrize(
    ("units", "tier"), [(0, 1), (9_999, 1), (10_000, 2), (99_999, 2), (100_000, 3), (1_000_000, 4), (10**9, 4)]
)
def test_the_tier_follows_from_the_units_of_the_month(units: int, tier: int) -> None:
    assert tier_of(units) == tier


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_more_units_never_cost_more(units: int, others: int) -> None:
    few, many = sorted((units, others))
    assert coins_after(few) >= coins_after(many)


def coins_after(units: int, *, env: str = "live", kind: str = CHATAPP_UTILITY, region: str = BR) -> int:
    volumes = Volumes(ZONE, {("chatapp", APRIL): units})
    price = price_in(TABLE, volumes, env=env, kind=kind, region=region, at=NOW)
    assert price is not None
    return price.coins


def test_the_month_is_that_of_the_organizations_zone() -> None:
    assert month_of(ZONE, NOW) == APRIL
    assert month_of(ZoneInfo("UTC"), NOW) == MAY
    assert coins_after(10_000) == 550
    volumes = Volumes(ZONE, {("chatapp", MAY): 10_000})
    assert price_in(TABLE, volumes, env="live", kind=CHATAPP_UTILITY, region=BR, at=NOW) == Price(600, CHATAPP_UTILITY)


def test_test_is_priced_with_the_live_tier_and_counts_for_none() -> None:
    volumes = Volumes(ZONE, {("chatapp", APRIL): 10_000})
    for env, kind in (("live", CHATAPP_UTILITY), ("test", None)):
        assert price_in(TABLE, volumes, env=env, kind=CHATAPP_UTILITY, region=BR, at=NOW) == Price(550, kind)


def test_other_regions_and_other_kinds_have_one_tier_and_count_for_none() -> None:
    volumes = Volumes(ZONE, {(family, APRIL): 10**7 for family in FAMILIES})
    for kind, region, coins in ((CHATAPP_UTILITY, INTL, 1_800), (CHATAPP_MARKETING, BR, 4_500)):
        assert price_in(TABLE, volumes, env="live", kind=kind, region=region, at=NOW) == Price(coins, None)


def test_what_is_not_offered_has_no_price() -> None:
    assert price_in(TABLE, Volumes(ZONE, {}), env="live", kind=CHATAPP_MARKETING, region=INTL, at=NOW) is None


def test_a_price_holds_from_its_beginning_until_before_its_end() -> None:
    table = PriceTable([row(600, until=NOW), row(700, since=NOW, until=NOW + timedelta(days=1))])
    moments = [NOW - timedelta(microseconds=1), NOW, NOW + timedelta(days=1)]
    assert [table.coins(CHATAPP_UTILITY, BR, 1, at) for at in moments] == [600, 700, None]
    assert table.in_force(NOW) == {(CHATAPP_UTILITY, BR, 1): 700}


def test_an_organizations_own_price_stands_before_everybodys() -> None:
    table = PriceTable([row(500, until=NOW)], [row(600), row(550, tier=2)])
    before = NOW - timedelta(days=1)
    assert table.coins(CHATAPP_UTILITY, BR, 1, before) == 500
    assert table.coins(CHATAPP_UTILITY, BR, 1, NOW) == 600
    assert table.coins(CHATAPP_UTILITY, BR, 2, before) == 550


@pytest.mark.parametrize(("phone", "region"), [("+5511987654321", BR), ("+15555550100", INTL), ("+595981123456", INTL)])
def test_the_region_is_that_of_the_phone(phone: str, region: str) -> None:
    assert region_of(phone) == region
