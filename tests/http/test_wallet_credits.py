"""What the administrator credits to wallets (C24.1, C25.2)."""

import asyncio
from typing import Any

import orjson
import pytest

from recado.domain.billing.wallet import MOST_BALANCE

ADMIN = "the administrator of the tests"
SANDBOX = 1_000_000_000


def path(api: Any, organization: int = 0) -> str:
    return f"/v2/admin/organizations/{api.organizations[organization].organization.id}/wallet-credits"


async def credit(api: Any, coins: int, reference: str, env: str = "live", organization: int = 0) -> Any:
    body = {"env": env, "coins": coins, "reference": reference}
    return await api.post(path(api, organization), body, token=ADMIN)


async def wallet(api: Any, env: str = "live", **how: Any) -> Any:
    return (await api.get("/v2/wallet", env=env, **how)).body


async def entries(api: Any, env: str = "live") -> list[tuple[str, int]]:
    items = (await api.get("/v2/wallet/ledger", env=env)).body["items"]
    return [(item["kind"], item["coins"]) for item in items]


async def pending(api: Any, cents: int = 1_000) -> Any:
    return (await api.post("/v2/wallet/top-ups", {"amountCents": cents}, env="live")).body


async def test_a_credit_is_a_top_up_in_the_ledger_and_in_the_audit(api: Any) -> None:
    answer = await credit(api, 500_000, "invoice 17")
    assert answer.status == 201
    assert answer.body["wallet"] == await wallet(api)
    assert (answer.body["wallet"]["balanceCoins"], answer.body["wallet"]["status"]) == (500_000, "ok")
    assert answer.body["replayed"] is False
    (entry,) = (await api.get("/v2/wallet/ledger", env="live")).body["items"]
    assert entry == answer.body["entry"]
    assert (entry["kind"], entry["coins"], entry["balanceAfter"]) == ("topup", 500_000, 500_000)
    assert entry["description"] == "invoice 17"
    (audited,) = (await api.get("/v2/audit", env="live")).body["items"]
    assert (audited["actor"]["type"], audited["action"], audited["targetId"], audited["details"]) == (
        "admin", "wallet.credit", answer.body["wallet"]["id"], {"coins": 500_000, "reference": "invoice 17"},
    )  # fmt: skip
    assert (await wallet(api, organization=1))["balanceCoins"] == 0
    assert (await wallet(api, "test"))["balanceCoins"] == SANDBOX


async def test_nothing_is_credited_while_the_organization_is_moved(api: Any) -> None:
    await api.database.execute("update organizations set status = 'suspended', moving = true")
    refused = await credit(api, 500, "invoice 17")
    assert (refused.status, refused.headers["Retry-After"]) == (503, "5")
    await api.database.execute("update organizations set status = 'active', moving = false")
    assert (await wallet(api))["balanceCoins"] == 0


async def test_a_reference_credits_once(api: Any) -> None:
    first = await credit(api, 500, "invoice 17")
    again = await credit(api, 500, " invoice 17 ")
    assert again.status == 201
    assert (again.body["entry"], again.body["replayed"]) == (first.body["entry"], True)
    other = await credit(api, 501, "invoice 17")
    assert (other.status, other.code, other.body["meta"]) == (409, "CONFLICT", {"coins": 500})
    assert (await wallet(api))["balanceCoins"] == 500
    assert len((await api.get("/v2/audit", env="live")).body["items"]) == 1
    # Elsewhere it is another reference.
    assert (await credit(api, 500, "invoice 17", env="test")).body["replayed"] is False
    assert (await credit(api, 500, "invoice 17", organization=1)).body["replayed"] is False


async def test_a_reference_that_races_itself_credits_once(api: Any) -> None:
    answers = await asyncio.gather(*(credit(api, 500, "invoice 17") for _ in range(12)))
    assert [answer.status for answer in answers] == [201] * 12
    assert sorted(answer.body["replayed"] for answer in answers) == [False] + [True] * 11
    assert await entries(api) == [("topup", 500)]


async def test_a_negative_credit_adjusts_down_what_is_available(api: Any) -> None:
    await credit(api, 1_000, "in")
    await api.database.execute("update wallets set held_coins = 400 where env = 'live'")
    refused = await credit(api, -601, "too much")
    assert (refused.status, refused.code) == (402, "PAYMENT_REQUIRED")
    assert refused.body["meta"] == {"requiredCoins": 601, "availableCoins": 600}
    assert (await credit(api, -600, "out")).body["wallet"]["availableCoins"] == 0
    assert await entries(api) == [("adjustment", -600), ("topup", 1_000)]


