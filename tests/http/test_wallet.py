"""The wallet over HTTP: balance, threshold, ledger and top-ups (C25.1, C25.2)."""

import asyncio
import re
from datetime import timedelta
from typing import Any

import orjson
import pytest

from recado.domain.billing.wallet import MOST_BALANCE
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.changes import DeliveriesQueued
from recado.storage.billing import top_ups

SANDBOX = 1_000_000_000


async def top_up(api: Any, coins: int) -> Any:
    answer = await api.post("/v2/wallet/top-ups", {"coins": coins})
    assert answer.status == 201, answer.body
    return answer.body


async def told(api: Any) -> list[tuple[str, Any]]:
    """The events of wallets, in their order."""
    rows = await api.database.fetch("select type, data from events where type like 'wallet.%' order by id")
    return [(row["type"], orjson.loads(row["data"])) for row in rows]


async def listen(api: Any, *events: str, env: str = "test") -> None:
    answer = await api.post("/webhooks", {"url": "https://hooks.example.com/", "events": list(events)}, env=env)
    assert answer.status == 201, answer.body


async def test_a_new_organization_has_coins_in_test_and_none_in_live(api: Any) -> None:
    test, live = await api.get("/v2/wallet"), await api.get("/v2/wallet", env="live")
    assert test.body | {"id": "", "updatedAt": ""} == {
        "id": "",
        "env": "test",
        "status": "ok",
        "balanceCoins": SANDBOX,
        "heldCoins": 0,
        "availableCoins": SANDBOX,
        "lowBalanceThresholdCoins": 100_000,
        "updatedAt": "",
    }
    assert re.fullmatch("wal_[0-9A-Za-z]{21}", test.body["id"])
    assert test.body["id"] != live.body["id"]
    assert (live.body["env"], live.body["status"], live.body["balanceCoins"]) == ("live", "depleted", 0)
    assert test.headers["Cache-Control"] == "no-store"


async def test_what_is_held_is_not_available(api: Any) -> None:
    await api.database.execute("update wallets set held_coins = 400 where env = 'test'")
    wallet = (await api.get("/v2/wallet")).body
    assert (wallet["balanceCoins"], wallet["heldCoins"], wallet["availableCoins"]) == (SANDBOX, 400, SANDBOX - 400)


async def test_a_top_up_in_test_is_credited_at_once(api: Any) -> None:
    made = await top_up(api, 5_000)
    assert made | {"id": "", "createdAt": "", "updatedAt": "", "paidAt": ""} == {
        "id": "",
        "status": "paid",
        "coins": 5_000,
        "createdById": api.organizations[0].keys["test"][0].id,
        "paidAt": "",
        "createdAt": "",
        "updatedAt": "",
    }
    assert (await api.get("/v2/wallet")).body["balanceCoins"] == SANDBOX + 5_000
    entry = (await api.get("/v2/wallet/ledger")).body["items"][0]
    assert entry | {"id": "", "createdAt": ""} == {
        "id": "",
        "kind": "topup",
        "coins": 5_000,
        "balanceAfter": SANDBOX + 5_000,
        "description": f"top-up {made['id']}",
        "createdAt": "",
    }
    assert (await api.get(f"/v2/wallet/top-ups/{made['id']}")).body == made


async def test_a_top_up_in_live_waits_for_its_payment(api: Any) -> None:
    answer = await api.post("/v2/wallet/top-ups", {"amountCents": 1_000}, env="live")
    assert answer.status == 201
    assert (answer.body["status"], answer.body["coins"], answer.body["amountCents"]) == ("pending", 100_000, 1_000)
    assert re.fullmatch("[A-Za-z0-9]{27}", answer.body["paymentReference"])
    assert answer.body["expiresAt"][:10] == format_timestamp(api.clock.now() + timedelta(days=7))[:10]
    assert "paidAt" not in answer.body
    assert (await api.get("/v2/wallet", env="live")).body["balanceCoins"] == 0
    assert (await api.get("/v2/wallet/ledger", env="live")).body == {"items": []}


