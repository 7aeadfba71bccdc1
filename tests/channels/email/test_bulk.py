"""E-mail to many by one request: a template with values, in the sandbox, and in live by a mail server (C15.5)."""

import asyncio
import re
import time
from email import message_from_bytes, policy
from typing import Any

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import ahead
from tests.channels.email.caller import Mail
from tests.channels.email.conftest import MailServer
from tests.channels.email.test_tracked_way import Told, live, mail, mail_server, person, running
from tests.program import Refused
from tests.waiting import until

from recado.domain.email.plain_text import text_of_html

__all__ = ["live", "mail", "mail_server", "person", "running"]

PRICE = 30
HTML = '<p>Hello {{name}}, {{news}} <a href="https://example.com/go?to={{name}}">go</a></p>'


async def template(mail: Mail, name: str, **more: Any) -> str:
    body = {
        "name": name, "subject": "Hi {{name}}", "html": HTML,
        "variables": [{"name": "name", "example": "friend"}, {"name": "news"}], **more,
    }  # fmt: skip
    return str((await mail.api.call("POST", "/v2/email/templates", body))["id"])


async def bulk(mail: Mail, recipients: list[dict[str, Any]] | None, **more: Any) -> Any:
    body = {"channel": "email", "recipients": recipients, **more}
    body = {name: value for name, value in body.items() if value is not None}
    return await mail.api.call("POST", "/messages/bulk", body)


async def ended(mail: Mail, batch_id: str, status: str = "completed") -> Any:
    async def came() -> Any:
        found = await mail.api.call("GET", f"/v2/batches/{batch_id}")
        return found if found["status"] == status else None

    return await until(came, f"{batch_id} is {status}", every=0.1)


async def emails_of(mail: Mail, campaign: str) -> dict[str, Any]:
    found = await mail.api.call("GET", "/v2/email/messages", campaignId=campaign)
    return {each["to"]: each for each in found["items"]}


async def test_each_gets_the_template_with_its_own_values_and_pays_for_one_email(mail: Mail) -> None:
    template_id = await template(mail, "each")
    before, held = await mail.balance()
    made = await bulk(
        mail,
        [
            {"to": "Ana@example.com", "variables": {"name": "Ana & Bo", "n": 3}, "metadata": {"order": "A-1"}},
            {"to": "bia@example.com", "variables": {"news": "x" * 1_024}},
            {"to": "ANA@example.com"},
            {"to": "cid@example.com"},
            {"to": "nobody"},
            {},
            {"to": "suppressionlist+1@simulator.test"},
        ],
        templateId=template_id, variables={"news": "so it is."}, campaignId="each", name="Each",
    )  # fmt: skip
    assert made["skippedReasons"] == {
        "DUPLICATE_RECIPIENT": 1, "VALIDATION_ERROR": 1, "RECIPIENT_MISSING": 1, "RECIPIENT_SUPPRESSED": 1,
    }  # fmt: skip
    assert [error["path"] for error in made["errors"]] == [
        "/recipients/2", "/recipients/4/to", "/recipients/5", "/recipients/6",
    ]  # fmt: skip
    assert (made["templateId"], made["heldCoins"], "numberId" in made) == (template_id, 3 * PRICE, False)
    done = await ended(mail, made["id"])
    assert (done["totals"]["accepted"], done["chargedCoins"]) == (3, 3 * PRICE)
    assert await mail.balance() == (before - 3 * PRICE, held)
    found = await emails_of(mail, "each")
    assert {to: (each["subject"], each["from"]) for to, each in found.items()} == {
        "Ana@example.com": ("Hi Ana & Bo", "Sandbox <no-reply@sandbox.test>"),
        "bia@example.com": ("Hi friend", "Sandbox <no-reply@sandbox.test>"),
        "cid@example.com": ("Hi friend", "Sandbox <no-reply@sandbox.test>"),
    }
    rendered = HTML.replace("{{name}}", "Ana &amp; Bo").replace("{{news}}", "so it is.")
    assert (found["Ana@example.com"]["bodyBytes"], found["Ana@example.com"]["metadata"]) == (
        len(rendered), {"order": "A-1"},
    )  # fmt: skip
    generic = (await mail.api.call("GET", "/messages", batchId=made["id"]))["items"]
    assert [(each["type"], "payload" in each) for each in generic] == [("template", False)] * 3
    campaign = await mail.api.call("GET", "/v2/campaigns/each")
    assert (campaign["channels"], campaign["totals"]["accepted"]) == (["email"], 3)


