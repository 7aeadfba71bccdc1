"""Sends that are subject to consent, and sends to contacts, over HTTP (C12.5.4 to C12.5.6, C15.2, C15.5)."""

from typing import Any

import pytest

PHONE = "+5511987654321"
OTHER = "+5511987654322"
NOBODY = "cnt_" + "0" * 21


@pytest.fixture
async def marketing(mail: Any) -> Any:
    """Its template is a marketing one."""
    await mail.api.database.execute("update templates set category = 'marketing' where id = $1", mail.template.id)
    return mail


async def contact(mail: Any, phone: str = PHONE, status: str | None = None) -> str:
    body: dict[str, Any] = {"phone": phone} if status is None else {"phone": phone, "optIn": {"status": status}}
    answer = await mail.api.post("/contacts", body)
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def granted_only(mail: Any) -> None:
    await mail.api.database.execute(
        "update organizations set require_granted_for_marketing = true where id = $1", mail.organization_id
    )
    mail.api.directories.organizations.clear()


async def bulk(mail: Any, recipients: list[dict[str, Any]], **changes: Any) -> Any:
    body = {
        "channel": "chatapp", "numberId": mail.number_id, "type": "template", "templateId": mail.template.id,
        "templateVars": ["Ana"], "recipients": recipients, **changes,
    }  # fmt: skip
    answer = await mail.api.post("/messages/bulk", {name: value for name, value in body.items() if value is not ...})
    assert answer.status == 202, answer.body
    return answer.body


async def messages_of(mail: Any, batch: Any) -> list[tuple[str, str | None]]:
    """Phone and contact of each."""
    rows = await mail.api.database.fetch(
        "select recipient, contact_id from messages where batch_id = $1 order by id", batch["id"]
    )
    return [(row["recipient"], row["contact_id"]) for row in rows]


async def test_a_message_to_a_contact_goes_to_its_phone_and_names_it(mail: Any) -> None:
    contact_id = await contact(mail)
    sent = await mail.send(to=..., contactId=contact_id)
    shown = (await mail.api.get(f"/messages/{sent['id']}")).body
    assert (sent["contactId"], shown["contactId"], shown["to"]) == (contact_id, contact_id, sent["to"])
    row = await mail.api.database.fetchrow("select recipient, contact_id from messages where id = $1", sent["id"])
    assert (row["recipient"], row["contact_id"]) == (PHONE, contact_id)
    listed = (await mail.api.get(f"/messages?contactId={contact_id}")).body
    assert [each["id"] for each in listed["items"]] == [sent["id"]]


async def test_a_recipient_in_another_spelling_is_the_phone_of_the_contact(mail: Any) -> None:
    contact_id = await contact(mail)
    assert (await mail.send(to="+55 11 8765-4321", contactId=contact_id))["contactId"] == contact_id


async def test_a_recipient_that_is_not_the_phone_of_the_contact_is_refused(mail: Any) -> None:
    contact_id = await contact(mail)
    refused = await mail.refusal(mail.body(to=OTHER, contactId=contact_id))
    assert (refused.status, refused.code) == (422, "RECIPIENT_MISMATCH")
    assert [error["path"] for error in refused.body["errors"]] == ["/to"]


async def test_the_contact_of_a_deleted_person_or_of_another_environment_is_not_found(mail: Any) -> None:
    contact_id = await contact(mail)
    await mail.api.database.execute("update contacts set env = 'live' where id = $1", contact_id)
    for unknown in (contact_id, NOBODY):
        refused = await mail.refusal(mail.body(contactId=unknown))
        assert (refused.status, refused.code, refused.body["meta"]) == (
            422, "REFERENCE_NOT_FOUND", {"field": "contactId"},
        )  # fmt: skip


async def test_a_match_by_phone_is_not_written_into_the_message(marketing: Any) -> None:
    await contact(marketing)
    sent = await marketing.send()
    assert "contactId" not in sent
    assert await marketing.api.database.fetchval("select contact_id from messages where id = $1", sent["id"]) is None


@pytest.mark.parametrize("named", [False, True])
async def test_marketing_to_whoever_opted_out_is_refused(marketing: Any, named: bool) -> None:
    contact_id = await contact(marketing, status="denied")
    who = {"to": ..., "contactId": contact_id} if named else {}
    refused = await marketing.refusal(marketing.body(**who))
    assert (refused.status, refused.code, refused.body["meta"]) == (422, "CONTACT_OPTED_OUT", {"motivo": "opt_out"})
    assert refused.body["detail"].endswith("leave it out until it has consented anew.")


async def test_marketing_to_a_phone_in_the_registry_is_refused_without_any_contact(marketing: Any) -> None:
    await marketing.api.post("/contacts/opt-out", {"phone": PHONE})
    assert (await marketing.refusal(marketing.body())).code == "CONTACT_OPTED_OUT"
    assert (await marketing.send(to=OTHER))["status"] == "queued"


async def test_what_is_exempt_is_sent_to_whoever_opted_out(mail: Any) -> None:
    await contact(mail, status="denied")
    assert (await mail.send())["status"] == "queued"


async def test_consent_after_a_refusal_lets_marketing_through(marketing: Any) -> None:
    contact_id = await contact(marketing, status="denied")
    marketing.api.clock.shift(1)
    granted = await marketing.api.patch(f"/contacts/{contact_id}", {"optIn": {"status": "granted", "source": "form"}})
    assert granted.status == 200, granted.body
    assert (await marketing.send())["status"] == "queued"


