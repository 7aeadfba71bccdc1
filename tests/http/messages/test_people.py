"""Messages of people: with a session they carry who sent them (C15.2.5), and what came in is read (C15.4)."""

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


async def test_every_message_of_a_persons_batch_carries_them_and_none_of_a_keys(mail: Any) -> None:
    account = await person(mail.api, "operator", name="Ana \x1f Souza")
    recipients = [{"to": f"+4915{number:09}"} for number in range(1_001)]  # more than one block
    batch = mail.body(to=..., recipients=recipients)
    by_person = await mail.api.post("/messages/bulk", batch, token=await session(mail.api, account))
    by_key = await mail.api.post("/messages/bulk", batch)
    for made in (by_person, by_key):
        assert made.status == 202, made.body
        assert await mail.maker.make_next((mail.organization_id, "test", made.body["id"])) == 0

    rows = await mail.api.database.fetch(
        "select batch_id, sent_by_account_id, sent_by_name, count(*) from messages group by 1, 2, 3 order by 1"
    )

    assert [tuple(row) for row in rows] == [
        (by_person.body["id"], account.id, "Ana \x1f Souza", 1_001),
        (by_key.body["id"], None, None, 1_001),
    ]


async def test_what_a_person_sends_again_carries_that_person(mail: Any) -> None:
    first, second = [await person(mail.api, "operator", name=name) for name in ("Ana", "Bia")]
    sent = await mail.api.post("/messages", mail.body(), token=await session(mail.api, first))
    await mail.set_status(sent.body["id"], "failed")

    again = await mail.api.post(f"/messages/{sent.body['id']}/reprocess", token=await session(mail.api, second))

    assert again.status == 201
    assert (again.body["sentByAccountId"], again.body["sentByName"]) == (second.id, "Bia")
    old = (await mail.api.get(f"/messages/{sent.body['id']}")).body
    assert (old["sentByAccountId"], old["replacedBy"]) == (first.id, again.body["id"])


async def test_what_came_in_is_read_when_a_person_opens_it_and_only_then(mail: Any) -> None:
    body = {"numberId": mail.number_id, "from": "+5511987654321", "text": "hello"}
    path = "/messages/" + (await mail.api.post("/v2/sandbox/inbound", body)).body["messageId"]
    token = await session(mail.api, "analyst")
    assert (await mail.api.get("/messages?direction=inbound", token=token)).body["items"][0]["status"] == "delivered"
    by_key = await mail.api.get(path)
    assert (by_key.body["status"], by_key.body.get("readAt")) == ("delivered", None)
    assert (await mail.api.get(path, token=await session(mail.api, organization=1))).status == 404
    assert (await mail.api.get(path, token=await session(mail.api, env="live"))).status == 404
    assert (await mail.api.get(path)).body["status"] == "delivered"

    opened = await mail.api.get(path, token=token)

    mail.api.clock.shift(60)
    assert opened.body["status"] == "read"
    assert (await mail.api.get(path, token=token)).body == opened.body
    assert (await mail.api.get(path)).body == opened.body | {"to": "+5511987654321"}


async def test_what_went_out_is_not_read_by_its_sender(mail: Any) -> None:
    sent = await mail.send()
    await mail.set_status(sent["id"], "delivered")
    assert (await mail.api.get(f"/messages/{sent['id']}", token=await session(mail.api))).body["status"] == "delivered"
