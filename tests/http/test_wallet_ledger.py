"""The ledger over HTTP: newest first, page by page, narrowed by filters (C25.2)."""

from typing import Any

import pytest
from tests.http.test_wallet import SANDBOX, top_up


async def test_the_ledger_comes_newest_first_page_by_page(api: Any) -> None:
    for coins in (1, 2, 3, 4):
        await top_up(api, coins)
    seen, cursor = [], ""
    while True:
        page = (await api.get(f"/v2/wallet/ledger?limit=2{cursor}")).body
        seen += [entry["coins"] for entry in page["items"]]
        if "nextCursor" not in page:
            break
        await top_up(api, 9)  # what comes later is on no later page
        cursor = f"&cursor={page['nextCursor']}"
    assert seen == [4, 3, 2, 1, SANDBOX]


async def test_what_came_later_comes_first_although_a_clock_was_set_back(api: Any) -> None:
    for coins in (1, 2, 3):
        await top_up(api, coins)
    early, late = "led_" + "0" * 21, "led_" + "1" * 21  # 1970 and 2083
    await api.database.execute("update ledger set id = $1 where coins = 2", late)
    await api.database.execute("update ledger set id = $1 where coins = 3", early)

    async def pages(query: str) -> list[int]:
        first = (await api.get(f"/v2/wallet/ledger?limit=1{query}")).body
        seen, cursor = first["items"], first.get("nextCursor")
        while cursor:
            page = (await api.get(f"/v2/wallet/ledger?limit=1{query}&cursor={cursor}")).body
            seen, cursor = seen + page["items"], page.get("nextCursor")
        return [entry["coins"] for entry in seen]

    assert await pages("") == [3, 2, 1, SANDBOX]
    assert await pages("&kind=topup") == [3, 2, 1, SANDBOX]
    # A period is of the moments that the entries were stamped with.
    assert await pages("&from=2020-01-01T00:00:00Z") == [2, 1, SANDBOX]
    assert await pages("&to=2020-01-01T00:00:00Z") == [3]
    assert await pages("&from=2020-01-01T00:00:00Z&to=2020-01-02T00:00:00Z") == []


async def test_filters_narrow_the_ledger(api: Any) -> None:
    await top_up(api, 1)
    message = "msg_" + "1" * 21
    organization_id = api.organizations[0].organization.id
    for place, kind, coins in ((3, "charge", -600), (4, "refund", 600)):
        await api.database.execute(
            "insert into ledger (organization_id, env, id, kind, coins, balance_after, channel, message_id, batch_id, "
            "position) values ($1, 'test', $2, $3, $4, 0, 'chatapp', $5, $6, $7)",
            *(organization_id, api.ids.new("led_"), kind, coins, message, "btc_" + "1" * 21, place),
        )

    async def found(query: str) -> list[int]:
        return [entry["coins"] for entry in (await api.get(f"/v2/wallet/ledger?{query}")).body["items"]]

    assert await found("") == [600, -600, 1, SANDBOX]
    assert await found("kind=topup") == [1, SANDBOX]
    assert await found("kind=charge") == [-600]
    assert await found("kind=adjustment") == []
    assert await found(f"messageId={message}") == [600, -600]
    assert await found(f"messageId={message}&kind=refund") == [600]
    assert await found("messageId=nothing") == []
    charge = (await api.get("/v2/wallet/ledger?kind=charge")).body["items"][0]
    assert charge | {"id": "", "createdAt": ""} == {
        "id": "",
        "kind": "charge",
        "coins": -600,
        "balanceAfter": 0,
        "channel": "chatapp",
        "messageId": message,
        "batchId": "btc_" + "1" * 21,
        "createdAt": "",
    }
    at = charge["createdAt"]
    assert await found(f"from={at}&kind=charge") == [-600]
    assert await found(f"to={at}&kind=charge") == []


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("limit=0", "INVALID_PARAMETER"),
        ("limit=201", "INVALID_PARAMETER"),
        ("kind=", "INVALID_PARAMETER"),
        ("kind=gift", "INVALID_PARAMETER"),
        ("messageId=", "INVALID_PARAMETER"),
        ("from=yesterday", "INVALID_PARAMETER"),
        ("to=2026-01-01T00:00:00", "INVALID_PARAMETER"),
        ("from=2026-02-01T00:00:00Z&to=2026-01-01T00:00:00Z", "INVALID_PERIOD"),
        ("cursor=rubbish", "INVALID_CURSOR"),
    ],
)
async def test_a_query_of_the_ledger_that_is_not_valid_is_refused(api: Any, query: str, code: str) -> None:
    answer = await api.get(f"/v2/wallet/ledger?{query}")
    assert (answer.status, answer.code) == (400, code)


async def test_a_cursor_of_the_ledger_belongs_to_its_filters_organization_and_environment(api: Any) -> None:
    await top_up(api, 1)
    cursor = (await api.get("/v2/wallet/ledger?limit=1")).body["nextCursor"]
    assert (await api.get(f"/v2/wallet/ledger?limit=200&cursor={cursor}")).status == 200
    for refused in (
        api.get(f"/v2/wallet/ledger?cursor={cursor}&kind=topup"),
        api.get(f"/v2/wallet/ledger?cursor={cursor}", env="live"),
        api.get(f"/v2/wallet/ledger?cursor={cursor}", organization=1),
    ):
        assert (await refused).code == "INVALID_CURSOR"
