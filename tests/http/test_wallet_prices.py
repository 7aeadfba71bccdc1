"""The prices in force over HTTP, with tier and volume (C25.3)."""

from collections.abc import AsyncIterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, get_args

import pytest

from recado.http.routes.access.organization_models import PriceKind

ADMIN = "the administrator of the tests"
TIERS = {
    ("sms", "premium", "segment"): ([1_000, 900, 800, 700], 3_500),
    ("sms", "otp", "segment"): ([1_200, 1_100, 1_000, 900], 4_200),
    ("sms", "la_dedicada", "segment"): ([1_100, 1_000, 900, 800], None),
    ("rcs", "text", "message"): ([1_100, 1_000, 900, 800], 3_500),
    ("rcs", "other", "message"): ([1_800, 1_650, 1_500, 1_350], 5_500),
    ("rcs", "otp", "message"): ([1_300, 1_200, 1_100, 1_000], 4_200),
    ("chatapp", "marketing", "message"): ([4_500] * 4, 9_000),
    ("chatapp", "utility", "message"): ([600, 550, 500, 450], 1_800),
    ("chatapp", "authentication", "message"): ([600, 550, 500, 450], 2_500),
    ("chatapp", "free_form", "message"): ([100] * 4, 100),
    ("chatapp", "platform", "message"): ([100] * 4, 100),
    ("email", "email", "recipient"): ([30] * 4, 30),
    ("push", "simple", "device"): ([4] * 4, 4),
    ("push", "rich", "device"): ([8] * 4, 8),
    ("push", "silent", "device"): ([2] * 4, 2),
    ("social", "social", "message"): ([100] * 4, 100),
}


async def prices(api: Any, **how: Any) -> Any:
    answer = await api.get("/v2/wallet/prices", **how)
    assert answer.status == 200
    return answer.body


def by_kind(body: Any) -> dict[tuple[str, str], Any]:
    return {(price["channel"], price["kind"]): price for price in body["prices"]}


async def capture(api: Any, family: str, units: int, month: date) -> None:
    await api.database.execute(
        "insert into price_volumes (organization_id, family, month, units) values ($1, $2, $3, $4)",
        *(api.organizations[0].organization.id, family, month, units),
    )


async def test_the_table_is_the_one_of_the_contract(api: Any) -> None:
    body = await prices(api)
    shown = {
        (price["channel"], price["kind"], price["unit"]): (price["coins"], price.get("internationalCoins"))
        for price in body["prices"]
    }
    assert shown == TIERS
    assert all(price["unitCoins"] == price["coins"][0] for price in body["prices"])
    assert [(tier["tier"], tier["fromUnits"]) for tier in body["tiers"]] == [
        (1, 0), (2, 10_000), (3, 100_000), (4, 1_000_000),
    ]  # fmt: skip
    assert body["timeZone"] == "America/Sao_Paulo"


@pytest.mark.parametrize(
    ("units", "tier", "coins"),
    [(9_999, 1, 600), (10_000, 2, 550), (100_000, 3, 500), (999_999, 3, 500), (1_000_000, 4, 450)],
)
async def test_the_month_s_volume_decides_the_tier_of_its_channel(api: Any, units: int, tier: int, coins: int) -> None:
    body = await prices(api)
    await capture(api, "chatapp", units, date.fromisoformat(f"{body['month']}-01"))
    api.clock.shift(6)  # what is read is at most 5 s old
    body = await prices(api)
    assert body["volumes"] == [
        {"channel": "chatapp", "units": units, "tier": tier},
        {"channel": "rcs", "units": 0, "tier": 1},
        {"channel": "sms", "units": 0, "tier": 1},
    ]
    kinds = by_kind(body)
    assert kinds["chatapp", "utility"]["unitCoins"] == coins
    assert kinds["chatapp", "marketing"]["unitCoins"] == 4_500
    assert kinds["sms", "premium"]["unitCoins"] == 1_000


async def test_test_is_priced_as_live_is_and_others_have_their_own_volume(api: Any) -> None:
    month = date.fromisoformat(f"{(await prices(api, organization=1))['month']}-01")
    await capture(api, "sms", 10_000, month)
    test, live = await prices(api), await prices(api, env="live")
    assert test | {"at": ""} == live | {"at": ""}
    assert by_kind(test)["sms", "premium"]["unitCoins"] == 900
    assert by_kind(await prices(api, organization=1))["sms", "premium"]["unitCoins"] == 1_000


async def test_a_new_month_begins_at_the_first_tier_in_the_organization_s_zone(api: Any) -> None:
    await api.patch("/v2/organization", {"timeZone": "Pacific/Kiritimati"})  # UTC+14
    here = (api.clock.now() + timedelta(hours=14)).date().replace(day=1)
    await capture(api, "rcs", 10_000, (here - timedelta(days=1)).replace(day=1))
    body = await prices(api)
    assert body["month"] == f"{here:%Y-%m}"
    assert {volume["tier"] for volume in body["volumes"]} == {1}


