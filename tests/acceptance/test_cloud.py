"""Live over the hosted API: the real service and the real simulator, from the token of a number to a read message."""

import re
import secrets
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from tests.privacy import found_in_logs
from tests.program import Api, Program, Refused, Service, free_port, running
from tests.waiting import until

NUMBER, BUSINESS, PHONE = "106540352242922", "102290129340398", "+5511900000000"
PERSON = "+5511987654321"


class Line:
    """One live number at the simulated provider."""

    def __init__(self, service: Service, simulator: str, api: Api) -> None:
        self.service = service
        self.simulator = simulator
        self.api = api
        self.id = ""

    async def control(self, path: str, **body: Any) -> None:
        address = f"{self.simulator}/control/{path}"
        async with aiohttp.ClientSession() as session, session.post(address, data=orjson.dumps(body)) as answer:
            assert answer.status == 200, await answer.text()

    async def register(self, token: str) -> None:
        new = {"phoneNumberId": NUMBER, "businessAccountId": BUSINESS, "displayPhone": PHONE, "accessToken": token}
        self.id = (await self.api.call("POST", "/numbers", new))["id"]
        await self.number_is(status="available")
        await self.api.call("POST", f"/numbers/{self.id}/connect")
        await self.control(f"numbers/{NUMBER}", business_account=BUSINESS, display_phone_number=PHONE[1:])

    async def number_is(self, **wanted: str) -> None:
        async def so() -> bool:
            number = await self.api.call("GET", f"/numbers/{self.id}")
            return all(number[name] == value for name, value in wanted.items())

        await until(so, f"the number is {wanted}", every=0.1)

    async def template(self, name: str) -> str:
        await self.api.call("POST", "/v2/templates/sync", {"numberId": self.id})

        async def approved() -> Any:
            held = await self.api.call("GET", "/v2/templates", numberId=self.id, status="approved")
            return next((each["id"] for each in held["items"] if each["name"] == name), None)

        return str(await until(approved, "the provider's templates are here", every=0.1))

    async def send(self, **message: Any) -> str:
        sent = await self.api.call(
            "POST", "/messages", {"numberId": self.id, "to": PERSON, **message}, key=secrets.token_hex(8)
        )
        return str(sent["id"])

    async def ends(self, message_id: str, status: str) -> Any:
        async def there() -> Any:
            message = await self.api.call("GET", f"/messages/{message_id}")
            return message if message["status"] == status else None

        return await until(there, f"{message_id} is {status}", every=0.1)

    async def person(self) -> str:
        """The token of somebody who signed in: an API key submits no template."""
        email, password = "ana@example.com", secrets.token_hex(16)
        invited = self.service.command("account", "create", "--email", email, "--json")
        await self.api.call(
            "POST", "/v2/accounts/accept-invite", {"token": invited["inviteToken"], "password": password}
        )
        signed_in = await self.api.call("POST", "/v2/sessions", {"email": email, "password": password})
        return str(signed_in["tokens"]["live"])

    async def reviewed(self, template: str, session: str, status: str) -> Any:
        """Hand a template in, and wait for the verdict."""
        await self.api.call("POST", f"/v2/templates/{template}/submit", token=session)

        async def there() -> Any:
            held = await self.api.call("GET", f"/v2/templates/{template}")
            return held if held["status"] == status else None

        return await until(there, f"the template is {status}", every=0.1)


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Line]:
    app_secret, port = secrets.token_urlsafe(24), free_port()
    service = Service(
        tmp_path,
        ADAPTER_CHATAPP="cloud",
        LOG_LEVEL="debug",
        CLOUD_URL=f"http://127.0.0.1:{port}/v24.0",
        CLOUD_APP_SECRET=app_secret,
        CLOUD_VERIFY_TOKEN="a token to verify with",
    )
    callbacks = f"{service.url}/v2/callbacks/chatapp/cloud"
    simulator = Program(
        tmp_path,
        "simulator",
        *("simulator", "--listen", f"127.0.0.1:{port}", "--record", str(tmp_path / "record.jsonl")),
        *("--protocol", "cloud", "--secret", app_secret, "--cloud-callback-url", callbacks, "--receipt-ms", "20"),
    )
    simulator.spawn()
    try:
        await until(lambda: re.search("listens on", simulator.output.read_text()), "the simulator listens")
        async with running(service), Api(service.url, service.key("live")) as api:
            service.command("wallet", "credit", "--env", "live", "--coins", "100000", "--reference", "1", "--json")
            yield Line(service, f"http://127.0.0.1:{port}", api)
    finally:
        simulator.end(signal.SIGKILL)


