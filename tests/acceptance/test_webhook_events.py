"""What webhooks are told, held against the `webhooks` of the document."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.caller import misfits_of
from tests.acceptance.sandbox.customer import approved_template
from tests.acceptance.served import ADMIN_TOKEN, Served
from tests.acceptance.tenants import CUSTOMER, text
from tests.program import Api
from tests.waiting import until

WANTED = {
    "message.sent", "message.delivered", "message.read", "message.received", "number.quality_changed",
    "template.approved", "contact.created", "contact.opted_out", "contact.consent_changed", "apikey.created",
    "apikey.rotated", "wallet.low_balance", "wallet.depleted",
}  # fmt: skip


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """An application of its own: what happens here does not come to rest for the walk."""
    with Served(tmp_path / "served") as application:
        yield application


@pytest.fixture
def served_document(served: Served) -> Any:
    return served.document()


async def test_what_is_delivered_is_what_the_document_describes(served: Served, served_document: Any) -> None:
    async with Api(served.url, ADMIN_TOKEN) as admin:
        new = {"name": "Told of all", "ownerEmail": "all@example.com"}
        organization = await admin.call("POST", "/v2/admin/organizations", new)
    async with Api(served.url, organization["keys"]["test"]["token"]) as api:
        subscription = await api.call("POST", "/webhooks", {"url": "http://127.0.0.1:1/", "events": ["*"]})
        await everything_happens(api, organization["id"])
        way = f"/webhooks/{subscription['id']}/deliveries"

        async def told() -> bool:
            items = (await api.call("GET", f"{way}?limit=200"))["items"]
            return {item["event"] for item in items} >= WANTED

        await until(told, "every event is told")
        for item in (await api.call("GET", f"{way}?limit=200"))["items"]:
            payload = (await api.call("GET", f"{way}/{item['id']}"))["payload"]
            described = served_document["webhooks"][item["event"]]["post"]["requestBody"]["content"]
            assert misfits_of(served_document, described["application/json"]["schema"], payload) == [], item["event"]


async def everything_happens(api: Api, organization_id: str) -> None:
    """One of each event that is wanted, and no more."""
    number = (await api.call("GET", "/numbers"))["items"][0]["id"]
    await approved_template(api, number)
    await api.call("POST", "/v2/sandbox/inbound", {"numberId": number, "from": CUSTOMER, "text": "good morning"})
    await api.call("POST", "/messages", text(number))
    contact = {"phone": "+5511987650022", "name": "Ana", "optIn": {"status": "granted", "source": "form"}}
    await api.call("POST", "/contacts", contact)
    await api.call("POST", "/contacts/opt-out", {"phone": contact["phone"], "reason": "asked", "source": "call"})
    key = await api.call("POST", "/v2/api-keys", {"name": "one", "scopes": ["messages:read"]})
    await api.call("POST", f"/v2/api-keys/{key['id']}/rotate", {})
    await api.call("POST", f"/v2/sandbox/numbers/{number}", {"qualityRating": "red"})
    for left in (500, 0):
        coins = (await api.call("GET", "/v2/wallet"))["availableCoins"]
        debit = {"env": "test", "coins": left - coins, "reference": f"all but {left}"}
        way = f"/v2/admin/organizations/{organization_id}/wallet-credits"
        await api.call("POST", way, debit, token=ADMIN_TOKEN)