async def test_prices_are_in_force_from_their_day_until_their_end(api: Any) -> None:
    organization_id = api.organizations[0].organization.id
    now = datetime.now(UTC)
    for coins, start, end in ((555, now - timedelta(hours=1), None), (444, now + timedelta(hours=1), None)):
        await api.database.execute(
            "insert into prices (organization_id, kind, region, tier, coins, valid_from, valid_until) "
            "values ($1, 'chatapp_utility', 'BR', 1, $2, $3, $4)",
            *(organization_id, coins, start, end),
        )
    try:
        assert by_kind(await prices(api))["chatapp", "utility"]["coins"] == [555, 550, 500, 450]
        assert by_kind(await prices(api, organization=1))["chatapp", "utility"]["coins"] == [600, 550, 500, 450]
        api.clock.shift(3_601)
        assert by_kind(await prices(api))["chatapp", "utility"]["coins"][0] == 444
    finally:
        await api.database.execute("delete from prices where organization_id is not null")


async def agree(api: Any, overrides: Any, **how: Any) -> Any:
    path = f"/v2/admin/organizations/{api.organizations[0].organization.id}"
    return await api.patch(path, {"priceOverrides": overrides}, token=ADMIN, **how)


@pytest.fixture
async def agreeing(api: Any) -> AsyncIterator[Any]:
    yield api
    await api.database.execute("delete from prices where organization_id is not null")


async def test_the_administrator_agrees_prices_with_one_organization(agreeing: Any) -> None:
    api = agreeing
    await prices(api)  # remembered from here on
    overrides = {
        "chatapp_utility": {"coins": [500, 400, 300, 200], "internationalCoins": 1_500},
        "chatapp_marketing": {"internationalCoins": 8_000},
        "email": {"coins": [0, 0, 0, 0]},
    }
    answer = await agree(api, overrides)
    assert (answer.status, answer.body["priceOverrides"], answer.etag) == (200, overrides, '"2"')
    kinds = by_kind(await prices(api))
    assert kinds["chatapp", "utility"]["coins"] == [500, 400, 300, 200]
    assert kinds["chatapp", "utility"]["internationalCoins"] == 1_500
    assert kinds["chatapp", "marketing"]["coins"] == [4_500] * 4
    assert kinds["chatapp", "marketing"]["internationalCoins"] == 8_000
    assert kinds["email", "email"]["unitCoins"] == 0
    assert by_kind(await prices(api, organization=1))["chatapp", "utility"]["coins"] == [600, 550, 500, 450]

    again = await agree(api, overrides)
    assert again.etag == '"2"'
    other = await agree(api, {"email": {"coins": [9, 9, 9, 9]}, "social": {}})
    assert other.body["priceOverrides"] == {"email": {"coins": [9, 9, 9, 9]}}
    assert by_kind(await prices(api))["chatapp", "utility"]["coins"] == [600, 550, 500, 450]
    none = await agree(api, None)
    assert (none.body["priceOverrides"], none.etag) == ({}, '"4"')
    assert by_kind(await prices(api))["email", "email"]["unitCoins"] == 30
    audited = (await api.get("/v2/audit?action=organization.update")).body["items"]
    assert [entry["details"] for entry in audited] == [{"fields": ["priceOverrides"]}] * 3


async def test_prices_that_were_agreed_before_can_still_be_told(agreeing: Any) -> None:
    api = agreeing
    await agree(api, {"email": {"coins": [9, 9, 9, 9]}})
    await agree(api, {"email": {"coins": [8, 8, 8, 8]}})
    rows = await api.database.fetch(
        "select coins, valid_until is null as valid from prices where organization_id is not null and tier = 1"
    )
    assert {(row["coins"], row["valid"]) for row in rows} == {(9, False), (8, True)}


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ([], "/priceOverrides"),
        ({"pigeon": {"coins": [1, 1, 1, 1]}}, "/priceOverrides/pigeon"),
        ({"email": None}, "/priceOverrides/email"),
        ({"email": {"coins": [1, 1, 1]}}, "/priceOverrides/email/coins"),
        ({"email": {"coins": [1, 1, 1, -1]}}, "/priceOverrides/email/coins/3"),
        ({"email": {"coins": [1, 1, 1, 1.5]}}, "/priceOverrides/email/coins/3"),
        ({"email": {"internationalCoins": 10**9 + 1}}, "/priceOverrides/email/internationalCoins"),
        ({"email": {"internationalCoins": "5"}}, "/priceOverrides/email/internationalCoins"),
    ],
)
async def test_prices_of_another_form_are_refused(api: Any, overrides: Any, path: str) -> None:
    answer = await agree(api, overrides)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == [path]
    assert await api.database.fetchval("select count(*) from prices where organization_id is not null") == 0


async def test_a_price_can_be_agreed_for_every_kind_of_the_table(api: Any) -> None:
    kinds = await api.database.fetch("select distinct kind from prices where organization_id is null")
    assert {row["kind"] for row in kinds} == set(get_args(PriceKind))
