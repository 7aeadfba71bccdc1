"""The log of a sandbox run at its most talkative level: texts, phones and every key stay out of it."""

import asyncio
import secrets
import signal
from pathlib import Path

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.privacy import found_in_logs
from tests.program import Api, Refused, Service, running


async def test_the_log_of_a_run_holds_no_phone_no_text_no_key_and_no_secret(tmp_path: Path) -> None:
    admin_token = secrets.token_urlsafe(24)
    access_token = f"access-{secrets.token_hex(16)}"
    people = [phone(suffix) for suffix in ("0000", "9001", "9002", "9005", "9007", "9013", "9014")]
    text, variable, malformed = "meet me at the old mill", "the package of Dona Ines", "half of a private letter"
    service = Service(tmp_path, ADMIN_TOKEN=admin_token, SANDBOX_TIME_SCALE="0.1", LOG_LEVEL="debug")
    async with running(service):
        token = await asyncio.to_thread(service.key, "test")
        async with Api(service.url, token) as api, Api(service.url, admin_token) as admin:
            customer = await Customer.arrive(api)
            await api.call("PATCH", f"/numbers/{customer.number_id}", {"accessToken": access_token})
            display_phone = (await api.call("GET", f"/numbers/{customer.number_id}"))["displayPhone"]
            owner = "another.owner@example.com"
            made = await admin.call("POST", "/v2/admin/organizations", {"name": "Another", "ownerEmail": owner})
            tokens = [made["inviteToken"], *(each["token"] for each in made["keys"].values())]
            await _write(customer, people[0], text)
            sent = [await customer.send(person, templateVars=[variable]) for person in people]
            await customer.reaches(sent[0], "read")
            await customer.reaches(sent[1], "failed")
            await _be_refused(service, customer, token, people[0], malformed)
            await service.end_postgres(signal.SIGKILL)
            await customer.sends_at_last(people[0], templateVars=[variable])
        service.end(signal.SIGTERM)
        postgres_log = tmp_path / "postgres.log"
        postgres_log.write_bytes(service.cluster().log.read_bytes())

    private = [*(person[1:] for person in people), owner, display_phone[1:], text, variable, malformed]
    assert found_in_logs([service.log, postgres_log], [*private, token, admin_token, access_token, *tokens]) == []


async def _write(customer: Customer, person: str, text: str) -> None:
    inbound = {"numberId": customer.number_id, "from": person, "text": text}
    await customer.api.call("POST", "/v2/sandbox/inbound", inbound)
    content = {"type": "text", "templateId": None, "templateVars": None, "payload": {"text": {"body": text}}}
    await customer.reaches(await customer.send(person, **content), "read")


async def _be_refused(service: Service, customer: Customer, token: str, person: str, text: str) -> None:
    """Requests that go wrong in every early place with something private in their hands."""
    with pytest.raises(Refused, match="422"):
        await customer.send(person, type="text", templateVars=None, templateId=None, payload={"text": {"corpo": text}})
    with pytest.raises(Refused, match="4"):
        await customer.api.call("GET", f"/messages/{person}", search=text)
    async with aiohttp.ClientSession() as session:
        broken = f'{{"to": "{person}", "text": "{text}'.encode()
        for bearer, status in ((token, 400), (f"{token}x", 401)):
            headers = {"Authorization": f"Bearer {bearer}", "Content-Type": "application/json"}
            async with session.post(f"{service.url}/messages", data=broken, headers=headers) as answer:
                assert answer.status == status
