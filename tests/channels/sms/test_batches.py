"""Batches of SMS in the sandbox: a text with placeholders, paid by the segments of each (C15.5, C16)."""

from typing import Any

import aiohttp
import pytest
from tests.channels.sms.test_way import ADMIN_TOKEN, PRICE, Sms, caller, sms
from tests.program import Refused
from tests.waiting import until

__all__ = ["caller", "sms"]

GREETING = "Olá {{name}}, {{news}}"


async def batch(sms: Sms, recipients: list[dict[str, Any]], text: str = GREETING, **more: Any) -> Any:
    body = {"channel": "sms", "text": text, "recipients": recipients, **more}
    return await sms.api.call("POST", "/messages/bulk", body)


async def ended(sms: Sms, batch_id: str) -> Any:
    async def came() -> Any:
        found = await sms.api.call("GET", f"/v2/batches/{batch_id}")
        return found if found["status"] == "completed" else None

    return await until(came, f"{batch_id} is completed", every=0.1)


def person(place: int, ending: str = "00") -> str:
    return f"+55119876{ending}{place:03}"


async def test_each_gets_the_text_with_its_own_words_and_is_paid_by_its_segments(sms: Sms) -> None:
    made = await batch(
        sms,
        [
            {"to": person(1), "variables": {"name": "Ana", "news": "bom dia"}},
            {"to": person(2), "variables": {"name": "Bia", "news": "x" * 160}},
            {"to": person(3), "variables": {"name": "Cid"}},
            {"to": person(4), "variables": {"name": "Davi", "news": "x" * 1_024, "more": "x" * 1_024}},
        ],
        text=GREETING + "{{news}}",
        transliterate=True,
    )
    assert made["skippedReasons"] == {"TEMPLATE_VARS_MISMATCH": 1, "TEXT_TOO_LONG": 1}
    done = await ended(sms, made["id"])
    assert (done["totals"]["accepted"], done["chargedCoins"]) == (2, (1 + 3) * PRICE)
    listed = await sms.api.call("GET", "/messages", batchId=made["id"])
    assert {each["to"]: each["payload"]["text"]["body"] for each in listed["items"]} == {
        person(1): "Ola Ana, bom diabom dia",
        person(2): "Ola Bia, " + "x" * 320,
    }
    (second,) = [each for each in listed["items"] if each["to"] == person(2)]
    record = await sms.read(second["id"])
    assert (record["segments"], record["encoding"], record["route"]) == (3, "GSM-7", "premium")


async def test_a_text_that_all_get_is_stored_as_it_leaves_and_goes_to_a_list(sms: Sms) -> None:
    phones = [person(place, "11") for place in range(3)]
    for phone in phones:
        await sms.api.call("POST", "/contacts", {"phone": phone})
    list_id = (await sms.api.call("POST", "/v2/lists", {"name": "sms"}))["id"]
    await sms.api.call("POST", f"/v2/lists/{list_id}/members", {"phones": phones})
    body = {"channel": "sms", "text": "Olá!", "transliterate": True, "listId": list_id, "campaignId": "sms list"}
    made = await sms.api.call("POST", "/messages/bulk", body)
    done = await ended(sms, made["id"])
    assert (done["totals"]["accepted"], done["chargedCoins"]) == (3, 3 * PRICE)
    listed = await sms.api.call("GET", "/v2/sms/messages", campaignId="sms list")
    assert [(each["to"], each["encoding"], each["length"]) for each in listed["items"]] == [
        (phone, "GSM-7", 4) for phone in reversed(phones)
    ]


