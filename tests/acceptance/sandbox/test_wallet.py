"""The wallet, as customers meet it: a price is held at once and charged when the message leaves; else 402 (C25)."""

import asyncio
import secrets
from typing import Any

from tests.acceptance.sandbox.customer import Customer, ahead, phone
from tests.program import Api, Refused, Service
from tests.waiting import until

PRICE = 600  # of a utility template
PRICES = 1_000
SENDERS, EACH = 100, 12


async def leave(admin: Api, organization_id: str, coins: int, wallet: Any) -> None:
    """Adjust the test wallet down to so many coins."""
    body = {"env": "test", "coins": coins - wallet["balanceCoins"], "reference": secrets.token_hex(8)}
    await admin.call("POST", f"/v2/admin/organizations/{organization_id}/wallet-credits", body)


async def test_a_hundred_senders_race_for_a_thousand_prices_and_exactly_those_are_accepted(
    service: Service, admin: Api, newcomer: Any
) -> None:
    organization_id, _ = await newcomer()
    async with Api(service.url, service.key("test", org=organization_id)) as api:
        customer = await Customer.arrive(api, per_second=500)
        await leave(admin, organization_id, PRICE * PRICES, await api.call("GET", "/v2/wallet"))

        async def send() -> list[Any]:
            answers = []
            for _ in range(EACH):
                try:
                    answers.append(await customer.send(phone()))
                except Refused as refusal:
                    answers.append(refusal)
            return answers

        answers = [answer for some in await asyncio.gather(*(send() for _ in range(SENDERS))) for answer in some]

        refusals = [answer for answer in answers if isinstance(answer, Refused)]
        assert len(answers) - len(refusals) == PRICES
        assert all(answer["billing"] == {"coins": PRICE} for answer in answers if not isinstance(answer, Refused))
        for refusal in refusals:
            assert (refusal.status, refusal.body["code"]) == (402, "PAYMENT_REQUIRED")
            assert refusal.body["meta"]["requiredCoins"] == PRICE
            assert refusal.body["meta"]["availableCoins"] < PRICE

        async def spent() -> Any:
            wallet = await api.call("GET", "/v2/wallet")
            return wallet if wallet["heldCoins"] == 0 else None

        wallet = await until(spent, "every price is charged")
        assert (wallet["balanceCoins"], wallet["status"]) == (0, "depleted")
        charges: set[str] = set()
        cursor: dict[str, str] = {}
        while True:
            page = await api.call("GET", "/v2/wallet/ledger", kind="charge", limit=100, **cursor)
            charges.update(entry["messageId"] for entry in page["items"])
            if page.get("nextCursor") is None:
                break
            cursor = {"cursor": page["nextCursor"]}
        assert charges == {answer["id"] for answer in answers if not isinstance(answer, Refused)}


async def test_a_message_is_charged_once_and_a_withdrawn_one_not(newcomer: Any) -> None:
    _, customer = await newcomer()

    async def wallet() -> tuple[int, int]:
        found = await customer.api.call("GET", "/v2/wallet")
        return found["balanceCoins"], found["heldCoins"]

    assert await wallet() == (1_000_000_000, 0)
    withdrawn = await customer.send(phone(), scheduledAt=ahead(86_400))
    assert await wallet() == (1_000_000_000, PRICE)
    await customer.api.call("POST", f"/messages/{withdrawn['id']}/archive")
    assert await wallet() == (1_000_000_000, 0)
    await customer.reaches(await customer.send(phone()), "read")
    assert await wallet() == (1_000_000_000 - PRICE, 0)
