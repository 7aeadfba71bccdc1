"""What happens to messages when their contact opts out or is deleted (C12.5.3, C12.6)."""

import asyncio
import io
from typing import Any

import pytest
from tests.waiting import until_locked_out

from recado.domain.channels.policies import masked_recipient
from recado.domain.contacts.contact_import import ImportFormat, ImportOptions
from recado.services.imports.contact_imports import Draft
from recado.storage.audience import lists
from recado.storage.audience.lists import StaticList
from recado.storage.contacts import contact_erasures
from recado.storage.core.audit import AuditPrincipal

PHONE = "+5511987654321"
OTHER = "+5511987654322"


async def marketing(mail: Any, to: str = PHONE, contact_id: str | None = None) -> str:
    """A queued message that is subject to consent."""
    await category(mail, "marketing")
    sent = await mail.send(to=to)
    await category(mail, "utility")
    await mail.api.database.execute("update messages set contact_id = $2 where id = $1", sent["id"], contact_id)
    return str(sent["id"])


async def category(mail: Any, name: str) -> None:
    await mail.api.database.execute("update templates set category = $2 where id = $1", mail.template.id, name)
    mail.api.directories.templates.clear()


async def contact(mail: Any, **fields: Any) -> str:
    answer = await mail.api.post("/contacts", {"phone": PHONE, **fields})
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def message(mail: Any, message_id: str) -> Any:
    return await mail.api.database.fetchrow("select * from messages where id = $1", message_id)


async def held(mail: Any) -> int:
    query = "select held_coins from wallets where organization_id = $1 and env = 'test'"
    return int(await mail.api.database.fetchval(query, mail.organization_id))


@pytest.mark.parametrize("by", ["phone", "contactId", "patch", "create"])
async def test_a_refusal_fails_what_waits_and_releases_its_price(mail: Any, by: str) -> None:
    contact_id = None if by == "create" else await contact(mail)
    waiting, exempt, others = await marketing(mail), (await mail.send())["id"], await marketing(mail, OTHER)
    before = await held(mail)
    if by == "patch":
        await mail.api.patch(f"/contacts/{contact_id}", {"optIn": {"status": "denied"}})
    elif by == "create":
        await contact(mail, optIn={"status": "denied"})
    else:
        body = {"phone": PHONE} if by == "phone" else {"contactId": contact_id}
        assert (await mail.api.post("/contacts/opt-out", body)).body["messagesWithdrawn"] == 1
    withdrawn = await message(mail, waiting)
    assert (withdrawn["status"], withdrawn["last_error"]) == ("failed", "opted_out: the contact opted out")
    assert withdrawn["failed_at"] is not None
    assert [(await message(mail, each))["status"] for each in (exempt, others)] == ["queued", "queued"]
    assert await held(mail) == before - withdrawn["price_coins"]
    assert await mail.api.database.fetchval("select count(*) from dispatch") == 2


async def test_a_refusal_of_somebody_unknown_withdraws_too(mail: Any) -> None:
    waiting = await marketing(mail)
    answer = await mail.api.post("/contacts/opt-out", {"phone": PHONE})
    assert (answer.body["contactId"], answer.body["messagesWithdrawn"]) == (None, 1)
    assert (await message(mail, waiting))["status"] == "failed"


async def test_what_is_being_sent_is_left_to_its_sender(mail: Any) -> None:
    waiting = await marketing(mail)
    await mail.set_status(waiting, "sending")
    answer = await mail.api.post("/contacts/opt-out", {"phone": PHONE})
    assert answer.body["messagesWithdrawn"] == 0
    assert (await message(mail, waiting))["status"] == "sending"


async def test_messages_of_a_deleted_contact_are_withdrawn_masked_and_emptied(mail: Any) -> None:
    contact_id = await contact(mail)
    waiting, sent, others = await marketing(mail, contact_id=contact_id), await marketing(mail), await marketing(mail)
    await mail.set_status(sent, "delivered")
    await mail.api.database.execute("update messages set contact_id = $2 where id = $1", sent, contact_id)
    before = await held(mail)
    assert (await mail.api.delete(f"/contacts/{contact_id}")).status == 204
    await mail.people.erasure.work()
    for message_id, status in ((waiting, "archived"), (sent, "delivered")):
        row = await message(mail, message_id)
        assert (row["status"], row["contact_id"]) == (status, contact_id)
        assert (row["recipient"], row["payload"], row["template_vars"]) == ("+55*******4321", None, None)
        assert row["recipient_hash"] is None
        shown = (await mail.api.get(f"/messages/{message_id}")).body
        assert shown["to"] == "+55*******4321"
    assert (await message(mail, others))["recipient"] == PHONE
    assert await held(mail) < before
    mail.api.clock.shift(301)
    await mail.people.erasure.work()
    assert await mail.api.database.fetchval("select count(*) from contact_erasures") == 0


@pytest.mark.parametrize("action", ["force", "archive"])
async def test_a_repeated_action_shows_what_a_deletion_left_of_its_message(mail: Any, action: str) -> None:
    contact_id = await contact(mail)
    message_id = await marketing(mail, contact_id=contact_id)
    path, key = f"/messages/{message_id}/{action}", {"Idempotency-Key": "a"}
    first = await mail.api.post(path, headers=key)
    assert (first.status, first.body["to"], first.body["templateVars"]) == (200, PHONE, ["Ana"])
    assert (await mail.api.delete(f"/contacts/{contact_id}")).status == 204
    answers = "select string_agg(coalesce(convert_from(body, 'UTF8'), ''), '') from idempotency"
    assert await mail.api.database.fetchval(answers) == ""
    await mail.people.erasure.work()
    again = await mail.api.post(path, headers=key)
    assert (again.status, again.headers["Idempotency-Replayed"]) == (200, "true")
    assert again.body == (await mail.api.get(f"/messages/{message_id}")).body
    assert (again.body["status"], again.body["to"]) == ("archived", "+55*******4321")
    assert "templateVars" not in again.body