async def test_reports_are_counted_in_the_batch_and_told(mail: Mail) -> None:
    told = await Told.of(mail.api, "email.delivered", "email.bounced")
    made = await bulk(
        mail, [{"to": "success+b@simulator.test"}, {"to": "bounce+b@simulator.test"}],
        templateId=await template(mail, "reports"),
    )  # fmt: skip

    async def reported() -> Any:
        totals = (await mail.api.call("GET", f"/v2/batches/{made['id']}"))["totals"]
        return totals["delivered"] == 1 and totals["failed"] == 1

    await until(reported, "both are reported", every=0.1)
    assert {kind: data["batchId"] for kind, data in await told.events(2)} == {
        "email.delivered": made["id"], "email.bounced": made["id"],
    }  # fmt: skip
    assert await mail.suppression("bounce+b@simulator.test") == ["bounce"]


async def test_whoever_opted_out_is_left_out_unless_it_is_transactional(mail: Mail) -> None:
    await mail.api.call("POST", "/contacts/opt-out", {"email": "gone@example.com"})
    template_id = await template(mail, "consent")
    people = [{"to": "Gone@example.com"}, {"to": "here@example.com"}]
    made = await bulk(mail, people, templateId=template_id)
    assert (made["skippedReasons"], made["totals"]["accepted"]) == ({"CONTACT_OPTED_OUT": 1}, 1)
    made = await bulk(mail, people, templateId=template_id, transactional=True, priority="critical")
    assert (made["skippedReasons"], made["totals"]["accepted"]) == ({}, 2)
    assert (await ended(mail, made["id"]))["totals"]["failed"] == 0


async def test_a_contact_gets_it_at_its_address_or_is_left_out(mail: Mail) -> None:
    contact = await mail.api.call("POST", "/contacts", {"phone": "+5511987650001", "email": "fay@example.com"})
    without = await mail.api.call("POST", "/contacts", {"phone": "+5511987650002"})
    made = await bulk(
        mail, [{"contactId": contact["id"]}, {"contactId": without["id"]}],
        templateId=await template(mail, "contacts"), campaignId="contacts",
    )  # fmt: skip
    assert made["skippedReasons"] == {"RECIPIENT_MISSING": 1}
    assert [error["path"] for error in made["errors"]] == ["/recipients/1/contactId"]
    ((to, email),) = (await emails_of(mail, "contacts")).items()
    assert (to, email["contactId"]) == ("fay@example.com", contact["id"])


@pytest.fixture
async def people(mail: Mail) -> dict[str, str]:
    """A list and a segment: of seven contacts with a tag, two can be sent to."""
    tag = f"tag {time.monotonic_ns()}"

    async def contact(email: str | None, **more: Any) -> str:
        given = {"phone": f"+49151{time.monotonic_ns() % 10**9:09}", "tags": [tag], **more}
        given |= {} if email is None else {"email": email}
        return str((await mail.api.call("POST", "/contacts", given))["id"])

    name = tag.replace(" ", ".")
    await mail.api.call("POST", "/contacts/opt-out", {"email": f"gone.{name}@example.com"})
    await contact(f"shared.{name}@example.com", tags=[], optIn={"status": "denied", "source": "form"})
    ids = [
        await contact(each and each.replace("*", name))
        for each in (
            "Ana.*@example.com", None, "ana.*@EXAMPLE.com", "GONE.*@example.com", "bia.*@example.com",
            "Shared.*@example.com", "suppressionlist+*@simulator.test",
        )
    ]  # fmt: skip
    made = await mail.api.call("POST", "/v2/lists", {"name": tag})
    await mail.api.call("POST", f"/v2/lists/{made['id']}/members", {"contactIds": ids})
    filters = [{"field": "tag", "operator": "is", "value": tag}]
    segment = await mail.api.call("POST", "/v2/segments", {"name": tag, "filters": filters})
    return {"listId": made["id"], "segmentId": segment["id"], "name": name}


