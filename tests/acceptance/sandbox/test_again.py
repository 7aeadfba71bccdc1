"""Failed and withdrawn messages sent again through a running service, and what their campaign says (C15.4, C15.6)."""

import secrets
from typing import Any

from tests.acceptance.sandbox.customer import Customer, ahead, phone
from tests.program import Api
from tests.waiting import until


async def totals(customer: Customer, path: str, wanted: dict[str, int]) -> dict[str, int]:
    """The totals of a campaign or a batch once these of them have their values."""
    latest: dict[str, int] = {}

    async def there() -> bool:
        nonlocal latest
        latest = (await customer.api.call("GET", path))["totals"]
        return wanted.items() <= latest.items()

    await until(there, f"{path} shows {wanted}", every=0.05)
    return latest


async def test_a_withdrawn_message_is_sent_after_all(regular: Customer) -> None:
    withdrawn = await regular.send(phone(), scheduledAt=ahead(3600))
    await regular.api.call("POST", f"/messages/{withdrawn['id']}/archive")
    again = await regular.api.call("POST", f"/messages/{withdrawn['id']}/reprocess")
    assert (await regular.reaches(again, "read"))["to"] == withdrawn["to"]
    assert (await regular.read(withdrawn))["replacedBy"] == again["id"]


async def test_what_failed_of_a_campaign_is_sent_again_and_counted(regular: Customer) -> None:
    campaign = f"spring {secrets.token_hex(4)}"
    path = f"/v2/campaigns/{campaign.replace(' ', '%20')}"
    refused = [await regular.send(phone("9001"), campaignId=campaign) for _ in range(3)]
    read = await regular.send(phone(), campaignId=campaign)
    await totals(regular, path, {"accepted": 4, "failed": 3, "read": 1, "queued": 0})
    answer: Any = await regular.api.call("POST", "/messages/resend", {"filter": {"campaignId": campaign}})
    assert answer["matched"] == 3
    # The sandbox refuses them once more.
    await totals(regular, path, {"accepted": 7, "failed": 6, "read": 1, "queued": 0})
    await totals(regular, f"/v2/batches/{answer['batch']['id']}", {"accepted": 3, "failed": 3, "queued": 0})
    copies = (await regular.api.call("GET", f"/messages?batchId={answer['batch']['id']}"))["items"]
    replaced = {(await regular.read(message))["replacedBy"] for message in refused}
    assert replaced == {copy["id"] for copy in copies}
    assert "replacedBy" not in await regular.read(read)
    found = await regular.api.call("GET", path)
    assert (found["status"], found["chargedCoins"]) == ("running", 600)


async def test_what_failed_here_is_sent_from_another_number(api: Api) -> None:
    here, there = await Customer.arrive(api), await Customer.arrive(api)
    failed = await here.reaches(await here.send(phone("9001")), "failed")
    answer: Any = await api.call(
        "POST", "/messages/resend", {"messageIds": [failed["id"]], "numberId": there.number_id}
    )
    [copy] = (await api.call("GET", f"/messages?batchId={answer['batch']['id']}"))["items"]
    assert (copy["numberId"], copy["templateId"]) == (there.number_id, there.template_id)
    await there.reaches(copy, "failed")