async def test_the_status_follows_and_each_crossing_is_told_once(api: Any) -> None:
    hook = {"url": "https://hooks.example.com/", "events": ["wallet.low_balance", "wallet.depleted"]}
    await api.post("/webhooks", hook, env="live")
    told = []
    for number, coins in enumerate([200_000, -100_001, -1, -99_998, 100_000, 9_999, 1, -110_000, 110_000]):
        answer = await credit(api, coins, f"step {number}")
        rows = await api.database.fetch("select type, data from events order by id")
        told.append((answer.body["wallet"]["status"], [row["type"] for row in rows[len(rows) - 1 :]], len(rows)))
    low, gone = ["wallet.low_balance"], ["wallet.depleted"]
    assert told == [
        ("ok", [], 0),
        ("low", low, 1),
        ("low", low, 1),
        ("depleted", gone, 2),
        ("low", gone, 2),
        ("low", gone, 2),
        ("ok", gone, 2),
        ("depleted", gone, 3),
        ("ok", gone, 3),
    ]
    data = orjson.loads(rows[0]["data"])
    assert data == {"walletId": (await wallet(api))["id"], "availableCoins": 99_999, "thresholdCoins": 100_000}
    assert orjson.loads(rows[1]["data"]) == {"walletId": data["walletId"], "availableCoins": 0}
    assert await api.database.fetchval("select count(*) from delivery_queue") == 3


async def test_the_payment_reference_of_a_top_up_confirms_its_payment(api: Any) -> None:
    made = await pending(api)
    wrong = await credit(api, 99_999, made["paymentReference"])
    assert (wrong.status, wrong.code, wrong.body["meta"]) == (409, "CONFLICT", {"coins": 100_000})
    paid = await credit(api, 100_000, made["paymentReference"])
    assert (paid.status, paid.body["replayed"]) == (201, False)
    assert paid.body["entry"]["description"] == f"top-up {made['id']}"
    found = (await api.get(f"/v2/wallet/top-ups/{made['id']}", env="live")).body
    assert (found["status"], found["paidAt"]) == ("paid", found["updatedAt"])
    assert (await credit(api, 100_000, made["paymentReference"])).body["replayed"] is True
    assert await entries(api) == [("topup", 100_000)]


async def test_a_payment_reference_of_another_wallet_is_any_text(api: Any) -> None:
    made = await pending(api)
    assert (await credit(api, 7, made["paymentReference"], organization=1)).status == 201
    assert (await credit(api, 7, made["paymentReference"], env="test")).status == 201
    assert (await api.get(f"/v2/wallet/top-ups/{made['id']}", env="live")).body["status"] == "pending"


@pytest.mark.parametrize("status", ["expired", "canceled"])
async def test_a_top_up_that_has_ended_is_not_paid(api: Any, status: str) -> None:
    made = await pending(api)
    await api.database.execute("update top_ups set status = $2 where id = $1", made["id"], status)
    refused = await credit(api, 100_000, made["paymentReference"])
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": status})
    assert await entries(api) == []


@pytest.mark.parametrize(
    ("body", "at"),
    [
        ({"coins": 1, "reference": "r"}, "/env"),
        ({"env": "prod", "coins": 1, "reference": "r"}, "/env"),
        ({"env": "live", "reference": "r"}, "/coins"),
        ({"env": "live", "coins": 0, "reference": "r"}, "/coins"),
        ({"env": "live", "coins": 10**12 + 1, "reference": "r"}, "/coins"),
        ({"env": "live", "coins": -(10**12) - 1, "reference": "r"}, "/coins"),
        ({"env": "live", "coins": 1.0, "reference": "r"}, "/coins"),
        ({"env": "live", "coins": "1", "reference": "r"}, "/coins"),
        ({"env": "live", "coins": 1}, "/reference"),
        ({"env": "live", "coins": 1, "reference": "  "}, "/reference"),
        ({"env": "live", "coins": 1, "reference": "r" * 129}, "/reference"),
        ({"env": "live", "coins": 1, "reference": 7}, "/reference"),
    ],
)
async def test_a_credit_of_another_form_is_refused(api: Any, body: Any, at: str) -> None:
    answer = await api.post(path(api), body, token=ADMIN)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert [error["path"] for error in answer.body["errors"]] == [at]
    assert await entries(api) == []


async def test_only_the_administrator_credits_and_only_what_exists(api: Any) -> None:
    body = {"env": "test", "coins": 1, "reference": "r"}
    assert (await api.post(path(api), body)).status == 401
    assert (await api.post(path(api), body, token="")).status == 401
    for missing in ("org_" + "0" * 21, "org_", "num_" + "0" * 21):
        answer = await api.post(f"/v2/admin/organizations/{missing}/wallet-credits", body, token=ADMIN)
        assert (answer.status, answer.code) == (404, "NOT_FOUND")
    guarded = await api.post(path(api), body, token=ADMIN, headers={"If-Match": "*"})
    assert guarded.status == 412


async def test_no_balance_grows_beyond_what_json_tells_exactly(api: Any) -> None:
    await api.database.execute("update wallets set balance_coins = $1 where env = 'live'", MOST_BALANCE)
    refused = await credit(api, 1, "one more")
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "LIMIT_REACHED", {"limit": MOST_BALANCE})
