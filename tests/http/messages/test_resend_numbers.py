"""Who sends what is sent again: a number that is named, or each message's own, as it is now (C15.4)."""

from typing import Any

from tests.http.messages.resending import copies, failed, hash_of, open_window, resend, second_number, second_template

from recado.domain.senders.number import NumberStatus
from recado.domain.templates.template import TemplateStatus


async def test_a_new_number_sends_its_template_of_the_same_name(mail: Any) -> None:
    old = await failed(mail)
    number_id = await second_number(mail)
    none = await resend(mail, {"messageIds": [old], "numberId": number_id, "dryRun": True})
    assert none.body["skipped"] == {"REFERENCE_NOT_FOUND": 1}
    other = await second_template(mail, number_id, language="en-US")
    template_id = await second_template(mail, number_id)
    answer = await resend(mail, {"messageIds": [old], "numberId": number_id})
    [new] = await copies(mail, answer)
    assert (new["numberId"], new["templateId"]) == (number_id, template_id)
    assert template_id != other
    assert answer.body["batch"]["numberId"] == number_id


async def test_messages_of_several_numbers_and_campaigns_keep_their_own(mail: Any) -> None:
    number_id = await second_number(mail)
    template_id = await second_template(mail, number_id)
    here = await failed(mail, campaignId="spring")
    there = await failed(mail, numberId=number_id, templateId=template_id, campaignId="summer")
    free = await failed(mail)
    answer = await resend(mail, {"messageIds": [here, there, free]})
    assert answer.body["matched"] == 3
    assert {"numberId", "templateId", "campaignId"} & answer.body["batch"].keys() == set()
    made = await copies(mail, answer)
    assert [(new["numberId"], new["templateId"], new.get("campaignId")) for new in made] == [
        (mail.number_id, mail.template.id, "spring"),
        (number_id, template_id, "summer"),
        (mail.number_id, mail.template.id, None),
    ]
    queued = await mail.api.database.fetch("select sender_id, campaign_id from dispatch order by id")
    assert [tuple(row) for row in queued] == [(new["numberId"], new.get("campaignId")) for new in made]
    for name in ("spring", "summer"):
        assert (await mail.api.get(f"/v2/campaigns/{name}")).body["totals"]["queued"] == 1


async def test_numbers_templates_and_windows_are_looked_at_anew(mail: Any) -> None:
    number_id = await second_number(mail)
    away = await failed(mail, numberId=number_id, templateId=await second_template(mail, number_id))
    stopped = await failed(mail, templateId=await second_template(mail, mail.number_id, name="stopped"))
    changed = await failed(mail, templateId=await second_template(mail, mail.number_id, name="changed"))
    gone = await failed(mail, templateId=await second_template(mail, mail.number_id, name="gone"))
    database = mail.api.database
    await open_window(mail, "+5511987654321")
    closed = await failed(mail, type="text", payload={"text": {"body": "hi"}}, templateId=..., templateVars=...)
    await open_window(mail, "+5511987654322")
    text = {"type": "text", "payload": {"text": {"body": "ho"}}, "templateId": ..., "templateVars": ...}
    opened = await failed(mail, to="+5511987654322", **text)
    await database.execute("delete from chat_windows where recipient_hash = $1", hash_of(mail, "+5511987654321"))
    await database.execute("update numbers set status = $2 where id = $1", number_id, NumberStatus.PENDING.value)
    await database.execute("update templates set status = $1 where name = 'stopped'", TemplateStatus.PAUSED.value)
    components = [{"type": "BODY", "payload": {"text": "{{1}} and {{2}}"}}]
    await database.execute(
        "update templates set components = $1, revision = revision + 1 where name = 'changed'", components
    )
    await database.execute("update templates set deleted_at = now() where name = 'gone'")
    for directory in (mail.api.directories.numbers, mail.api.directories.templates):
        directory.clear()
    answer = await resend(mail, {"messageIds": [away, stopped, changed, gone, closed, opened]})
    assert answer.body["skipped"] == {
        "NUMBER_UNAVAILABLE": 1, "TEMPLATE_NOT_APPROVED": 1, "TEMPLATE_VARS_MISMATCH": 1, "REFERENCE_NOT_FOUND": 1,
        "WINDOW_CLOSED": 1,
    }  # fmt: skip
    [new] = await copies(mail, answer)
    assert (new["type"], new["payload"], new["to"]) == ("text", {"text": {"body": "ho"}}, "+5511987654322")
    [told] = [error["message"] for error in answer.body["batch"]["errors"] if error["code"] == "NUMBER_UNAVAILABLE"]
    assert told == (
        f"{away}: The number {number_id} is pending: the provider has not verified it yet; wait until it is available, "
        f"then POST /numbers/{number_id}/connect, or send from another number."
    )
