"""Messages to people who show a user id in the place of a phone, over HTTP (C28.6)."""

from typing import Any

import pytest
from tests.http.messages.test_consent import bulk, contact, granted_only, marketing, messages_of

__all__ = ["marketing"]  # a fixture
USER, PHONE = "BR.1502576394655843", "+5511987654321"


async def writes(mail: Any, text: str = "hello", sender: str = USER) -> str:
    body = {"numberId": mail.number_id, "from": sender, "text": text}
    came = await mail.api.post("/v2/sandbox/inbound", body)
    assert came.status == 202, came.body
    return str(came.body["messageId"])


async def knows(mail: Any, contact_id: str, user_id: str = USER) -> None:
    await mail.api.database.execute("update contacts set chatapp_user_id = $2 where id = $1", contact_id, user_id)


async def test_a_template_goes_to_a_user_id(mail: Any) -> None:
    sent = await mail.send(to=f" {USER} ")
    assert sent["to"] == USER
    assert await mail.api.database.fetchval("select recipient from messages where id = $1", sent["id"]) == USER
    (listed,) = (await mail.api.get(f"/messages?phone={USER}")).body["items"]
    assert listed["id"] == sent["id"]


@pytest.mark.parametrize("to", ["br.15", "BR.", "BR.1-2", "BRA.12", "BR.ENT.", "BR." + "1" * 126, "BR", "+BR.15"])
async def test_what_is_no_user_id_and_no_phone_is_refused(mail: Any, to: str) -> None:
    refused = await mail.refusal(mail.body(to=to))
    assert (refused.status, [each["path"] for each in refused.body["errors"]]) == (422, ["/to"])
    assert refused.code == ("VALIDATION_ERROR" if len(to) > 128 else "PHONE_INVALID")


async def test_who_writes_under_an_id_opens_the_window_of_that_id(mail: Any) -> None:
    assert (await mail.refusal(mail.text(to=USER))).code == "WINDOW_CLOSED"
    inbound = (await mail.api.get(f"/messages/{await writes(mail)}")).body
    assert (inbound["to"], inbound["direction"], "contactId" in inbound) == (USER, "inbound", False)
    assert (await mail.api.post("/messages", mail.text(to=USER))).status == 201
    assert (await mail.refusal(mail.text())).code == "WINDOW_CLOSED"


async def test_an_id_is_masked_for_who_may_not_see_it(mail: Any) -> None:
    sent = await mail.send(to=USER)
    token = await mail.api.key("messages:read", "contacts:read")
    shown = (await mail.api.call("GET", f"/messages/{sent['id']}", token=token)).body
    assert (shown["to"][-4:], set(shown["to"][:-4])) == (USER[-4:], {"*"})
    contact_id = await contact(mail)
    await knows(mail, contact_id)
    assert (await mail.api.get(f"/contacts/{contact_id}")).body["chatappUserId"] == USER
    for path in (f"/contacts/{contact_id}", "/contacts"):
        body = (await mail.api.call("GET", path, token=token)).body
        masked = body["items"][0] if "items" in body else body
        assert masked["chatappUserId"] == f"****{USER[-4:]}"


async def test_an_id_that_said_stop_gets_no_marketing(marketing: Any) -> None:
    waiting = await marketing.send(to=USER)
    await writes(marketing, "Sair")
    shown = (await marketing.api.get(f"/messages/{waiting['id']}")).body
    assert (shown["status"], shown["lastError"].partition(":")[0]) == ("failed", "opted_out")
    refused = await marketing.refusal(marketing.body(to=USER))
    assert (refused.status, refused.code, refused.body["meta"]) == (422, "CONTACT_OPTED_OUT", {"motivo": "opt_out"})
    assert (await marketing.send(to=USER[:-1]))["status"] == "queued"
    marketing.api.clock.shift(1)
    await writes(marketing, "Voltar")
    assert (await marketing.send(to=USER))["status"] == "queued"


async def test_a_refusal_of_a_contact_holds_for_its_id(marketing: Any) -> None:
    contact_id = await contact(marketing)
    await knows(marketing, contact_id)
    denied = await marketing.api.patch(f"/contacts/{contact_id}", {"optIn": {"status": "denied"}})
    assert denied.status == 200, denied.body
    assert (await marketing.refusal(marketing.body(to=USER))).code == "CONTACT_OPTED_OUT"
    assert (await marketing.api.delete(f"/contacts/{contact_id}")).status == 204
    assert (await marketing.refusal(marketing.body(to=USER))).code == "CONTACT_OPTED_OUT"


async def test_an_operator_opts_an_id_out_and_the_contact_that_has_it(marketing: Any) -> None:
    path, waiting = "/contacts/opt-out", await marketing.send(to=USER)
    answer = await marketing.api.post(path, {"chatappUserId": USER, "source": "desk"})
    assert (answer.status, answer.body["contactId"], answer.body["messagesWithdrawn"]) == (200, None, 1)
    assert (await marketing.api.get(f"/messages/{waiting['id']}")).body["status"] == "failed"
    assert (await marketing.api.post(path, {"chatappUserId": USER})).body["alreadyOptedOut"] is True
    marketing.api.clock.shift(1)
    await writes(marketing, "Voltar")  # which takes back no refusal of an operator
    assert (await marketing.refusal(marketing.body(to=USER))).code == "CONTACT_OPTED_OUT"
    contact_id = await contact(marketing)
    await knows(marketing, contact_id, "US.1")
    assert (await marketing.api.post(path, {"chatappUserId": "US.1"})).body["contactId"] == contact_id
    assert (await marketing.refusal(marketing.body())).code == "CONTACT_OPTED_OUT"
    for body in ({"chatappUserId": "us.1"}, {"chatappUserId": USER, "phone": PHONE}):
        assert (await marketing.api.post(path, body)).code == "VALIDATION_ERROR"


async def test_where_a_grant_is_needed_the_contact_is_named_beside_its_id(marketing: Any) -> None:
    await granted_only(marketing)
    contact_id = await contact(marketing, status="granted")
    await knows(marketing, contact_id)
    assert (await marketing.refusal(marketing.body(to=USER))).code == "CONSENT_REQUIRED"
    sent = await marketing.send(to=USER, contactId=contact_id)
    assert (sent["to"], sent["contactId"]) == (USER, contact_id)
    assert (await marketing.refusal(marketing.body(to=USER[:-1], contactId=contact_id))).code == "RECIPIENT_MISMATCH"


async def test_a_batch_goes_to_ids_and_phones(marketing: Any) -> None:
    await writes(marketing, "stop", "BR.77")
    batch = await bulk(marketing, [{"to": PHONE}, {"to": USER}, {"to": "BR.77"}, {"to": USER}, {"to": "BR."}])
    assert await messages_of(marketing, batch) == [(PHONE, None), (USER, None)]
    codes = {each["path"]: each["code"] for each in batch["errors"]}
    assert codes == {
        "/recipients/2": "CONTACT_OPTED_OUT",
        "/recipients/3": "DUPLICATE_RECIPIENT",
        "/recipients/4/to": "PHONE_INVALID",
    }


async def test_an_id_of_brazil_has_the_price_of_brazil(mail: Any) -> None:
    async def price(to: str) -> int:
        return int((await mail.send(to=to))["billing"]["coins"])

    assert await price(USER) == await price(PHONE) < await price("US.15")
