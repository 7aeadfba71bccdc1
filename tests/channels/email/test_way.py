"""An e-mail goes all the way over HTTP: in the sandbox, and in live through a bridge (C10.1 to C10.3, C29.4)."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any, NamedTuple

import aiohttp
import asyncpg
import orjson
import pytest
from tests.acceptance.provider_sides import BridgeSide
from tests.channels.behaviours import says
from tests.channels.email.caller import ANA, SECRET_WORDS, Mail, ready_in_live
from tests.channels.peer import Connection, FakeBridge
from tests.privacy import found_in_logs
from tests.program import Api, Refused, Service, free_port
from tests.waiting import until

PRICE = 30
ADMIN_TOKEN = "the administrator of these tests"
_serial = itertools.count(1)


class Running(NamedTuple):
    """The program, with an organization of each environment, and the port at which its bridge is expected."""

    service: Service
    test: str
    live: str
    port: int
    side: BridgeSide


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    port = free_port()
    side = BridgeSide(port)
    settings = {name.replace("CHATAPP", "EMAIL"): value for name, value in side.settings.items()}
    service = Service(
        tmp_path_factory.mktemp("email"), SANDBOX_TIME_SCALE="0.01", ADMIN_TOKEN=ADMIN_TOKEN,
        SSRF_ALLOW_CIDRS="127.0.0.0/8", **settings,
    )  # fmt: skip

    try:
        asyncio.run(service.start())
        test, live = service.key("test", org=None), service.key("live", org=None)
        asyncio.run(ready_in_live(service, ADMIN_TOKEN))
        yield Running(service, test, live, port, side)
    finally:
        asyncio.run(service.wipe())


@pytest.fixture
async def mail(running: Running) -> AsyncIterator[Mail]:
    async with Api(running.service.url, running.test) as api:
        yield Mail(api)


@pytest.fixture
async def live(running: Running) -> AsyncIterator[Mail]:
    async with Api(running.service.url, running.live) as api:
        yield Mail(api)


@pytest.fixture
async def bridge(running: Running) -> AsyncIterator[FakeBridge]:
    async def unset(connection: Connection) -> None:
        raise AssertionError("a test sets `behaviour` before it calls")

    server = FakeBridge(unset)
    await server.start(running.port)
    yield server
    await server.stop()


# The sandbox ----------------------------------------------------------------------------------------------------------


async def test_an_email_is_answered_when_it_has_left_and_is_delivered(mail: Mail) -> None:
    before, held = await mail.balance()
    sent = await mail.send("Ana@Example.com", campaignId="tour", metadata={"order": "A-1"})
    assert {name: sent.pop(name) for name in ("id", "createdAt", "sentAt")}.keys()
    assert sent == {
        "status": "sent",
        "env": "test",
        "to": "Ana@Example.com",
        "from": "Sandbox <no-reply@sandbox.test>",
        "subject": "Your order",
        "bodyBytes": len(f"<p>{SECRET_WORDS}</p>It is ready."),
        "replayed": False,
        "billing": {"coins": PRICE},
        "campaignId": "tour",
        "metadata": {"order": "A-1"},
    }
    assert await mail.balance() == (before - PRICE, held)


async def test_its_record_and_the_lists_show_all_but_the_body(mail: Mail) -> None:
    sent = await mail.send("Bia@example.com", campaignId="lists")
    record = await mail.comes_to(sent["id"], "delivered")
    assert set(record) == {
        "id", "organizationId", "env", "to", "from", "subject", "bodyBytes", "status", "campaignId", "sentAt",
        "deliveredAt", "createdAt", "updatedAt",
    }  # fmt: skip
    for found in ({"to": "bia@EXAMPLE.com"}, {"campaignId": "lists"}, {"campaignId": "lists", "status": "delivered"}):
        listed = await mail.api.call("GET", "/v2/email/messages", **found)
        assert ([each["id"] for each in listed["items"]], listed["total"]) == ([sent["id"]], 1)
    none = await mail.api.call("GET", "/v2/email/messages", campaignId="lists", status="bounced")
    assert none == {"items": [], "total": 0}
    generic = await mail.api.call("GET", f"/messages/{sent['id']}")
    assert (generic["channel"], generic["type"], generic["status"]) == ("email", "text", "delivered")
    assert "payload" not in generic


async def test_a_template_is_rendered_with_values_and_another_subject_takes_its_place(mail: Mail) -> None:
    template = await mail.api.call(
        "POST", "/v2/email/templates",
        {
            "name": "Way", "subject": "Order {{order}}", "html": "<b>{{name}}</b>", "text": "{{name}}!",
            "variables": [{"name": "order"}, {"name": "name", "example": "friend"}],
        },
    )  # fmt: skip
    asked = {"templateId": template["id"], "html": None, "text": None, "variables": {"order": "A-1"}}
    sent = await mail.send(**asked, subject=None)
    assert (sent["subject"], sent["bodyBytes"]) == ("Order A-1", len("<b>friend</b>friend!"))
    sent = await mail.send(**asked, subject="{{order}}, {{name}}, {{other}}")
    assert sent["subject"] == "A-1, friend, "
    assert (await mail.api.call("GET", f"/messages/{sent['id']}"))["type"] == "template"
    await mail.refused(422, "VALIDATION_ERROR", **{**asked, "text": "both"})
    await mail.refused(422, "TEXT_TOO_LONG", **{**asked, "subject": "{{order}}", "variables": {"order": "x" * 300}})
    await mail.api.call("DELETE", f"/v2/email/templates/{template['id']}")
    await mail.refused(422, "REFERENCE_NOT_FOUND", **asked)


async def test_a_change_of_what_it_is_made_of_holds_for_the_next_email(mail: Mail) -> None:
    made = {"name": "Changing", "subject": "First", "html": "<p>Hi</p>"}
    template = await mail.api.call("POST", "/v2/email/templates", made)
    way = f"/v2/email/templates/{template['id']}"
    asked = {"templateId": template["id"], "html": None, "text": None, "subject": None}
    sender = await mail.api.call("POST", "/v2/email/senders", {"domain": "changing.example", "displayName": "One"})
    asked["from"] = "a@changing.example"
    sent = await mail.send(**asked)
    assert (sent["subject"], sent["from"]) == ("First", "One <a@changing.example>")
    await mail.api.call("PATCH", way, {"subject": "Second"})
    await mail.api.call("PATCH", f"/v2/email/senders/{sender['id']}", {"displayName": "Two"})
    sent = await mail.send(**asked)
    assert (sent["subject"], sent["from"]) == ("Second", "Two <a@changing.example>")
    await mail.api.call("DELETE", f"/v2/email/senders/{sender['id']}")
    await mail.refused(412, "SENDER_NOT_VERIFIED", **asked)
    await mail.api.call("DELETE", way)
    await mail.refused(422, "REFERENCE_NOT_FOUND", **asked)


async def test_what_is_sent_without_a_template_stays_as_it_is(mail: Mail) -> None:
    sent = await mail.send(html=None, text="{{name}}", variables={"name": "x"}, subject="{{name}}")
    assert (sent["subject"], sent["bodyBytes"]) == ("{{name}}", len("{{name}}"))


@pytest.mark.parametrize(
    "changes",
    [
        {"to": "no address"}, {"to": "a@b.c,d@e.f"}, {"html": None, "text": None}, {"subject": None},
        {"subject": "a\nb"}, {"from": "Example <hello>"}, {"campaignId": "a b"}, {"variables": {"1": "x"}},
        {"contactId": "cnt_none"},
        {"text": "é" * (128 * 1024 + 1)}, {"metadata": {"a": []}},
    ],
)  # fmt: skip
async def test_what_is_not_well_formed_is_refused_and_leaves_nothing(mail: Mail, changes: dict[str, Any]) -> None:
    before = (await mail.api.call("GET", "/v2/email/messages", limit=1))["total"]
    with pytest.raises(Refused) as refused:
        await mail.send(**changes)
    assert refused.value.status == 422
    assert (await mail.api.call("GET", "/v2/email/messages", limit=1))["total"] == before


async def test_without_a_key_nothing_is_sent(mail: Mail) -> None:
    with pytest.raises(Refused) as refused:
        await mail.api.call("POST", "/v2/email/messages", {"to": ANA, "subject": "x", "text": "y"})
    assert (refused.value.status, refused.value.body["code"]) == (400, "IDEMPOTENCY_KEY_REQUIRED")


async def test_a_repeat_gets_the_row_as_it_is_now(mail: Mail) -> None:
    first = await mail.send(key="once")
    await mail.comes_to(first["id"], "delivered")
    again = await mail.send(key="once")
    assert (again["id"], again["status"], again["replayed"]) == (first["id"], "delivered", True)
    await mail.refused(422, "IDEMPOTENCY_KEY_REUSED", key="once", subject="Another")


async def test_a_suppressed_address_is_refused_with_a_failed_row_and_costs_nothing(mail: Mail) -> None:
    before = await mail.balance()
    for to in ("suppressionlist+a@simulator.test", "gone@example.com"):
        if "gone" in to:
            await mail.api.call("POST", "/v2/email/suppressions", {"email": "Gone@example.com"})
        told = await mail.refused(422, "RECIPIENT_SUPPRESSED", to, key=f"to {to}", transactional=True)
        assert (told["meta"]["motivo"], told["meta"]["reason"]) == ("suppressed", "suppressed")
        record = await mail.read(told["meta"]["messageId"])
        assert (record["status"], record["reason"], record["subject"]) == ("failed", "suppressed", "Your order")
        assert "sentAt" not in record
        again = await mail.refused(422, "RECIPIENT_SUPPRESSED", to, key=f"to {to}", transactional=True)
        assert again["meta"] == told["meta"]
    assert await mail.balance() == before


async def test_without_a_verified_sender_it_is_a_failed_row_and_a_repeat_tries_again(mail: Mail) -> None:
    asked: dict[str, Any] = {"key": "a sender", "from": "Shop <shop@shop.example>"}
    told = await mail.refused(412, "SENDER_NOT_VERIFIED", **asked)
    record = await mail.read(told["meta"]["messageId"])
    assert (record["status"], record["reason"], record["from"]) == ("failed", "no_verified_sender", asked["from"])
    await mail.api.call("POST", "/v2/email/senders", {"domain": "shop.example", "displayName": "The shop"})
    sent = await mail.send(**asked)
    assert (sent["from"], sent["replayed"]) == (asked["from"], False)
    assert sent["id"] != told["meta"]["messageId"]
    assert (await mail.send(**{"from": "hello@shop.example"}))["from"] == "The shop <hello@shop.example>"


async def test_whoever_opted_out_gets_only_what_is_transactional(mail: Mail) -> None:
    await mail.api.call("POST", "/contacts/opt-out", {"email": "out@example.com"})
    told = await mail.refused(422, "CONTACT_OPTED_OUT", "Out@example.com")
    assert told["meta"] == {"motivo": "opt_out"}
    assert (await mail.send("out@example.com", transactional=True))["status"] == "sent"


async def test_a_contact_that_opted_out_is_refused_whatever_the_address(mail: Mail) -> None:
    contact = await mail.api.call("POST", "/contacts", {"phone": "+5511987651234", "email": "other@example.com"})
    sent = await mail.send("elsewhere@example.com", contactId=contact["id"])
    assert sent["contactId"] == contact["id"]
    await mail.api.call("POST", "/contacts/opt-out", {"contactId": contact["id"]})
    told = await mail.refused(422, "CONTACT_OPTED_OUT", "elsewhere@example.com", contactId=contact["id"])
    assert told["meta"]["motivo"] == "opt_out"


async def test_the_consent_of_a_contact_opens_only_its_own_address(mail: Mail) -> None:
    given = {"phone": "+5511987651237", "email": "Agreed@example.com", "optIn": {"status": "granted"}}
    contact = await mail.api.call("POST", "/contacts", given)
    await mail.api.call("PATCH", "/v2/organization", {"requireGrantedForMarketing": True})
    try:
        assert (await mail.send("agreed@example.com", contactId=contact["id"]))["status"] == "sent"
        told = await mail.refused(422, "CONSENT_REQUIRED", "stranger@example.com", contactId=contact["id"])
        assert told["meta"]["motivo"] == "sem_consentimento"
        await mail.send("stranger@example.com", contactId=contact["id"], transactional=True)
        await mail.api.call("POST", "/contacts", {**given, "phone": "+5511987651238", "email": "stranger@example.com"})
        assert (await mail.send("stranger@example.com", contactId=contact["id"]))["status"] == "sent"
    finally:
        await mail.api.call("PATCH", "/v2/organization", {"requireGrantedForMarketing": False})


async def test_a_deleted_contact_leaves_nothing_personal_in_its_emails(mail: Mail) -> None:
    contact = await mail.api.call("POST", "/contacts", {"phone": "+5511987651236", "email": "gone.soon@example.com"})
    sent = await mail.send("gone.soon@example.com", contactId=contact["id"])
    await mail.comes_to(sent["id"], "delivered")
    await mail.api.call("DELETE", f"/contacts/{contact['id']}")

    async def erased() -> bool:
        return "subject" not in await mail.read(sent["id"])

    await until(erased, "it is erased", every=0.1)
    assert (await mail.read(sent["id"]))["to"] == "g***@example.com"


async def test_a_permanent_bounce_suppresses_the_address_and_is_told(mail: Mail) -> None:
    hook = await mail.api.call("POST", "/webhooks", {"url": "http://127.0.0.1:1/", "events": ["email.bounced"]})
    sent = await mail.send("bounce+1@simulator.test")
    record = await mail.comes_to(sent["id"], "bounced")
    assert (record["reason"], "failedAt" in record, "deliveredAt" in record) == ("invalid_address", True, False)
    assert await mail.suppression("bounce+1@simulator.test") == ["bounce"]
    assert (await mail.api.call("GET", f"/messages/{sent['id']}"))["status"] == "failed"
    (delivery,) = (await mail.api.call("GET", f"/webhooks/{hook['id']}/deliveries"))["items"]
    told = (await mail.api.call("GET", f"/webhooks/{hook['id']}/deliveries/{delivery['id']}"))["payload"]["data"]
    assert (told["status"], told["reason"], told["bounceType"]) == ("bounced", "invalid_address", "permanent")
    assert (told["subject"], told["from"], told["to"]) == (sent["subject"], sent["from"], "b***@simulator.test")
    await mail.refused(422, "RECIPIENT_SUPPRESSED", "bounce+1@simulator.test")


async def test_a_complaint_suppresses_the_address_and_is_an_opt_out(mail: Mail) -> None:
    address = "complaint+2@simulator.test"
    contact = await mail.api.call("POST", "/contacts", {"phone": "+5511987651235", "email": address})
    sent = await mail.send(address)
    record = await mail.comes_to(sent["id"], "complained")
    assert (record["reason"], "deliveredAt" in record) == ("complaint", True)
    assert await mail.suppression(address) == ["complaint"]
    told = (await mail.api.call("GET", f"/contacts/{contact['id']}"))["optIn"]
    assert (told["status"], told["source"]) == ("denied", "complaint")
    await mail.refused(422, "CONTACT_OPTED_OUT", address)
    await mail.refused(422, "RECIPIENT_SUPPRESSED", address, transactional=True)


@pytest.mark.parametrize(("address", "end"), [("bounce", "bounced"), ("complaint", "complained")])
async def test_an_address_of_the_simulator_without_a_label_does_the_same_each_time(
    mail: Mail, address: str, end: str
) -> None:
    for _ in range(2):
        sent = await mail.send(f"{address}@simulator.test")
        await mail.comes_to(sent["id"], end)
    assert await mail.suppression(f"{address}@simulator.test") == []


@pytest.mark.parametrize("env", ["test", "live"])
async def test_an_automatic_reply_is_a_message_without_content_and_without_an_event(running: Running, env: str) -> None:
    """In live nobody else is asked: no bridge is there."""
    async with Api(running.service.url, running.test if env == "test" else running.live) as api:
        mail, address = Mail(api), "ooto+3@simulator.test"
        contact = await api.call("POST", "/contacts", {"phone": "+5511987651239", "email": address})
        hook = await api.call("POST", "/webhooks", {"url": "http://127.0.0.1:1/", "events": ["*"]})
        before, held = await mail.balance()
        sent = await mail.send("OoTo+3@simulator.test")
        await mail.comes_to(sent["id"], "delivered")

        async def replies() -> list[Any]:
            found = await api.call("GET", "/messages", channel="email", direction="inbound")
            return [each for each in found["items"] if each["to"].lower() == address]

        async def replied() -> bool:
            return len(await replies()) == 1

        await until(replied, "it is answered", every=0.05)
        (reply,) = await replies()
        assert (reply["status"], reply["type"], "payload" in reply) == ("delivered", "text", False)
        with pytest.raises(Refused) as refused:
            await mail.read(reply["id"])
        assert refused.value.status == 404
        # It says nothing of consent, suppresses nobody, costs nothing, and nobody is told of it.
        assert (await api.call("GET", f"/contacts/{contact['id']}"))["optIn"]["status"] == "unknown"
        assert await mail.suppression(address) == []
        assert await mail.balance() == (before - PRICE, held)
        told = (await api.call("GET", f"/webhooks/{hook['id']}/deliveries"))["items"]
        assert {each["event"] for each in told if each["event"].startswith(("message.", "email."))} == {
            "email.delivered"
        }
        await api.call("DELETE", f"/webhooks/{hook['id']}")
        await mail.send(address)  # and gets the next one


async def test_an_export_holds_them(mail: Mail) -> None:
    sent = await mail.send("complaint+4@simulator.test", campaignId="exported")
    await mail.comes_to(sent["id"], "complained")
    period = {"from": sent["createdAt"], "to": sent["createdAt"]}
    rows = (await mail.api.call("GET", "/v2/exports/email", **period))["items"]
    (row,) = (each for each in rows if each["id"] == sent["id"])
    assert (row["channel"], row["status"], row["reason"], row["subject"]) == (
        "email", "complained", "complaint", "Your order",
    )  # fmt: skip


async def test_test_and_live_never_meet(mail: Mail, live: Mail) -> None:
    sent = await mail.send()
    with pytest.raises(Refused) as refused:
        await live.read(sent["id"])
    assert refused.value.status == 404


# Live -----------------------------------------------------------------------------------------------------------------


async def test_in_live_a_bridge_gets_the_email_and_its_answer_is_the_caller_s(
    running: Running, live: Mail, bridge: FakeBridge
) -> None:
    bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    before, held = await live.balance()
    sent = await live.send(text="It is ready.")
    assert (sent["status"], sent["env"], sent["from"]) == ("sent", "live", "Example <no-reply@example.com>")
    (request,) = bridge.requests
    given: Any = request.json
    assert (given["id"], given["to"], request.headers["idempotency-key"]) == (sent["id"], ANA, sent["id"])
    assert given["content"]["html"].startswith(f'<p>{SECRET_WORDS}</p><img src="{running.service.url}/o/')
    assert await live.balance() == (before - PRICE, held)


@pytest.mark.parametrize(
    ("status", "said", "answer", "reason"),
    [
        (422, "content_rejected", (422, "CONTENT_REJECTED"), "content_rejected"),
        (400, "invalid_address", (422, "CONTENT_REJECTED"), "invalid_address"),
        (422, "suppressed", (422, "RECIPIENT_SUPPRESSED"), "suppressed"),
        (400, "E-7", (502, "DEPENDENCY_FAILED"), "provider_error"),
    ],
)
async def test_a_refusal_is_told_and_its_hold_is_released(
    live: Mail, bridge: FakeBridge, status: int, said: str, answer: tuple[int, str], reason: str
) -> None:
    before = await live.balance()
    refusal = orjson.dumps({"code": said, "message": f"no {SECRET_WORDS}"})
    bridge.behaviour = says(status, refusal, "Connection: close\r\n")
    told = await live.refused(*answer, key=f"refused {said}")
    record = await live.read(told["meta"]["messageId"])
    assert (record["status"], record["reason"], told["meta"]["reason"]) == ("failed", reason, reason)
    assert await live.balance() == before
    bridge.behaviour = says(200, '{"providerMessageId": "p-2"}')
    if answer[0] == 422:  # a repeat gets the same answer; after any other it is sent again
        again = await live.refused(*answer, key=f"refused {said}")
        assert again["meta"] == told["meta"]
    else:
        assert (await live.send(key=f"refused {said}"))["replayed"] is False


async def test_what_has_no_answer_stays_queued_with_its_hold_until_a_report_comes(
    running: Running, live: Mail, bridge: FakeBridge
) -> None:
    before, held = await live.balance()
    bridge.behaviour = says(500)
    told = await live.refused(502, "PROVIDER_TIMEOUT", "lost@example.com", key="lost")
    message_id = told["meta"]["messageId"]
    assert (await live.read(message_id))["status"] == "queued"
    assert await live.balance() == (before, held + PRICE)
    queued = await live.api.call("GET", "/v2/email/messages", status="queued", to="Lost@example.com")
    assert [each["id"] for each in queued["items"]] == [message_id]
    again = await live.send("lost@example.com", key="lost")
    assert (again["id"], again["status"], again["replayed"]) == (message_id, "queued", True)
    assert len(bridge.requests) == 1
    await report(running, "bounced", message_id, code="mailbox_full", bounceType="temporary")
    record = await live.comes_to(message_id, "bounced")
    assert (record["reason"], "sentAt" in record) == ("mailbox_full", True)
    assert await live.suppression("lost@example.com") == []
    assert await live.balance() == (before - PRICE, held)


async def test_reports_come_in_any_order(running: Running, live: Mail, bridge: FakeBridge) -> None:
    bridge.behaviour = says(200, '{"providerMessageId": "p-3"}')
    sent = await live.send("order@example.com")
    await report(running, "complained", sent["id"])
    await live.comes_to(sent["id"], "complained")
    await report(running, "delivered", sent["id"])
    await report(running, "bounced", sent["id"], bounceType="permanent")
    later = await live.send("order+2@example.com")
    await report(running, "delivered", later["id"])
    await live.comes_to(later["id"], "delivered")  # callbacks are worked off in their order
    assert (await live.read(sent["id"]))["status"] == "complained"
    assert await live.suppression("order@example.com") == ["complaint"]


async def test_the_simulator_answers_in_live_too_and_costs_the_same(live: Mail) -> None:
    """No bridge is there: nobody else is asked."""
    before, held = await live.balance()
    sent = await live.send("bounce+live@simulator.test")
    await live.comes_to(sent["id"], "bounced")
    assert await live.suppression("bounce+live@simulator.test") == ["bounce"]
    await live.refused(422, "RECIPIENT_SUPPRESSED", "suppressionlist@simulator.test")
    assert await live.balance() == (before - PRICE, held)


async def test_who_has_no_coins_is_refused_and_nothing_is_stored(running: Running) -> None:
    running.service.command("org", "create", "--name", "Poor", "--json")
    async with Api(running.service.url, running.service.key("live", org="Poor")) as api:
        poor = Mail(api)
        await poor.refused(412, "SENDER_NOT_VERIFIED")
        await api.call("POST", "/v2/email/senders", {"domain": "poor.example"})
        database = await asyncpg.connect(**running.service.cluster().connect_arguments)
        await database.execute("update email_senders set status = 'verified' where domain = 'poor.example'")
        await database.close()
        told = await poor.refused(402, "PAYMENT_REQUIRED", **{"from": "a@poor.example"})
        assert told["meta"] == {"requiredCoins": PRICE, "availableCoins": 0}
        assert (await api.call("GET", "/v2/email/messages"))["total"] == 1


async def test_an_organization_sees_none_of_another(running: Running, live: Mail) -> None:
    sent = await live.send("success@simulator.test")
    running.service.command("org", "create", "--name", "Other", "--json")
    async with Api(running.service.url, running.service.key("live", org="Other")) as api:
        with pytest.raises(Refused) as refused:
            await api.call("GET", f"/v2/email/messages/{sent['id']}")
        assert refused.value.status == 404
        assert await api.call("GET", "/v2/email/messages", to="success@simulator.test") == {"items": [], "total": 0}


async def test_a_body_is_kept_nowhere(running: Running, mail: Mail) -> None:
    """Not in a row, not in the log (C10.2.5)."""
    await mail.send()
    database = await asyncpg.connect(**running.service.cluster().connect_arguments)
    try:
        tables = await database.fetch(
            "select relname from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace"
        )
        for (table,) in tables:
            kept = await database.fetchval(f"select count(*) from {table} t where t::text like $1", f"%{SECRET_WORDS}%")
            assert not kept, table
    finally:
        await database.close()
    assert found_in_logs([running.service.log], [SECRET_WORDS, ANA]) == []


async def report(running: Running, status: str, message_id: str, **more: Any) -> None:
    """The bridge tells of a message."""
    (event,) = orjson.loads(running.side.report(status, message_id))["events"]
    del event["account"]
    body = orjson.dumps({"events": [{**event, **more, "providerMessageId": f"report {next(_serial)}"}]})
    async with Api(running.service.url, "none") as api:
        session = api._session
        assert session is not None
        headers = {"Content-Type": "application/json", **running.side.signed(body)}
        async with session.post(
            f"{running.service.url}/v2/callbacks/email/bridge", data=body, headers=headers
        ) as answer:
            assert answer.status == 200, await answer.text()


async def test_its_link_its_image_and_its_way_out_lead_back_to_it(
    running: Running, live: Mail, bridge: FakeBridge
) -> None:
    bridge.behaviour = says(200, '{"providerMessageId": "p-tracked"}')
    address = "tracked@example.com"
    contact = await live.api.call("POST", "/contacts", {"phone": "+5511987650077", "email": address})
    html = '<p>See <a class=b href="https://shop.example.com/?a=1&amp;b=2">this</a></p>'
    sent = await live.send(address, html=html, contactId=contact["id"])
    given: Any = bridge.requests[-1].json
    link = re.search(r'href="([^"]+)"', given["content"]["html"])[1]
    image = re.search(r'src="([^"]+)"', given["content"]["html"])[1]
    (way_out,) = re.findall(rf"<({running.service.url}/u/[^>]+)>", orjson.dumps(given).decode())
    async with aiohttp.ClientSession() as person:
        async with person.get(link, allow_redirects=False) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "https://shop.example.com/?a=1&b=2")
        async with person.get(image) as answer:
            assert (answer.status, answer.content_type) == (200, "image/gif")

        async def seen() -> bool:
            return {"openedAt", "clickedAt"} <= set(await live.read(sent["id"]))

        await until(seen, "the open and the click are recorded", every=0.1)
        async with person.post(way_out, data={"List-Unsubscribe": "One-Click"}) as answer:
            assert answer.status == 200
    assert (await live.api.call("GET", f"/contacts/{contact['id']}"))["optIn"]["source"] == "unsubscribe"
    await live.refused(422, "CONTACT_OPTED_OUT", address)