@pytest.mark.long
async def test_a_live_number_sends_hears_and_is_told_of_its_quality(line: Line) -> None:
    token = secrets.token_urlsafe(24)
    await line.register(token)
    template = await line.template("order_update")

    first = await line.send(type="template", templateId=template, templateVars=["the secret order"])
    message = await line.ends(first, "read")
    assert message["providerMessageId"].startswith("sim_")
    assert message["sentAt"][:19] <= message["deliveredAt"][:19] <= message["readAt"][:19]  # the API tells seconds only

    await line.control("inbound", number=NUMBER, **{"from": PERSON}, text="a secret wish")

    async def heard() -> Any:
        return (await line.api.call("GET", "/messages", direction="inbound"))["items"]

    (inbound,) = await until(heard, "the person's message is here", every=0.1)
    assert (inbound["to"], inbound["payload"]) == (PERSON, {"text": {"body": "a secret wish"}})
    second = await line.send(type="text", payload={"text": {"body": "a secret answer"}})
    await line.ends(second, "read")

    await line.control("errors", code=131049)
    refused = await line.ends(await line.send(type="template", templateId=template, templateVars=["x"]), "failed")
    assert refused["lastError"].startswith("policy_blocked:")
    await line.control("errors", code=131056)
    delayed = await line.send(type="template", templateId=template, templateVars=["x"])

    async def held_back() -> bool:
        waiting = (await line.api.call("GET", f"/messages/{delayed}")).get("waiting")
        return bool(waiting and waiting["reason"] == "pair_limit")

    await until(held_back, "the message waits for its turn with the person", every=0.1)
    await line.ends(delayed, "read")

    await line.control("errors", code=368)
    await line.ends(await line.send(type="template", templateId=template, templateVars=["x"]), "read")
    assert "provider_blocks_account" in line.service.log.read_text()

    await line.control(f"numbers/{NUMBER}", quality_rating="RED", messaging_limit="TIER_1K")
    await line.number_is(status="flagged", messagingTier="tier_1k")
    await line.control(f"accounts/{BUSINESS}", event="PARTNER_REMOVED")

    async def removed() -> Any:
        return (await line.api.call("GET", f"/numbers/{line.id}"))["meta"]["partnerRemovedReason"]

    assert await until(removed, "the removal is marked", every=0.1) == "PARTNER_REMOVED"

    await line.control(f"numbers/{NUMBER}", quality_rating="GREEN")
    await line.number_is(status="connected")
    await line.control("errors", code=131050)
    stopped = await line.ends(await line.send(type="template", templateId=template, templateVars=["x"]), "failed")
    assert stopped["lastError"].startswith("opted_out:")

    async def opted_out() -> bool:
        (contact,) = (await line.api.call("GET", "/contacts"))["items"]
        return bool(contact["optIn"] == {**contact["optIn"], "status": "denied", "source": "provider"})

    await until(opted_out, "the person has opted out", every=0.1)
    personal = [token, PERSON[1:], PHONE[1:], "the secret order", "a secret wish", "a secret answer"]
    assert found_in_logs([line.service.log], personal) == []


@pytest.mark.long
async def test_a_template_is_edited_at_the_provider_and_sent_as_it_is_then(line: Line) -> None:
    await line.register(secrets.token_urlsafe(24))
    session = await line.person()
    body = {"type": "BODY", "payload": {"text": "Hello {{1}}, welcome.", "example": ["Ana"]}}
    new = {"numberId": line.id, "name": "welcome", "language": "en-US", "category": "utility", "components": [body]}
    template = (await line.api.call("POST", "/v2/templates", new))["id"]
    first = await line.reviewed(template, session, "approved")

    edited = {"type": "BODY", "payload": {"text": "Hello {{1}} and {{2}}, welcome.", "example": ["Ana", "Bia"]}}
    await line.api.call("PATCH", f"/v2/templates/{template}", {"components": [edited]})
    second = await line.reviewed(template, session, "approved")
    assert (second["version"], second["providerTemplateId"]) == (2, first["providerTemplateId"])
    sent = await line.send(type="template", templateId=template, templateVars=["Ana", "Bia"])
    await line.ends(sent, "read")

    # Its name asks for a rejection; what is handed in after that is the same template, once more.
    rejected = (await line.api.call("POST", "/v2/templates", {**new, "name": "reject_me"}))["id"]
    await line.reviewed(rejected, session, "rejected")
    again = await line.reviewed(rejected, session, "rejected")
    assert again["rejectionReason"] == "INCORRECT_CATEGORY"


@pytest.mark.long
async def test_a_flow_is_published_opened_and_paused_while_the_provider_throttles_it(line: Line) -> None:
    await line.register(secrets.token_urlsafe(24))
    screens = [{"id": "ASK", "title": "How was it?"}, {"id": "END", "terminal": True}]
    new = {
        "numberId": line.id,
        "name": "Survey",
        "providerCategories": ["SURVEY"],
        "flowJson": {"routing_model": {"ASK": ["END"]}, "screens": screens},
    }
    flow = (await line.api.call("POST", "/v2/flows", new))["id"]
    published = await line.api.call("POST", f"/v2/flows/{flow}/publish")

    async def flow_is(status: str, there: str) -> None:
        async def so() -> bool:
            held = await line.api.call("GET", f"/v2/flows/{flow}")
            return (held["status"], held["providerStatus"]) == (status, there)

        await until(so, f"the flow is {status}", every=0.1)

    await line.control("inbound", number=NUMBER, **{"from": PERSON}, text="hello")

    async def heard() -> Any:
        return (await line.api.call("GET", "/messages", direction="inbound"))["items"]

    await until(heard, "the person's message is here", every=0.1)
    action = {"flowId": flow, "cta": "Answer"}
    opening = {
        "type": "interactive",
        "payload": {"interactive": {"type": "flow", "body": "Tell us.", "action": action}},
    }
    await line.ends(await line.send(**opening), "read")

    await line.control(f"flows/{published['providerFlowId']}", status="THROTTLED")
    await flow_is("paused", "THROTTLED")
    with pytest.raises(Refused, match="only an active flow can be sent"):
        await line.send(**opening)
    await line.control(f"flows/{published['providerFlowId']}", status="PUBLISHED")
    await flow_is("active", "PUBLISHED")
    await line.api.call("POST", f"/v2/flows/{flow}/deprecate")
    await flow_is("deprecated", "DEPRECATED")
