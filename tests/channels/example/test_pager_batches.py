"""Batches, campaigns and resends of a channel that is entered, and nothing else (C15.4, C15.5, C15.6)."""

from typing import Any

import pytest
from tests.channels.example.test_pager import PRICE, Pages, caller, pages, program
from tests.program import Refused
from tests.waiting import until

__all__ = ["caller", "pages", "program"]

HELLO = "hello {{name}}"


async def batch(pages: Pages, recipients: list[dict[str, Any]], text: str = HELLO, **more: Any) -> Any:
    body = {"channel": "pager", "text": text, "recipients": recipients, **more}
    return await pages.api.call("POST", "/messages/bulk", body)


async def comes_to(pages: Pages, batch_id: str, status: str) -> Any:
    async def came() -> bool:
        return bool((await pages.api.call("GET", f"/v2/batches/{batch_id}"))["status"] == status)

    await until(came, f"{batch_id} is {status}", every=0.1)
    return await pages.api.call("GET", f"/v2/batches/{batch_id}")


async def messages_of(pages: Pages, batch_id: str) -> Any:
    return (await pages.api.call("GET", "/messages", batchId=batch_id))["items"]


async def test_each_recipient_gets_the_text_with_its_own_words_and_pays_for_its_own_pages(pages: Pages) -> None:
    before, _ = await pages.balance()
    made = await batch(
        pages,
        [
            {"to": "Ana@pagers.example", "variables": {"name": "Ana"}},
            {"to": "bia@pagers.example", "variables": {"name": "B" * 100}},
            {"to": "ana@pagers.example", "variables": {"name": "twice"}},
            {"to": "caio@pagers.example", "variables": {"other": "word"}},
            {"to": "dora@pagers.example"},
            {"to": "nobody", "variables": {"name": "x"}},
            {"to": "edu@pagers.example", "variables": {"name": "E" * 800}},
        ],
        campaignId="pages",
    )
    assert made["heldCoins"] == (1 + 2) * PRICE
    assert made["skippedReasons"] == {
        "DUPLICATE_RECIPIENT": 1, "TEMPLATE_VARS_MISMATCH": 2, "VALIDATION_ERROR": 1, "TEXT_TOO_LONG": 1,
    }  # fmt: skip
    assert [error["path"] for error in made["errors"]] == [
        "/recipients/2", "/recipients/3/variables", "/recipients/4/variables", "/recipients/5/to",
        "/recipients/6/variables",
    ]  # fmt: skip
    assert "numberId" not in made
    done = await comes_to(pages, made["id"], "completed")
    assert (done["totals"]["accepted"], done["totals"]["skipped"], done["chargedCoins"]) == (2, 5, 3 * PRICE)
    texts = {message["payload"]["text"] for message in await messages_of(pages, made["id"])}
    assert texts == {"hello Ana", f"hello {'B' * 100}"}
    assert (await pages.balance())[0] == before - 3 * PRICE
    campaign = await pages.api.call("GET", "/v2/campaigns/pages")
    assert (campaign["channels"], campaign["totals"]["accepted"]) == (["pager"], 2)


async def test_whoever_opted_out_by_this_address_is_left_out_of_a_batch(pages: Pages) -> None:
    await pages.api.call("POST", "/contacts/opt-out", {"email": "gone@pagers.example"})
    made = await batch(pages, [{"to": "Gone@pagers.example"}, {"to": "here@pagers.example"}], "come")
    assert made["skippedReasons"] == {"CONTACT_OPTED_OUT": 1}
    assert made["totals"]["accepted"] == 1


async def test_a_contact_is_paged_at_the_address_of_the_channel(pages: Pages) -> None:
    contact = await pages.api.call("POST", "/contacts", {"phone": "+4915112345678", "email": "fay@pagers.example"})
    made = await batch(pages, [{"contactId": contact["id"]}], "come")
    (message,) = await messages_of(pages, made["id"])
    assert (message["to"], message["contactId"]) == ("fay@pagers.example", contact["id"])


