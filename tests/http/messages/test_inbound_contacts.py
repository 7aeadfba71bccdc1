"""People who write become contacts, opt out and in by keywords, and are answered once a day (C28)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from recado.domain.core.errors import Unavailable
from recado.services.messages.acceptance import Acceptance
from recado.storage.contacts import opt_out_replies

PHONE = "+5511987654321"
REPLY = "Você não receberá mais mensagens."


async def write(mail: Any, text: str, sender: str = PHONE) -> str:
    """A person writes; the id of the message. A moment passes before it."""
    mail.api.clock.shift(1)
    body = {"numberId": mail.number_id, "from": sender, "text": text}
    answer = await mail.api.post("/v2/sandbox/inbound", body)
    assert answer.status == 202, answer.body
    return str(answer.body["messageId"])


async def contact_of(mail: Any, phone: str = PHONE) -> dict[str, Any]:
    found = (await mail.api.get(f"/contacts?q={phone[-6:]}")).body["items"]
    assert len(found) == 1
    contact: dict[str, Any] = (await mail.api.get(f"/contacts/{found[0]['id']}")).body
    return contact


async def answer_with(mail: Any, reply: str) -> None:
    await mail.api.database.execute(
        "update organizations set opt_out_reply = $2 where id = $1", mail.organization_id, reply
    )
    mail.api.directories.organizations.clear()


async def replies(mail: Any) -> list[dict[str, Any]]:
    await mail.replies.work()
    items: list[dict[str, Any]] = (await mail.api.get("/messages?direction=outbound&type=text")).body["items"]
    return items


async def owed(mail: Any) -> int:
    """How many answers are still to be given."""
    count: int = await mail.api.database.fetchval("select count(*) from opt_out_replies")
    return count


async def test_whoever_writes_is_a_contact_whose_messages_are_found(mail: Any) -> None:
    first = await write(mail, "hello")
    contact = await contact_of(mail)
    assert (contact["source"], contact["optIn"]["status"], contact["phone"]) == ("webhook", "unknown", PHONE)
    assert (await mail.api.get(f"/messages/{first}")).body["contactId"] == contact["id"]
    second = await write(mail, "hello again")
    listed = (await mail.api.get(f"/messages?contactId={contact['id']}")).body["items"]
    assert [each["id"] for each in listed] == [second, first]
    later = await contact_of(mail)
    assert later["lastInteractionAt"] > contact["lastInteractionAt"]
    assert later["updatedAt"] == contact["updatedAt"]


async def test_a_keyword_opts_out_and_another_in_again(mail: Any) -> None:
    await write(mail, " Parar! ")
    refused = (await contact_of(mail))["optIn"]
    assert (refused["status"], refused["source"]) == ("denied", "inbound_keyword")
    assert refused["revokedReason"] == "chatapp: parar"
    await write(mail, "Quero receber")
    contact = await contact_of(mail)
    assert contact["optIn"]["status"] == "granted"
    history = (await mail.api.get(f"/contacts/{contact['id']}/consents")).body["items"]
    assert [(each["to"], each["source"]) for each in history] == [
        ("granted", "inbound_keyword"),
        ("denied", "inbound_keyword"),
    ]


async def test_an_operators_refusal_is_not_undone_by_a_keyword(mail: Any) -> None:
    await write(mail, "hello")
    mail.api.clock.shift(1)
    assert (await mail.api.post("/contacts/opt-out", {"phone": PHONE, "source": "desk"})).status == 200
    await write(mail, "start")
    assert (await contact_of(mail))["optIn"]["status"] == "denied"


async def patch(mail: Any, contact: Any, **fields: Any) -> Any:
    return await mail.api.patch(f"/contacts/{contact['id']}", {"optIn": {"status": "denied", **fields}})


async def opt_out(mail: Any, **fields: Any) -> Any:
    return await mail.api.post("/contacts/opt-out", fields)


REPEATS: list[Callable[[Any, Any], Awaitable[Any]]] = [
    lambda mail, contact: patch(mail, contact, source="call centre"),
    lambda mail, contact: patch(mail, contact),
    lambda mail, contact: patch(mail, contact, source="letter", revokedAt="2020-01-01T00:00:00Z"),
    lambda mail, contact: opt_out(mail, phone=PHONE),
    lambda mail, contact: opt_out(mail, contactId=contact["id"], source="call centre"),
    lambda mail, contact: opt_out(mail, phone=PHONE, at="2020-01-01T00:00:00Z"),
]


@pytest.mark.parametrize("refuse_again", REPEATS)
async def test_a_keyword_undoes_no_refusal_that_an_operator_repeated(
    mail: Any, refuse_again: Callable[[Any, Any], Awaitable[Any]]
) -> None:
    await write(mail, "sair")
    contact = await contact_of(mail)
    await mail.api.post("/webhooks", {"url": "https://hooks.example.com/", "events": ["*"]})
    mail.api.clock.shift(1)
    assert (await refuse_again(mail, contact)).status == 200
    assert (await contact_of(mail))["optIn"] == contact["optIn"]
    assert await mail.api.database.fetchval("select count(*) from events where type like 'contact.%'") == 0
    await write(mail, "sair")  # of the person, who may not take back what the operator said
    await write(mail, "voltar")
    assert (await contact_of(mail))["optIn"]["status"] == "denied"


async def test_a_stranger_whom_an_operator_refused_after_the_provider_is_not_let_in_by_a_keyword(mail: Any) -> None:
    for source in ("provider", "call centre"):
        mail.api.clock.shift(1)
        assert (await opt_out(mail, phone=PHONE, source=source)).status == 200
    await write(mail, "voltar")
    assert (await contact_of(mail))["optIn"]["status"] == "denied"


async def test_a_keyword_lets_nobody_in_whose_address_an_operator_refused(mail: Any) -> None:
    await mail.api.post("/contacts", {"phone": PHONE, "email": "ana@example.com"})
    mail.api.clock.shift(1)
    other = (await mail.api.post("/contacts", {"phone": "+5511987654399", "email": "ana@example.com"})).body
    assert (await opt_out(mail, contactId=other["id"], source="call centre")).status == 200
    await write(mail, "sair")
    await write(mail, "voltar")
    assert (await contact_of(mail))["optIn"]["status"] == "denied"


async def test_after_a_consent_that_undid_the_operators_refusal_keywords_work_again(mail: Any) -> None:
    await write(mail, "sair")
    contact = await contact_of(mail)
    mail.api.clock.shift(1)
    await patch(mail, contact, source="call centre")
    mail.api.clock.shift(1)
    assert (await patch(mail, contact, status="granted", source="shop")).status == 200
    await write(mail, "sair")
    await write(mail, "voltar")
    assert (await contact_of(mail))["optIn"]["status"] == "granted"


async def test_whoever_opts_out_is_answered_once_a_day(mail: Any) -> None:
    await answer_with(mail, REPLY)
    for text in ("stop", "sair", "stop"):
        await write(mail, text)
    (sent,) = await replies(mail)
    assert (sent["to"], sent["payload"], sent["status"]) == (PHONE, {"text": {"body": REPLY}}, "queued")
    assert sent["contactId"] == (await contact_of(mail))["id"]
    mail.api.clock.shift(86_400)
    await write(mail, "stop")
    assert len(await replies(mail)) == 2


async def test_whoever_opts_out_many_times_at_once_is_answered_once(mail: Any) -> None:
    await answer_with(mail, REPLY)
    await asyncio.gather(*[write(mail, "stop") for _ in range(6)])
    assert len(await replies(mail)) == 1
    assert (await contact_of(mail))["optIn"]["status"] == "denied"


async def test_an_answer_outlives_the_end_of_the_program(mail: Any) -> None:
    await answer_with(mail, REPLY)
    await mail.replies.stop()
    await write(mail, "stop")  # the program ends here: nobody who was told of the commit does anything about it
    assert (await mail.stored(), await owed(mail)) == (1, 1)
    await mail.replies.start()
    (sent,) = await replies(mail)
    assert (sent["to"], await owed(mail)) == (PHONE, 0)


async def test_an_answer_that_was_given_when_the_program_ended_is_not_given_again(
    mail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await answer_with(mail, REPLY)
    await mail.replies.stop()
    await write(mail, "stop")

    async def ends(*_: Any) -> None:
        raise ConnectionResetError

    with monkeypatch.context() as between_the_two_commits:
        between_the_two_commits.setattr(opt_out_replies, "settle", ends)
        with pytest.raises(ConnectionResetError):
            await mail.replies.work()
    assert (await mail.stored(), await owed(mail)) == (2, 1)
    mail.api.clock.shift(3_600)
    assert len(await replies(mail)) == 1
    assert await owed(mail) == 0


async def test_an_answer_that_cannot_be_taken_now_is_given_later(mail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    await answer_with(mail, REPLY)
    await mail.replies.stop()
    await write(mail, "stop")
    await write(mail, "sair", "+5511987654322")

    async def busy(*_: Any) -> None:
        raise Unavailable

    with monkeypatch.context() as overloaded:
        overloaded.setattr(Acceptance, "accept", busy)
        assert await replies(mail) == []
    assert await owed(mail) == 2
    assert len(await replies(mail)) == 2


async def test_whoever_is_deleted_before_the_answer_gets_none(mail: Any) -> None:
    await answer_with(mail, REPLY)
    await mail.replies.stop()
    await write(mail, "stop")
    assert (await mail.api.delete(f"/contacts/{(await contact_of(mail))['id']}")).status == 204
    assert await replies(mail) == []
    assert await owed(mail) == 0


async def test_a_suspended_organization_answers_nobody(mail: Any) -> None:
    await answer_with(mail, REPLY)
    await mail.replies.stop()
    await write(mail, "stop")
    await mail.api.database.execute("update organizations set status = 'suspended'")
    mail.api.directories.organizations.clear()
    assert await replies(mail) == []
    assert await owed(mail) == 0


async def test_nobody_is_answered_without_words_or_to_other_texts(mail: Any) -> None:
    await write(mail, "stop")
    await answer_with(mail, REPLY)
    await write(mail, "hello")
    await write(mail, "start")
    assert await replies(mail) == []


async def test_an_answer_that_cannot_be_sent_is_left_out(mail: Any) -> None:
    await answer_with(mail, REPLY)
    await mail.api.database.execute("update numbers set status = 'disconnected'")
    mail.api.directories.numbers.clear()
    await write(mail, "stop")
    assert await replies(mail) == []
    assert (await contact_of(mail))["optIn"]["status"] == "denied"


async def test_what_waits_is_withdrawn_and_gives_its_price_back(mail: Any) -> None:
    marketing = await mail.send()
    await mail.api.database.execute(
        "update dispatch d set consent_hash = m.recipient_hash from messages m where m.id = d.id"
    )
    held = "select held_coins from wallets w where env = 'test' and organization_id = $1"
    assert await mail.api.database.fetchval(held, mail.organization_id) > 0
    await write(mail, "stop")
    failed = (await mail.api.get(f"/messages/{marketing['id']}")).body
    assert (failed["status"], failed["lastError"].partition(":")[0]) == ("failed", "opted_out")
    assert await mail.api.database.fetchval(held, mail.organization_id) == 0
