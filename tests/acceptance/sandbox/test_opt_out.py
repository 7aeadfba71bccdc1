"""A person opts out by a word, is answered once, and the answer is read (C28.3)."""

from typing import Any

from tests.acceptance.sandbox.customer import Customer, phone
from tests.waiting import until


async def test_whoever_writes_stop_is_answered_and_refuses(newcomer: Any) -> None:
    _, customer = await newcomer()
    me: Customer = customer
    sender = phone()
    await me.api.call("PATCH", "/v2/organization", {"optOutReply": "You will receive no more messages."})

    for text in ("Stop!", "stop"):
        said = {"numberId": me.number_id, "from": sender, "text": text}
        came = await me.api.call("POST", "/v2/sandbox/inbound", said)

    contact_id = (await me.read({"id": came["messageId"]}))["contactId"]
    contact = await me.api.call("GET", f"/contacts/{contact_id}")
    assert (contact["optIn"]["status"], contact["optIn"]["source"]) == ("denied", "inbound_keyword")

    async def answered() -> bool:
        found = (await me.api.call("GET", f"/messages?contactId={contact_id}&direction=outbound"))["items"]
        return [each["status"] for each in found] == ["read"]

    await until(answered, "the answer is read")


async def test_a_person_without_a_phone_is_answered_and_opts_out(newcomer: Any) -> None:
    _, customer = await newcomer()
    me: Customer = customer
    user = f"BR.{phone()[1:-4]}9008"  # who answers SAIR
    sent = await me.reaches(await me.send(user), "delivered")
    assert sent["to"] == user

    async def refused() -> bool:
        found = await me.api.call("POST", "/contacts/opt-out", {"chatappUserId": user})
        return bool(found["alreadyOptedOut"])

    async def came() -> bool:
        found = (await me.api.call("GET", f"/messages?phone={user}&direction=inbound"))["items"]
        return [(each["to"], "contactId" in each) for each in found] == [(user, False)]

    await until(came, "the answer is there")
    assert await refused()
