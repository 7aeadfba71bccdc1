"""Batches of RCS in the sandbox: texts with placeholders, an SMS in their place, the dearer price held (C15.5, C17)."""

from typing import Any

import aiohttp
import pytest
from tests.channels.rcs.test_way import LATER, NOT_CAPABLE, RICH, SHORT, SMS, Rcs, caller, rcs
from tests.program import Refused
from tests.waiting import until

__all__ = ["caller", "rcs"]

INVALID = "+5511987659001"
CARD = {"title": "News"}


async def bulk(rcs: Rcs, **body: Any) -> Any:
    return await rcs.api.call("POST", "/messages/bulk", {"channel": "rcs", **body})


async def ended(rcs: Rcs, batch_id: str) -> Any:
    async def came() -> Any:
        found = await rcs.api.call("GET", f"/v2/batches/{batch_id}")
        return found if found["status"] == "completed" else None

    return await until(came, f"{batch_id} is completed", every=0.1)


async def told(rcs: Rcs, campaign_id: str) -> dict[str, Any]:
    """The messages of a campaign, by recipient."""
    found = await rcs.api.call("GET", "/v2/rcs/messages", campaignId=campaign_id, limit=200)
    return {each["to"]: each for each in found["items"]}


def person(place: int) -> str:
    return f"+55119876500{place:02}"


async def test_each_gets_its_own_words_and_an_sms_where_there_is_no_rcs(rcs: Rcs) -> None:
    balance, _ = await rcs.balance()
    made = await bulk(
        rcs,
        content={"text": "Olá {{name}}", "card": CARD},
        fallback={"text": "{{name}}: {{news}}"},
        recipients=[
            {"to": person(1), "variables": {"name": "Ana", "news": "x"}},
            {"to": NOT_CAPABLE, "variables": {"name": "Bia", "news": "x" * 160}},
            {"to": person(2), "variables": {"name": "Cid"}},
            {"to": person(3), "variables": {"name": "Davi", "news": "x" * 1_000}},
        ],
        campaignId="rcs words",
    )
    assert made["skippedReasons"] == {"TEMPLATE_VARS_MISMATCH": 1}
    assert made["heldCoins"] == max(RICH, SMS) + max(RICH, 2 * SMS) + max(RICH, 7 * SMS)
    done = await ended(rcs, made["id"])
    assert (done["channel"], done["totals"]["accepted"]) == ("rcs", 3)
    found = await told(rcs, "rcs words")
    assert {to: (each["content"], each["fallback"]["segments"]) for to, each in found.items()} == {
        person(1): ({"text": "Olá Ana", "card": CARD}, 1),
        NOT_CAPABLE: ({"text": "Olá Bia", "card": CARD}, 2),
        person(3): ({"text": "Olá Davi", "card": CARD}, 7),
    }
    await rcs.comes_to(found[person(1)]["id"], "read")
    await rcs.comes_to(found[person(3)]["id"], "read")
    assert (await rcs.comes_to(found[NOT_CAPABLE]["id"], "delivered"))["channel"] == "sms"
    assert await rcs.balance() == (balance - 2 * RICH - 2 * SMS, 0)
    assert (await ended(rcs, made["id"]))["chargedCoins"] == 2 * RICH + 2 * SMS


LINK = "https://shop.example/" + "1" * 50


async def test_a_list_gets_what_all_get_with_short_links_of_its_own(rcs: Rcs) -> None:
    phones = [person(place) for place in range(10, 13)]
    for phone in phones:
        await rcs.api.call("POST", "/contacts", {"phone": phone})
    list_id = (await rcs.api.call("POST", "/v2/lists", {"name": "rcs"}))["id"]
    await rcs.api.call("POST", f"/v2/lists/{list_id}/members", {"phones": phones})
    open_it = {"type": "url", "text": "Open", "value": LINK}
    content = {"card": {"title": "News"}, "suggestions": [open_it]}
    made = await bulk(rcs, content=content, fallback={"text": f"News: {LINK}"}, listId=list_id, campaignId="rcs list")
    done = await ended(rcs, made["id"])
    assert (done["totals"]["accepted"], done["chargedCoins"]) == (3, 3 * RICH)
    found = await told(rcs, "rcs list")
    short = {each["content"]["suggestions"][0]["value"] for each in found.values()}
    assert (sorted(found), len(short)) == (phones, 3)
    async with aiohttp.ClientSession() as session:
        for each in short:
            async with session.get(each, allow_redirects=False) as answer:
                assert (answer.status, answer.headers["Location"]) == (302, LINK)

    async def counted() -> bool:
        return bool((await rcs.api.call("GET", "/v2/campaigns/rcs list"))["clicks"] == 3)

    await until(counted, "the clicks are counted", every=0.05)


