"""Messages of people: with a session they carry who sent them (C15.2.5)."""

from typing import Any

from tests.http.people import person, session


async def test_what_a_person_sends_carries_account_and_name(mail: Any) -> None:
    account = await person(mail.api, "operator", name="Ana \x1f Souza")
    token = await session(mail.api, account)

    created = await mail.api.post("/messages", mail.body(), token=token)

    stamped = {"sentByAccountId": account.id, "sentByName": "Ana \x1f Souza"}
    assert created.status == 201
    assert {name: created.body[name] for name in stamped} == stamped
    read = await mail.api.get(f"/messages/{created.body['id']}")
    assert {name: read.body[name] for name in stamped} == stamped


async def test_what_a_key_sends_carries_nobody(mail: Any) -> None:
    sent = await mail.send()
    assert not {"sentByAccountId", "sentByName"} & sent.keys()
    assert not {"sentByAccountId", "sentByName"} & (await mail.api.get(f"/messages/{sent['id']}")).body.keys()


async def test_a_list_finds_what_one_person_sent(mail: Any) -> None:
    people = [await person(mail.api, "operator") for _ in range(2)]
    ids = [
        (await mail.api.post("/messages", mail.body(), token=await session(mail.api, each))).body["id"]
        for each in (*people, people[0])
    ]
    await mail.send()

    found = await mail.api.get(f"/messages?sentByAccountId={people[0].id}")

    assert [message["id"] for message in found.body["items"]] == [ids[2], ids[0]]