async def test_an_organization_may_ask_for_granted_consent(marketing: Any) -> None:
    await granted_only(marketing)
    await contact(marketing, OTHER, status="granted")
    refused = await marketing.refusal(marketing.body())
    assert (refused.status, refused.code) == (422, "CONSENT_REQUIRED")
    assert refused.body["meta"] == {"motivo": "sem_consentimento"}
    unknown = await contact(marketing)
    assert (await marketing.refusal(marketing.body(contactId=unknown))).code == "CONSENT_REQUIRED"
    assert (await marketing.send(to=OTHER))["status"] == "queued"


async def test_a_repeat_of_a_message_that_was_withdrawn_is_asked_for_consent_again(marketing: Any) -> None:
    key = {"Idempotency-Key": "once"}
    first = await marketing.api.post("/messages", marketing.body(), headers=key)
    await contact(marketing, status="denied")
    again = await marketing.api.post("/messages", marketing.body(), headers=key)
    # It never left: its key is free, and the rules are asked again (C6.2).
    assert (first.status, again.status, again.code) == (201, 422, "CONTACT_OPTED_OUT")


async def test_recipients_of_a_batch_that_opted_out_are_left_out_and_counted(marketing: Any) -> None:
    await contact(marketing, status="denied")
    batch = await bulk(marketing, [{"to": PHONE}, {"to": OTHER}])
    assert (batch["totals"]["accepted"], batch["totals"]["skipped"]) == (1, 1)
    assert batch["skippedReasons"] == {"CONTACT_OPTED_OUT": 1}
    assert [(error["path"], error["code"]) for error in batch["errors"]] == [("/recipients/0", "CONTACT_OPTED_OUT")]
    assert await messages_of(marketing, batch) == [(OTHER, None)]


async def test_recipients_of_a_batch_without_granted_consent_are_left_out_where_it_is_asked_for(marketing: Any) -> None:
    await granted_only(marketing)
    await contact(marketing, status="granted")
    batch = await bulk(marketing, [{"to": PHONE}, {"to": OTHER}])
    assert batch["skippedReasons"] == {"CONSENT_REQUIRED": 1}
    assert await messages_of(marketing, batch) == [(PHONE, None)]


async def test_a_batch_of_utility_messages_reaches_whoever_opted_out(mail: Any) -> None:
    await contact(mail, status="denied")
    assert (await bulk(mail, [{"to": PHONE}]))["totals"]["accepted"] == 1


async def test_recipients_of_a_batch_may_be_contacts(mail: Any) -> None:
    ana, bia = await contact(mail), await contact(mail, OTHER)
    batch = await bulk(
        mail,
        [
            {"contactId": ana},
            {"to": OTHER, "contactId": bia},
            {"to": "+4915000000001"},
            {"to": OTHER, "contactId": ana},
            {"contactId": NOBODY},
            {"to": PHONE},
        ],
    )
    assert await messages_of(mail, batch) == [(PHONE, ana), (OTHER, bia), ("+4915000000001", None)]
    assert [(error["path"], error["code"]) for error in batch["errors"]] == [
        ("/recipients/3/to", "RECIPIENT_MISMATCH"),
        ("/recipients/4/contactId", "REFERENCE_NOT_FOUND"),
        ("/recipients/5", "DUPLICATE_RECIPIENT"),
    ]


async def test_a_later_block_asks_the_contacts_that_it_names_again(marketing: Any) -> None:
    """More than a block: what is made later leaves out whoever opted out meanwhile."""
    late = await contact(marketing)
    people = [{"to": f"+49150{number:08}"} for number in range(1_001)]
    batch = await bulk(marketing, [*people, {"contactId": late}])
    await marketing.api.post("/contacts/opt-out", {"contactId": late})
    key = (marketing.organization_id, "test", batch["id"])
    while await marketing.maker.make_next(key):
        pass
    row = await marketing.api.database.fetchrow("select skipped_reasons from batches where id = $1", batch["id"])
    assert row["skipped_reasons"] == {"CONTACT_OPTED_OUT": 1}
    assert len(await messages_of(marketing, batch)) == 1_001


async def test_failed_messages_are_asked_for_consent_anew(marketing: Any) -> None:
    sent = await marketing.send()
    await contact(marketing, status="denied")
    assert (await marketing.api.get(f"/messages/{sent['id']}")).body["status"] == "failed"
    resent = await marketing.api.post("/messages/resend", {"messageIds": [sent["id"]], "dryRun": True})
    assert resent.body["skipped"] == {"CONTACT_OPTED_OUT": 1}
    again = await marketing.api.post(f"/messages/{sent['id']}/reprocess")
    assert (again.status, again.code) == (422, "CONTACT_OPTED_OUT")


async def test_a_message_to_a_contact_is_sent_again_to_the_same_contact(mail: Any) -> None:
    contact_id = await contact(mail)
    sent = await mail.send(to=..., contactId=contact_id)
    await mail.set_status(sent["id"], "failed")
    again = await mail.api.post(f"/messages/{sent['id']}/reprocess")
    assert (again.status, again.body["contactId"]) == (201, contact_id)