@pytest.mark.parametrize(
    ("env", "body", "path", "code"),
    [
        ("test", {}, "/coins", "REQUIRED"),
        ("test", {"amountCents": 1_000}, "/coins", "REQUIRED"),
        ("test", {"coins": None}, "/coins", "REQUIRED"),
        ("test", {"coins": 0}, "/coins", "OUT_OF_RANGE"),
        ("test", {"coins": -1}, "/coins", "OUT_OF_RANGE"),
        ("test", {"coins": 10**12 + 1}, "/coins", "OUT_OF_RANGE"),
        ("test", {"coins": 2**63 - 1}, "/coins", "OUT_OF_RANGE"),
        ("test", {"coins": 1.5}, "/coins", "WRONG_TYPE"),
        ("test", {"coins": "5"}, "/coins", "WRONG_TYPE"),
        ("test", {"coins": True}, "/coins", "WRONG_TYPE"),
        ("live", {}, "/amountCents", "REQUIRED"),
        ("live", {"coins": 5}, "/amountCents", "REQUIRED"),
        ("live", {"amountCents": 999}, "/amountCents", "OUT_OF_RANGE"),
        ("live", {"amountCents": 10**10 + 1}, "/amountCents", "OUT_OF_RANGE"),
        ("live", {"amountCents": "1000"}, "/amountCents", "WRONG_TYPE"),
    ],
)
async def test_a_top_up_of_another_form_is_refused(api: Any, env: str, body: Any, path: str, code: str) -> None:
    answer = await api.post("/v2/wallet/top-ups", body, env=env)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [(error["path"], error["code"]) for error in answer.body["errors"]] == [(path, code)]
    assert (await api.get("/v2/wallet/top-ups", env=env)).body == {"items": [], "total": 0}


@pytest.mark.parametrize(
    ("env", "body", "coins"),
    [
        ("test", {"coins": 1}, 1),
        ("test", {"coins": 10**12}, 10**12),
        ("live", {"amountCents": 10**10}, 10**12),
    ],
)
async def test_the_bounds_of_a_top_up_are_taken(api: Any, env: str, body: Any, coins: int) -> None:
    answer = await api.post("/v2/wallet/top-ups", body, env=env)
    assert (answer.status, answer.body["coins"]) == (201, coins)


async def test_a_top_up_repeated_under_its_key_credits_once(api: Any) -> None:
    headers = {"Idempotency-Key": "top-up 1"}
    first = await api.post("/v2/wallet/top-ups", {"coins": 7}, headers=headers)
    again = await api.post("/v2/wallet/top-ups", {"coins": 7}, headers=headers)
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (201, first.body, "true")
    assert (await api.post("/v2/wallet/top-ups", {"coins": 8}, headers=headers)).code == "IDEMPOTENCY_KEY_REUSED"
    assert (await api.get("/v2/wallet")).body["balanceCoins"] == SANDBOX + 7


async def test_a_balance_stays_within_what_json_tells_exactly(api: Any) -> None:
    await api.database.execute("update wallets set balance_coins = $1 where env = 'test'", MOST_BALANCE - 5)
    refused = await api.post("/v2/wallet/top-ups", {"coins": 6})
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "LIMIT_REACHED", {"limit": MOST_BALANCE})
    assert (await api.get("/v2/wallet/top-ups")).body["total"] == 0
    await top_up(api, 5)
    assert (await api.get("/v2/wallet")).body["balanceCoins"] == MOST_BALANCE


async def test_many_top_ups_at_once_lose_no_coin(api: Any) -> None:
    await asyncio.gather(*(top_up(api, coins) for coins in range(1, 31)))
    wallet = (await api.get("/v2/wallet")).body
    assert wallet["balanceCoins"] == SANDBOX + sum(range(1, 31))
    entries = (await api.get("/v2/wallet/ledger?limit=200")).body["items"]
    assert sum(entry["coins"] for entry in entries) == wallet["balanceCoins"]
    assert len({entry["balanceAfter"] for entry in entries}) == 31
    balance = 0
    for entry in reversed(entries):  # the order of ids is the order in which they were applied
        balance += entry["coins"]
        assert entry["balanceAfter"] == balance