@pytest.mark.parametrize("audience", ["listId", "segmentId"])
async def test_a_list_or_a_segment_gets_it_at_its_addresses_each_once(
    mail: Mail, people: dict[str, str], audience: str
) -> None:
    before, held = await mail.balance()
    made = await bulk(
        mail, None, templateId=await template(mail, people["name"]), variables={"name": "you", "news": "spring"},
        campaignId=people["name"], metadata={"n": 1}, **{audience: people[audience]},
    )  # fmt: skip
    assert (made["status"], made["totals"]["requested"], made["totals"]["accepted"]) == ("building", 7, 0)
    done = await ended(mail, made["id"])
    assert (done["totals"]["requested"], done["totals"]["accepted"], done["totals"]["skipped"]) == (7, 2, 5)
    assert done["skippedReasons"] == {
        "RECIPIENT_MISSING": 1, "DUPLICATE_RECIPIENT": 1, "CONTACT_OPTED_OUT": 2, "RECIPIENT_SUPPRESSED": 1,
    }  # fmt: skip
    assert await mail.balance() == (before - 2 * PRICE, held)
    found = await emails_of(mail, people["name"])
    assert {to: (each["subject"], each["metadata"]) for to, each in found.items()} == {
        f"{who}.{people['name']}@example.com": ("Hi you", {"n": 1}) for who in ("Ana", "bia")
    }
    assert all(each["contactId"].startswith("cnt_") for each in found.values())
    html = HTML.replace("{{name}}", "you").replace("{{news}}", "spring")
    assert {each["bodyBytes"] for each in found.values()} == {len(html)}


async def test_what_is_transactional_goes_to_everybody_of_a_list_who_is_not_suppressed(
    mail: Mail, people: dict[str, str]
) -> None:
    made = await bulk(
        mail, None, listId=people["listId"], templateId=await template(mail, people["name"]), transactional=True
    )
    done = await ended(mail, made["id"])
    assert (done["totals"]["accepted"], done["skippedReasons"]) == (
        4, {"RECIPIENT_MISSING": 1, "DUPLICATE_RECIPIENT": 1, "RECIPIENT_SUPPRESSED": 1},
    )  # fmt: skip


async def test_a_list_costs_what_its_contacts_with_an_address_cost_and_is_refused_where_that_is_not_there(
    live: Mail,
) -> None:
    balance, held = await live.balance()
    count = (balance - held) // PRICE + 1
    people: list[dict[str, Any]] = [{"email": f"p{number}@example.com"} for number in range(count)]
    contacts = await asyncio.gather(
        *(
            live.api.call("POST", "/contacts", {"phone": f"+49157{number:08}", **each})
            for number, each in enumerate([*people, {}, {}])
        )
    )
    made = await live.api.call("POST", "/v2/lists", {"name": "too many"})
    await live.api.call("POST", f"/v2/lists/{made['id']}/members", {"contactIds": [each["id"] for each in contacts]})
    with pytest.raises(Refused) as refused:
        await bulk(live, None, listId=made["id"], templateId=await template(live, "too many"))
    assert (refused.value.status, refused.value.body["code"]) == (402, "PAYMENT_REQUIRED")
    assert refused.value.body["meta"] == {"requiredCoins": count * PRICE, "availableCoins": balance - held}
    assert await live.balance() == (balance, held)


async def test_an_audience_of_which_nobody_has_an_address_fails_and_costs_nothing(mail: Mail) -> None:
    before = await mail.balance()
    contact = await mail.api.call("POST", "/contacts", {"phone": "+5511987650009"})
    made = await mail.api.call("POST", "/v2/lists", {"name": "without addresses"})
    await mail.api.call("POST", f"/v2/lists/{made['id']}/members", {"contactIds": [contact["id"]]})
    batch = await bulk(mail, None, listId=made["id"], templateId=await template(mail, "nobody"))
    done = await ended(mail, batch["id"], "failed")
    assert (done["totals"]["requested"], done["skippedReasons"]) == (1, {"RECIPIENT_MISSING": 1})
    assert await mail.balance() == before


