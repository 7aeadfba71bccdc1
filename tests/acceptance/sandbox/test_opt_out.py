"""A person opts out by a word, is answered once, and the answer is read (C28.3)."""

from typing import Any

from tests.acceptance.sandbox.customer import SEEN_WITHIN, Customer, phone
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

    await until(answered, SEEN_WITHIN, "the answer is read")