async def test_failed_ones_are_sent_again_by_their_route(sms: Sms) -> None:
    made = await batch(sms, [{"to": "+5511987119001"}], text="a code", route="otp")
    await ended(sms, made["id"])
    again = await sms.api.call("POST", "/messages/resend", {"channel": "sms", "filter": {"batchId": made["id"]}})
    assert again["matched"] == 1
    await ended(sms, again["batch"]["id"])
    listed = await sms.api.call("GET", "/messages", batchId=again["batch"]["id"])
    record = await sms.read(listed["items"][0]["id"])
    assert (record["route"], record["reason"], record["length"]) == ("otp", "invalid_number", 6)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"text": "x" * 1_531}, "TEXT_TOO_LONG"),
        ({"text": "x", "route": "la_dedicada"}, "ROUTE_NOT_AVAILABLE"),
        ({"text": "x", "priority": "critical"}, "PRIORITY_NOT_ALLOWED"),
        ({}, "VALIDATION_ERROR"),
    ],
)
async def test_what_all_get_is_refused_for_all(sms: Sms, body: dict[str, Any], code: str) -> None:
    with pytest.raises(Refused) as refused:
        await sms.api.call("POST", "/messages/bulk", {"channel": "sms", "recipients": [{"to": person(9)}], **body})
    assert (refused.value.status, refused.value.body["code"]) == (422, code)


@pytest.mark.parametrize("by_list", [False, True])
async def test_whoever_the_dedicated_route_does_not_lead_to_is_left_out(sms: Sms, by_list: bool) -> None:
    phones = [person(20), "+351912345678"]
    recipients: dict[str, Any] = {"recipients": [{"to": phone} for phone in phones]}
    if by_list:
        for phone in phones:
            await sms.api.call("POST", "/contacts", {"phone": phone})
        recipients = {"listId": (await sms.api.call("POST", "/v2/lists", {"name": "two countries"}))["id"]}
        await sms.api.call("POST", f"/v2/lists/{recipients['listId']}/members", {"phones": phones})
    organization = f"/v2/admin/organizations/{(await sms.api.call('GET', '/v2/organization'))['id']}"
    await sms.api.call("PATCH", organization, {"dedicatedSender": "28282"}, token=ADMIN_TOKEN)
    try:
        body = {"channel": "sms", "text": "x", "route": "la_dedicada", **recipients}
        made = await sms.api.call("POST", "/messages/bulk", body)
        done = await ended(sms, made["id"])
    finally:
        await sms.api.call("PATCH", organization, {"dedicatedSender": None}, token=ADMIN_TOKEN)
    assert (done["totals"]["accepted"], done["chargedCoins"]) == (1, 1_100)
    assert done["skippedReasons"] == {"ROUTE_NOT_AVAILABLE": 1}


LINK = "https://shop.example/" + "1" * 200


@pytest.mark.parametrize("by_list", [False, True])
async def test_each_of_a_batch_gets_short_links_of_its_own_that_count_for_its_campaign(sms: Sms, by_list: bool) -> None:
    phones = [person(place, "31" if by_list else "30") for place in range(2)]
    text, campaign = f"Olá! {LINK}", f"links {by_list}"
    recipients: dict[str, Any] = {"recipients": [{"to": to, "variables": {"name": "Olá"}} for to in phones]}
    if by_list:
        for phone in phones:
            await sms.api.call("POST", "/contacts", {"phone": phone})
        recipients = {"listId": (await sms.api.call("POST", "/v2/lists", {"name": campaign}))["id"]}
        await sms.api.call("POST", f"/v2/lists/{recipients['listId']}/members", {"phones": phones})
    body = {
        "channel": "sms", "text": text if by_list else text.replace("Olá", "{{name}}"), "transliterate": True,
        "shortenLinks": True, "campaignId": campaign, **recipients,
    }  # fmt: skip
    preview = await sms.api.call("POST", "/v2/sms/preview", {**body, "text": text})
    made = await sms.api.call("POST", "/messages/bulk", body)
    done = await ended(sms, made["id"])
    assert (done["totals"]["accepted"], done["chargedCoins"]) == (2, 2 * preview["totalCoins"])
    told = (await sms.api.call("GET", "/messages", batchId=made["id"]))["items"]
    short = {each["payload"]["text"]["body"].removeprefix("Ola! ") for each in told}
    assert (len(short), {len(each) for each in short}) == (2, {preview["length"] - len("Ola! ")})
    record = await sms.read(told[0]["id"])
    assert (record["encoding"], record["length"], record["segments"]) == ("GSM-7", preview["length"], 1)
    async with aiohttp.ClientSession() as session:
        for each in short:
            async with session.get(each, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (302, LINK)

    async def counted() -> bool:
        return bool((await sms.api.call("GET", f"/v2/campaigns/{campaign}"))["clicks"] == 2)

    await until(counted, "the clicks are counted", every=0.05)