@pytest.mark.parametrize("fallback", [None, {"text": "By SMS"}])
async def test_failed_ones_are_sent_again_from_the_beginning(rcs: Rcs, fallback: Any) -> None:
    more = {} if fallback is None else {"fallback": fallback}
    made = await bulk(rcs, content={"text": "Hello"}, recipients=[{"to": INVALID}], transactional=True, **more)
    await ended(rcs, made["id"])

    async def failed() -> bool:
        return bool((await rcs.api.call("GET", f"/v2/batches/{made['id']}"))["totals"]["failed"] == 1)

    await until(failed, "it failed", every=0.05)
    again = await rcs.api.call("POST", "/messages/resend", {"channel": "rcs", "filter": {"batchId": made["id"]}})
    assert (again["matched"], again["batch"]["heldCoins"]) == (1, SHORT)
    newest, old = (await rcs.api.call("GET", "/v2/rcs/messages", limit=2))["items"]
    await rcs.comes_to(newest["id"], "failed")
    first, second = [await rcs.read(each["id"]) for each in (old, newest)]
    same = ("to", "content", "route", "channel", "failureReason")
    assert {name: first.get(name) for name in same} == {name: second.get(name) for name in same}
    assert first["channel"] == ("rcs" if fallback is None else "sms")
    assert await rcs.costs(old["id"]) == await rcs.costs(newest["id"])
    assert (await rcs.balance())[1] == 0


@pytest.mark.parametrize(
    ("body", "code", "pointer"),
    [
        ({"content": {}}, "VALIDATION_ERROR", "/content"),
        ({"content": {"text": "x"}, "priority": "critical"}, "PRIORITY_NOT_ALLOWED", "/priority"),
        ({"content": {"text": "x"}, "fallback": {"text": "x" * 1_531}}, "TEXT_TOO_LONG", "/fallback/text"),
        ({"content": {"text": "x"}, "fallback": {"text": "{{a}}" * 1_001}}, "TEXT_TOO_LONG", "/fallback/text"),
        ({"content": {"card": {"title": "x"}}, "route": "easy_otp_rcs"}, "VALIDATION_ERROR", "/content/card"),
        ({}, "VALIDATION_ERROR", "/content"),
    ],
)
async def test_what_all_get_is_refused_for_all(rcs: Rcs, body: dict[str, Any], code: str, pointer: str) -> None:
    with pytest.raises(Refused) as refused:
        await bulk(rcs, recipients=[{"to": person(9)}], **body)
    found = refused.value.body
    assert (refused.value.status, found["code"], found["errors"][0]["path"]) == (422, code, pointer)


async def test_a_canceled_batch_leaves_nothing_of_it_held(rcs: Rcs) -> None:
    recipients = [{"to": person(place)} for place in range(20, 23)]
    made = await bulk(
        rcs, content={"text": "x"}, recipients=recipients, scheduledAt=LATER, campaignId="rcs canceled",
        fallback={"text": "By SMS"},
    )  # fmt: skip
    assert (made["heldCoins"], (await rcs.balance())[1]) == (3 * SHORT, 3 * SHORT)
    await rcs.api.call("POST", f"/v2/batches/{made['id']}/cancel")
    found = await told(rcs, "rcs canceled")
    assert {(each["status"], each["failureReason"]) for each in found.values()} == {("failed", "withdrawn")}
    assert (await rcs.balance())[1] == 0
    again = await rcs.api.call("POST", "/messages/resend", {"channel": "rcs", "messageIds": [found[person(20)]["id"]]})
    assert (again["matched"], again["skipped"]) == (1, {})