async def test_what_forbids_it_as_a_whole_is_refused_with_its_place_and_stores_nothing(mail: Mail) -> None:
    template_id = await template(mail, "refused")
    archived = await template(mail, "archived")
    await mail.api.call("DELETE", f"/v2/email/templates/{archived}")
    before = (await mail.api.call("GET", "/v2/batches"))["total"]
    for changes, status, code, path in (
        ({"templateId": archived}, 422, "REFERENCE_NOT_FOUND", "/templateId"),
        ({"templateId": None}, 422, "VALIDATION_ERROR", "/templateId"),
        ({"from": "news@elsewhere.example"}, 412, "SENDER_NOT_VERIFIED", "/from"),
        ({"from": "nobody"}, 422, "VALIDATION_ERROR", "/from"),
        ({"priority": "critical"}, 422, "PRIORITY_NOT_ALLOWED", "/priority"),
        ({"variables": {"news": "x" * 4_093}}, 422, "VALIDATION_ERROR", "/variables"),
        ({"variables": {f"n{each}": 1e308 for each in range(14)}}, 422, "VALIDATION_ERROR", "/variables"),
        ({"recipients": None, "listId": "lst_" + "0" * 21}, 422, "REFERENCE_NOT_FOUND", "/listId"),
        ({"recipients": None, "segmentId": "x"}, 422, "REFERENCE_NOT_FOUND", "/segmentId"),
        ({"recipients": None, "listId": "x", "segmentId": "y"}, 422, "AUDIENCE_INVALID", None),
        ({"campaignId": "with space"}, 422, "VALIDATION_ERROR", "/campaignId"),
        (
            {"recipients": [{"to": "a@b.example", "variables": {"name": "x" * 1_025}}]},
            422, "VALIDATION_ERROR", "/recipients/0/variables/name",
        ),
    ):  # fmt: skip
        body = {"templateId": template_id, "recipients": [{"to": "a@b.example"}], **changes}
        with pytest.raises(Refused) as refused:
            await bulk(mail, **body)
        assert (refused.value.status, refused.value.body["code"]) == (status, code), changes
        assert {error["path"] for error in refused.value.body["errors"]} == (
            {path} if path else {"/listId", "/segmentId"}
        )
    assert (await mail.api.call("GET", "/v2/batches"))["total"] == before


async def test_a_recipient_whose_values_make_it_too_long_is_left_out(mail: Mail) -> None:
    made = await bulk(
        mail, [{"to": "a@b.example", "variables": {"name": "x" * 253}}, {"to": "c@b.example"}],
        templateId=await template(mail, "long"),
    )  # fmt: skip
    assert made["skippedReasons"] == {"TEXT_TOO_LONG": 1}
    assert [error["path"] for error in made["errors"]] == ["/recipients/0/variables"]


async def test_a_repeat_with_the_key_answers_the_same_batch(mail: Mail) -> None:
    body = {
        "channel": "email", "templateId": await template(mail, "repeat"), "recipients": [{"to": "twice@example.com"}],
        "campaignId": "repeat",
    }  # fmt: skip
    made = [await mail.api.call("POST", "/messages/bulk", body, key="a batch of e-mails") for _ in range(2)]
    assert made[0]["id"] == made[1]["id"]
    await ended(mail, made[0]["id"])
    assert len(await emails_of(mail, "repeat")) == 1


async def test_what_is_paused_waits_and_what_is_canceled_is_withdrawn(mail: Mail) -> None:
    before = await mail.balance()
    people = [{"to": f"p{number}@example.com"} for number in range(3)]
    made = await bulk(
        mail, people, templateId=await template(mail, "later"), campaignId="later",
        scheduledAt=ahead(3_600),
    )  # fmt: skip
    paused = await mail.api.call("POST", f"/v2/batches/{made['id']}/pause")
    assert (paused["status"], paused["totals"]["queued"], paused["heldCoins"]) == ("paused", 3, 3 * PRICE)
    await mail.api.call("POST", f"/v2/batches/{made['id']}/cancel")

    async def over() -> bool:
        return (await mail.balance()) == before

    await until(over, "the rest of the hold is released", every=0.1)
    assert {each["status"] for each in (await emails_of(mail, "later")).values()} == {"failed"}


