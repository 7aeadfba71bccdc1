"""Refusals that were registered before the spelling of their phone changed hold for the phone (C2.4, C12.5.6, C12.5.8).

The registry holds hashes only: an entry of somebody who is no contact keeps the hash of what he was called then.
"""

from typing import Any

import pytest

from recado.domain.core.phones import phone_hash, recipient_hash

SPELLED = [
    ("+5215512345678", "+525512345678"),
    ("+541123456789", "+5491123456789"),
    ("+54111523456789", "+5491123456789"),
    ("+4407911123456", "+447911123456"),
]
FORMER, PHONE = SPELLED[0]
GRANTED = {"status": "granted", "source": "site"}


@pytest.fixture
async def marketing(mail: Any) -> Any:
    """Its template is a marketing one."""
    await mail.api.database.execute("update templates set category = 'marketing' where id = $1", mail.template.id)
    return mail


async def register(mail: Any, former: str = FORMER) -> None:
    await mail.api.database.execute(
        "insert into opt_outs values ($1, 'test', 'phone', $2, '2026-01-01', 'site')",
        mail.organization_id,
        phone_hash(mail.organization_id, former),
    )


async def registered(mail: Any) -> int:
    return int(await mail.api.database.fetchval("select count(*) from opt_outs"))


async def make(mail: Any, phone: str = PHONE, **fields: Any) -> Any:
    answer = await mail.api.post("/contacts", {"phone": phone, **fields})
    assert answer.status == 201, answer.body
    return answer.body


@pytest.mark.parametrize(("former", "phone"), SPELLED)
async def test_marketing_to_a_phone_that_refused_under_a_former_spelling_is_refused(
    marketing: Any, former: str, phone: str
) -> None:
    await register(marketing, former)
    assert (await marketing.refusal(marketing.body(to=phone))).code == "CONTACT_OPTED_OUT"
    assert (await marketing.send(to="+525512345679"))["status"] == "queued"


@pytest.mark.parametrize(("former", "phone"), SPELLED)
@pytest.mark.parametrize("fields", [{}, {"externalId": "e", "companyId": None}], ids=["plain", "more"])
async def test_whoever_refused_under_a_former_spelling_is_born_denied(
    mail: Any, former: str, phone: str, fields: dict[str, Any]
) -> None:
    await register(mail, former)
    assert (await make(mail, phone, **fields))["optIn"]["status"] == "denied"
    assert (await make(mail, "+525512345679"))["optIn"]["status"] == "unknown"


async def test_an_opt_in_clears_what_was_registered_under_a_former_spelling(marketing: Any) -> None:
    await register(marketing)
    contact = await make(marketing)
    await marketing.api.post("/contacts/opt-out", {"contactId": contact["id"]})
    granted = await marketing.api.patch(f"/contacts/{contact['id']}", {"optIn": GRANTED})
    assert (granted.status, granted.body["optIn"]["status"]) == (200, "granted")
    assert await registered(marketing) == 0
    assert (await marketing.send(to=PHONE))["status"] == "queued"


async def test_a_contact_is_born_granted_only_by_a_consent_after_a_refusal_under_a_former_spelling(mail: Any) -> None:
    await register(mail)
    older = {"phone": PHONE, "optIn": {**GRANTED, "at": "2025-12-01T00:00:00Z"}}
    assert (await mail.api.post("/contacts", older)).code == "CONSENTIMENTO_ANTERIOR_A_RECUSA"
    assert (await make(mail, optIn=GRANTED))["optIn"]["status"] == "granted"
    assert await registered(mail) == 0


async def test_whoever_refused_under_a_former_spelling_has_opted_out_already(mail: Any) -> None:
    await register(mail)
    answer = await mail.api.post("/contacts/opt-out", {"phone": PHONE})
    assert (answer.body["contactId"], answer.body["alreadyOptedOut"]) == (None, True)


async def test_a_refusal_withdraws_what_waits_under_a_former_spelling(marketing: Any) -> None:
    sent = await marketing.send(to=PHONE)
    await marketing.api.database.execute(
        "update dispatch set consent_hash = $1", recipient_hash(marketing.organization_id, FORMER)
    )
    answer = await marketing.api.post("/contacts/opt-out", {"phone": PHONE})
    assert answer.body["messagesWithdrawn"] == 1
    assert (await marketing.api.get(f"/messages/{sent['id']}")).body["status"] == "failed"


async def test_the_refusal_of_a_contact_that_kept_its_former_spelling_is_one_of_the_phone(marketing: Any) -> None:
    contact = await make(marketing, "+525500000000")
    await marketing.api.database.execute(
        "update contacts set phone = $1, phone_hash = $2", FORMER, phone_hash(marketing.organization_id, FORMER)
    )
    await marketing.api.post("/contacts/opt-out", {"contactId": contact["id"]})
    assert (await marketing.refusal(marketing.body(to=PHONE))).code == "CONTACT_OPTED_OUT"


@pytest.mark.parametrize("named", [False, True], ids=["to", "contactId"])
async def test_a_batch_leaves_out_who_refused_under_a_former_spelling(marketing: Any, named: bool) -> None:
    contact = await make(marketing)
    await register(marketing)
    body = {
        "channel": "chatapp", "numberId": marketing.number_id, "type": "template",
        "templateId": marketing.template.id, "templateVars": ["Ana"],
        "recipients": [{"contactId": contact["id"]} if named else {"to": PHONE}, {"to": "+525512345679"}],
    }  # fmt: skip
    answer = await marketing.api.post("/messages/bulk", body)
    assert answer.status == 202, answer.body
    rows = await marketing.api.database.fetch("select recipient from messages")
    assert [row["recipient"] for row in rows] == ["+525512345679"]
    assert answer.body["skippedReasons"] == {"CONTACT_OPTED_OUT": 1}
