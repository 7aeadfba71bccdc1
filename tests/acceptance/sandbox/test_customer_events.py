"""What customers did is credited to what they were sent, through a running service (C21.5, C15.6)."""

import asyncio
import secrets

from tests.acceptance.sandbox.customer import Customer, moment, phone


async def test_a_purchase_is_credited_to_the_last_message_and_counted_in_its_campaign(regular: Customer) -> None:
    api, campaign = regular.api, f"spring-{secrets.token_hex(4)}"
    person = phone()
    contact = await api.call("POST", "/contacts", {"phone": person, "externalId": f"crm {campaign}"})
    await regular.reaches(await regular.send(person, contactId=contact["id"]), "read")
    last = await regular.reaches(await regular.send(person, contactId=contact["id"], campaignId=campaign), "read")
    await regular.reaches(await regular.send(person), "read")  # names the phone alone
    body = {"name": "order.paid", "contact": {"externalId": contact["externalId"]}, "value": 99.9}
    posts = [{**body, "eventId": f"{campaign} {number}"} for number in (1, 2, 2)]
    events = await asyncio.gather(*(api.call("POST", "/v2/events", each) for each in posts))
    assert [event["duplicate"] for event in events].count(True) == 1
    for event in events:
        credited = event["attribution"]
        passed = (moment(event["occurredAt"]) - moment(credited["sentAt"])).total_seconds() / 3600
        assert abs(credited.pop("horasAteOEvento") - passed) <= 0.01
        assert credited == {
            "messageId": last["id"], "channel": "chatapp", "sentAt": last["sentAt"], "campaignId": campaign,
        }  # fmt: skip
    counted = (await api.call("GET", f"/v2/campaigns/{campaign}"))["conversions"]
    assert counted == {"count": 2, "value": 199.8}