async def test_in_live_each_email_is_its_own_and_opens_and_clicks_count_in_its_campaign(
    live: Mail, mail_server: MailServer, person: aiohttp.ClientSession
) -> None:
    made = await bulk(
        live,
        [{"to": "ana@example.com", "variables": {"name": "Ana"}}, {"to": "bia@example.com"}],
        templateId=await template(live, "live", text="Hello {{name}}"), subject="News for {{name}}",
        variables={"news": "<b>"}, campaignId="live", **{"from": "Letters <letters@example.com>"},
    )  # fmt: skip
    await ended(live, made["id"])
    found: dict[str, Any] = {}
    for envelope in mail_server.taken:
        assert isinstance(envelope.content, bytes)
        email: Any = message_from_bytes(envelope.content, policy=policy.default)
        found[envelope.rcpt_tos[0]] = email
    assert {to: (email["Subject"], email["From"]) for to, email in found.items()} == {
        "ana@example.com": ("News for Ana", "Letters <letters@example.com>"),
        "bia@example.com": ("News for friend", "Letters <letters@example.com>"),
    }
    assert {email["List-Unsubscribe-Post"] for email in found.values()} == {"List-Unsubscribe=One-Click"}
    assert found["ana@example.com"].get_body(("plain",)).get_content().strip() == "Hello Ana"
    html = found["ana@example.com"].get_body(("html",)).get_content()
    assert html.startswith("<p>Hello Ana, &lt;b&gt; <a href=")
    link, image = re.search(r'href="([^"]+)"', html), re.search(r'<img src="([^"]+)"', html)
    assert link is not None
    assert image is not None
    async with person.get(link[1], allow_redirects=False) as answer:
        assert answer.headers["Location"] == "https://example.com/go?to=Ana"
    async with person.get(image[1]) as answer:
        assert answer.status == 200

    async def counted() -> bool:
        campaign = await live.api.call("GET", "/v2/campaigns/live")
        return bool((campaign["clicks"], campaign["opens"]) == (1, 1))

    await until(counted, "the campaign counts both", every=0.1)


async def test_a_transactional_batch_is_not_tracked_unless_that_is_asked_for(
    live: Mail, mail_server: MailServer
) -> None:
    template_id = await template(live, "receipt")
    for tracking in (None, True):
        mail_server.taken.clear()
        made = await bulk(
            live, [{"to": "ana@example.com"}], templateId=template_id, transactional=True, tracking=tracking
        )
        await ended(live, made["id"])
        (envelope,) = mail_server.taken
        assert isinstance(envelope.content, bytes)
        email: Any = message_from_bytes(envelope.content, policy=policy.default)
        assert email["List-Unsubscribe"] is None
        assert email["Feedback-ID"].startswith("transactional:")
        html = email.get_body(("html",)).get_content()
        assert (".gif" in html) is bool(tracking)
        assert email.get_body(("plain",)).get_content().strip() == text_of_html(html)


async def test_what_failed_is_sent_again_as_it_was(live: Mail, mail_server: MailServer) -> None:
    mail_server.at["RCPT"] = lambda peer: "550 5.7.1 we do not like the content"
    made = await bulk(
        live, [{"to": "again@example.com", "variables": {"name": "Ana"}}],
        templateId=await template(live, "again"), campaignId="again",
    )  # fmt: skip
    done = await ended(live, made["id"])
    assert done["totals"]["failed"] == 1
    del mail_server.at["RCPT"]
    wanted = {"channel": "email", "filter": {"batchId": made["id"]}}
    plan = await live.api.call("POST", "/messages/resend", {**wanted, "dryRun": True})
    assert plan == {"matched": 1, "skipped": {}, "estimatedCoins": PRICE}
    again = await live.api.call("POST", "/messages/resend", wanted)
    await ended(live, again["batch"]["id"])
    (envelope,) = mail_server.taken
    assert isinstance(envelope.content, bytes)
    email: Any = message_from_bytes(envelope.content, policy=policy.default)
    assert email["Subject"] == "Hi Ana"
    direct = await live.api.call("POST", "/messages/resend", {**wanted, "dryRun": True})
    assert direct == {"matched": 0, "skipped": {"ALREADY_REPLACED": 1}, "estimatedCoins": 0}