async def test_top_ups_are_listed_newest_first_in_their_environment(api: Any) -> None:
    made = [(await top_up(api, coins))["id"] for coins in (1, 2, 3)]
    page = (await api.get("/v2/wallet/top-ups?limit=2&skip=1")).body
    assert ([item["id"] for item in page["items"]], page["total"]) == ([made[1], made[0]], 3)
    assert (await api.get("/v2/wallet/top-ups", env="live")).body["total"] == 0
    assert (await api.get(f"/v2/wallet/top-ups/{made[0]}", env="live")).status == 404
    assert (await api.get(f"/v2/wallet/top-ups/{made[0]}", organization=1)).status == 404
    assert (await api.get("/v2/wallet/top-ups/nothing")).status == 404


async def test_nobody_pays_a_top_up_after_seven_days(api: Any) -> None:
    made = (await api.post("/v2/wallet/top-ups", {"amountCents": 5_000}, env="live")).body
    assert await top_ups.expire(api.database, api.clock.now() + timedelta(days=6, hours=23)) == 0
    assert await top_ups.expire(api.database, api.clock.now() + timedelta(days=7)) == 1
    assert (await api.get(f"/v2/wallet/top-ups/{made['id']}", env="live")).body["status"] == "expired"
    assert await top_ups.expire(api.database, api.clock.now() + timedelta(days=8)) == 0


async def test_the_threshold_changes_and_moves_the_status(api: Any) -> None:
    await listen(api, "wallet.low_balance")
    before = (await api.get("/v2/wallet")).body
    raised = await api.patch("/v2/wallet", {"lowBalanceThresholdCoins": SANDBOX + 1})
    assert (raised.status, raised.body["status"]) == (200, "low")
    assert raised.body["lowBalanceThresholdCoins"] == SANDBOX + 1
    assert raised.body["updatedAt"] > before["updatedAt"]
    assert await told(api) == [
        (
            "wallet.low_balance",
            {"walletId": before["id"], "availableCoins": SANDBOX, "thresholdCoins": SANDBOX + 1},
        )
    ]
    assert [type(change) for change in api.changes[-1:]] == [DeliveriesQueued]
    await api.patch("/v2/wallet", {"lowBalanceThresholdCoins": SANDBOX + 2})
    assert len(await told(api)) == 1
    assert (await api.patch("/v2/wallet", {"lowBalanceThresholdCoins": 0})).body["status"] == "ok"
    assert (await api.get("/v2/wallet", env="live")).body["lowBalanceThresholdCoins"] == 100_000


async def test_an_empty_change_or_the_same_one_changes_nothing(api: Any) -> None:
    before = (await api.get("/v2/wallet")).body
    assert (await api.patch("/v2/wallet", {})).body == before
    assert (await api.patch("/v2/wallet", {"lowBalanceThresholdCoins": 100_000})).body == before
    assert (await api.get("/v2/audit?action=wallet.update")).body["items"] == []


@pytest.mark.parametrize("value", [None, -1, MOST_BALANCE + 1, 2**63 - 1, 1.5, "5", True, []])
async def test_a_threshold_of_another_form_is_refused(api: Any, value: Any) -> None:
    answer = await api.patch("/v2/wallet", {"lowBalanceThresholdCoins": value})
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == ["/lowBalanceThresholdCoins"]


async def test_changes_of_the_wallet_stand_in_the_audit(api: Any) -> None:
    made = await top_up(api, 5)
    wallet = (await api.patch("/v2/wallet", {"lowBalanceThresholdCoins": 7})).body
    entries = (await api.get("/v2/audit")).body["items"]
    assert [(entry["action"], entry["targetId"], entry["details"]) for entry in entries] == [
        ("wallet.update", wallet["id"], {"lowBalanceThresholdCoins": 7}),
        ("wallet.top_up", made["id"], {"coins": 5}),
    ]


async def test_reading_and_changing_need_their_scopes(api: Any) -> None:
    reader, writer = await api.key("wallet:read"), await api.key("wallet:write")
    assert (await api.get("/v2/wallet", token=reader)).status == 200
    assert (await api.get("/v2/wallet", token=writer)).code == "SCOPE_REQUIRED"
    assert (await api.post("/v2/wallet/top-ups", {"coins": 1}, token=reader)).code == "SCOPE_REQUIRED"
    assert (await api.post("/v2/wallet/top-ups", {"coins": 1}, token=writer)).status == 201
    guarded = await api.post("/v2/wallet/top-ups", {"coins": 1}, headers={"If-Match": "*"})
    assert (guarded.status, guarded.code) == (412, "VERSION_MISMATCH")