async def test_a_large_batch_is_made_block_by_block_and_what_is_canceled_is_withdrawn(pages: Pages) -> None:
    people = [{"to": f"p{number}@pagers.example", "variables": {"name": str(number)}} for number in range(1_500)]
    _, held = await pages.balance()
    made = await batch(pages, people)
    assert (made["status"], made["totals"]["accepted"]) == ("building", 1_000)
    assert (await comes_to(pages, made["id"], "running"))["totals"]["accepted"] == 1_500
    await pages.api.call("POST", f"/v2/batches/{made['id']}/cancel")

    async def over() -> bool:
        found = await pages.api.call("GET", f"/v2/batches/{made['id']}")
        totals = found["totals"]
        return bool(found["status"] == "canceled" and totals["failed"] > 0 and totals["queued"] == 0)

    await until(over, "it is withdrawn", every=0.1)
    assert (await pages.balance())[1] <= held  # what was sent before may have been charged meanwhile


async def test_what_failed_is_sent_again_as_it_was(pages: Pages) -> None:
    made = await batch(pages, [{"to": "one@pagers.dead", "variables": {"name": "D" * 100}}], campaignId="again")
    await comes_to(pages, made["id"], "completed")
    (failed,) = await messages_of(pages, made["id"])
    wanted = {"channel": "pager", "filter": {"batchId": made["id"]}}
    plan = await pages.api.call("POST", "/messages/resend", {**wanted, "dryRun": True})
    assert plan == {"matched": 1, "skipped": {}, "estimatedCoins": 2 * PRICE}
    again = await pages.api.call("POST", "/messages/resend", wanted)
    assert (again["matched"], again["batch"]["channel"], again["batch"]["heldCoins"]) == (1, "pager", 2 * PRICE)
    (copy,) = await messages_of(pages, again["batch"]["id"])
    assert (copy["payload"], copy["campaignId"]) == (failed["payload"], "again")
    assert (await pages.read(failed["id"]))["replacedBy"] == copy["id"]


async def test_a_resend_is_of_one_channel(pages: Pages) -> None:
    sent = await pages.send("two.dead")
    await pages.comes_to(sent["id"], "failed")
    of_chatapp = await pages.api.call("POST", "/messages/resend", {"messageIds": [sent["id"]], "dryRun": True})
    assert of_chatapp["skipped"] == {"NOT_FOUND": 1}
    for body in (
        {"messageIds": [sent["id"]], "numberId": "num_1"},
        {"filter": {"campaignId": "x", "numberId": "num_1"}},
    ):
        with pytest.raises(Refused) as refused:
            await pages.api.call("POST", "/messages/resend", {"channel": "pager", **body})
        assert (refused.value.status, refused.value.body["code"]) == (422, "VALIDATION_ERROR")


async def test_a_list_is_paged_at_the_addresses_of_the_channel(pages: Pages) -> None:
    contacts = [
        await pages.api.call("POST", "/contacts", {"phone": f"+491511234567{place}", **given})
        for place, given in enumerate(({"email": "gil@pagers.example"}, {}))
    ]
    made = await pages.api.call("POST", "/v2/lists", {"name": "on call"})
    members = {"contactIds": [each["id"] for each in contacts]}
    await pages.api.call("POST", f"/v2/lists/{made['id']}/members", members)
    body = {"channel": "pager", "text": "come", "listId": made["id"]}
    done = await comes_to(pages, (await pages.api.call("POST", "/messages/bulk", body))["id"], "completed")
    assert done["skippedReasons"] == {"RECIPIENT_MISSING": 1}
    assert [message["to"] for message in await messages_of(pages, done["id"])] == ["gil@pagers.example"]


async def test_a_channel_that_sends_while_its_caller_waits_has_no_batches(pages: Pages) -> None:
    with pytest.raises(Refused) as refused:
        await pages.api.call("POST", "/messages/resend", {"channel": "urgent_pager", "messageIds": ["msg_1"]})
    assert (refused.value.status, refused.value.body["code"]) == (422, "ROUTE_NOT_AVAILABLE")