async def test_a_message_that_was_accepted_while_its_contact_was_deleted_does_not_leave(mail: Any) -> None:
    contact_id = await contact(mail)
    before = await held(mail)
    await mail.api.delete(f"/contacts/{contact_id}")
    await mail.people.erasure.work()
    late = await marketing(mail)
    await mail.api.database.execute("update messages set contact_id = $2 where id = $1", late, contact_id)
    mail.api.clock.shift(301)
    await mail.people.erasure.work()
    row = await message(mail, late)
    assert (row["status"], row["recipient"], row["payload"]) == ("archived", "+55*******4321", None)
    assert await held(mail) == before


async def test_a_message_on_its_way_keeps_its_recipient_until_it_is_settled(mail: Any) -> None:
    contact_id = await contact(mail)
    going = await marketing(mail, contact_id=contact_id)
    await mail.set_status(going, "sending")
    await mail.api.delete(f"/contacts/{contact_id}")
    await mail.people.erasure.work()
    assert (await message(mail, going))["recipient"] == PHONE
    await mail.set_status(going, "sent")
    await mail.people.erasure.work()
    assert (await message(mail, going))["recipient"] == PHONE  # it is not time yet
    mail.api.clock.shift(301)
    await mail.people.erasure.work()
    assert (await message(mail, going))["recipient"] == "+55*******4321"
    assert await mail.api.database.fetchval("select count(*) from contact_erasures") == 0


async def test_an_erasure_goes_on_block_by_block(mail: Any) -> None:
    contact_id = await contact(mail)
    sent = [await marketing(mail, contact_id=contact_id) for _ in range(5)]
    for each in sent:
        await mail.set_status(each, "read")
    database, now = mail.api.database, mail.api.clock.now()
    await contact_erasures.begin(database, (mail.organization_id, "test", contact_id), now, refused=False)
    (left,) = await contact_erasures.due(database, now, 10)
    done = []
    while left is not None:
        left = await contact_erasures.block(database, left, now, mask=masked_recipient, limit=2)
        done.append([(await message(mail, each))["recipient"] for each in sent].count("+55*******4321"))
    assert done == [2, 4, 5, 5]
    assert await contact_erasures.due(database, now, 10) == []


async def test_messages_of_a_deleted_contact_are_not_sent_again(mail: Any) -> None:
    contact_id = await contact(mail)
    failed = await marketing(mail, contact_id=contact_id)
    await mail.set_status(failed, "failed")
    await mail.api.delete(f"/contacts/{contact_id}")
    await mail.people.erasure.work()
    again = await mail.api.post(f"/messages/{failed}/reprocess")
    assert (again.status, again.code) == (422, "RECIPIENT_MISSING")
    resent = await mail.api.post("/messages/resend", {"messageIds": [failed], "dryRun": True})
    assert resent.body["skipped"] == {"RECIPIENT_MISSING": 1}


async def test_messages_of_a_batch_are_withdrawn_as_well(mail: Any) -> None:
    await category(mail, "marketing")
    shared = {name: value for name, value in mail.body().items() if name != "to"}
    made = await mail.api.post("/messages/bulk", {**shared, "recipients": [{"to": PHONE}, {"to": OTHER}]})
    assert made.status == 202, made.body
    answer = await mail.api.post("/contacts/opt-out", {"phone": PHONE})
    assert answer.body["messagesWithdrawn"] == 1
    rows = await mail.api.database.fetch("select recipient, status from messages where batch_id = $1", made.body["id"])
    assert dict(rows) == {PHONE: "failed", OTHER: "queued"}


@pytest.mark.parametrize("name", ["utility", "authentication"])
async def test_what_is_exempt_from_consent_still_leaves(mail: Any, name: str) -> None:
    await category(mail, name)
    sent = await mail.send()
    assert (await mail.api.post("/contacts/opt-out", {"phone": PHONE})).body["messagesWithdrawn"] == 0
    assert (await message(mail, sent["id"]))["status"] == "queued"


async def test_an_import_locks_the_wallet_of_what_it_withdraws_after_the_list_that_people_join(mail: Any) -> None:
    await contact(mail)
    waiting, before = await marketing(mail), await held(mail)
    database, where = mail.api.database, (mail.organization_id, "test")
    made = StaticList(
        organization_id=where[0], env="test", id="lst_" + "1" * 21, name="All", updated_at=mail.api.clock.now()
    )
    async with database.transaction() as connection:
        await lists.insert(connection, made)
    draft = Draft(*where, "imp_" + "1" * 21, ImportFormat.CSV, AuditPrincipal("key", "key_1"))
    table = io.BytesIO(f"phone,optIn.status\n{PHONE},denied".encode())

    async with database.transaction() as connection:
        await lists.get_locked(connection, *where, made.id)
        running = asyncio.ensure_future(
            mail.people.imports.accept(draft, table, lambda _: ImportOptions(list_id=made.id))
        )
        await until_locked_out(database)  # the import waits for its list
        free = "select id from wallets where organization_id = $1 and env = $2 for update skip locked"
        assert len(await connection.fetch(free, *where)) == 1
    assert (await running).updated == 1
    assert (await message(mail, waiting))["status"] == "failed"
    assert await held(mail) < before
