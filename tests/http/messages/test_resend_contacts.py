"""Messages for contacts that are sent again: the copies are the contact's, and its consent is asked anew (C15.4)."""

from typing import Any

from tests.http.messages.resending import (
    copies,
    failed,
    hash_of,
    many_failed,
    resend,
    second_number,
    second_template,
)


async def contact(mail: Any, phone: str = "+5511987654321") -> str:
    return str((await mail.api.post("/contacts", {"phone": phone})).body["id"])


async def test_copies_keep_their_contact(mail: Any) -> None:
    ana = await contact(mail)
    named, unnamed = await failed(mail, contactId=ana), await failed(mail, to="+5511987654322")
    made = await copies(mail, await resend(mail, {"messageIds": [named, unnamed]}))
    assert [new.get("contactId") for new in made] == [ana, None]
    listed = (await mail.api.get(f"/messages?contactId={ana}")).body["items"]
    assert [each["id"] for each in listed] == [made[0]["id"], named]


async def test_what_was_for_a_contact_that_is_gone_is_skipped_before_it_is_erased(mail: Any) -> None:
    ana = await contact(mail)
    gone = await failed(mail, contactId=ana)
    await mail.api.database.execute("delete from contacts where id = $1", ana)
    answer = await resend(mail, {"messageIds": [gone, await failed(mail)]})
    assert (answer.body["matched"], answer.body["skipped"]) == (1, {"RECIPIENT_MISSING": 1})


async def test_of_a_mixed_resend_each_is_asked_for_what_it_needs_when_its_block_is_built(mail: Any) -> None:
    """A block of templates; then texts of two numbers, marketing, and a contact that is gone."""
    await many_failed(mail, 1_000)
    phones = [f"+551198765433{n}" for n in range(6)]
    people = [await contact(mail, phone) for phone in phones]
    number_id = await second_number(mail)
    news = await second_template(mail, mail.number_id, name="news", category="marketing")
    text = {"type": "text", "payload": {"text": {"body": "ho"}}, "templateId": ..., "templateVars": ...}
    for sender, phone in ((mail.number_id, phones[0]), (number_id, phones[1]), (number_id, phones[2])):
        await mail.api.database.execute(
            "insert into chat_windows values ($1, $2, $3, $4)",
            mail.organization_id, sender, hash_of(mail, phone), mail.api.clock.now(),
        )  # fmt: skip
    own: list[dict[str, Any]] = [
        text, {**text, "numberId": number_id}, {**text, "numberId": number_id}, {"templateId": news}, {}, {},
    ]  # fmt: skip
    for person, phone, fields in zip(people, phones, own, strict=True):
        await failed(mail, to=phone, contactId=person, campaignId="spring", **fields)
    answer = await resend(mail, {"filter": {"campaignId": "spring"}})
    assert (answer.body["matched"], answer.body["batch"]["totals"]["accepted"]) == (1_006, 1_000)

    # Before the last block is made, one window closes, one person refuses, and one contact is gone.
    database, batch_id = mail.api.database, answer.body["batch"]["id"]
    await database.execute("delete from chat_windows where recipient_hash = $1", hash_of(mail, phones[2]))
    await database.execute("update contacts set opt_in_status = 'denied' where id = any($1)", [people[3], people[4]])
    await database.execute("delete from contacts where id = $1", people[5])
    assert await mail.maker.make_next((mail.organization_id, "test", batch_id)) == 0
    made = await database.fetch(
        "select contact_id, sender_id from messages where batch_id = $1 and contact_id is not null order by id",
        batch_id,
    )
    assert [tuple(row) for row in made] == [
        (people[0], mail.number_id), (people[1], number_id), (people[4], mail.number_id),
    ]  # fmt: skip
    reasons = await database.fetchval("select skipped_reasons from batches where id = $1", batch_id)
    assert reasons == {"WINDOW_CLOSED": 1, "CONTACT_OPTED_OUT": 1, "REFERENCE_NOT_FOUND": 1}
