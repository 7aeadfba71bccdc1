"""POST /messages/{id}/reprocess: a new message in the place of one that failed or was archived, once (C15.4)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.causes import FAILED_AS

from recado.domain.core.retention import CONTENT_MONTHS, months_before
from recado.domain.senders.number import NumberStatus

MASKED = "+55*******4321"


async def failed(mail: Any, last_error: str = "expired: too late", **changes: Any) -> dict[str, Any]:
    """A message that failed."""
    sent: dict[str, Any] = await mail.send(**changes)
    await mail.set_status(sent["id"], "failed")
    await mail.api.database.execute(
        f"update messages set {FAILED_AS}, failed_at = now(), attempts = 3 where id = $1", sent["id"], last_error
    )
    return sent


async def reprocess(mail: Any, message_id: str, body: Any = None, **how: Any) -> Any:
    return await mail.api.post(f"/messages/{message_id}/reprocess", body, **how)


async def test_a_failed_message_is_sent_again_as_a_new_one(mail: Any) -> None:
    old = await failed(mail, campaignId="spring", metadata={"order": "7"}, priority="bulk")
    answer = await reprocess(mail, old["id"])
    assert answer.status == 201
    new = answer.body
    assert new["id"] != old["id"]
    assert (new["status"], new["attempts"], new["replayed"], new["reprocessed"]) == ("queued", 0, False, False)
    same = ("to", "type", "numberId", "templateId", "templateVars", "campaignId", "metadata", "priority")
    assert {name: new[name] for name in same} == {name: old[name] for name in same}
    shown = (await mail.api.get(f"/messages/{old['id']}")).body
    assert (shown["status"], shown["reprocessed"], shown["replacedBy"]) == ("failed", True, new["id"])
    assert (shown["originalError"], shown["lastError"]) == ("expired: too late", f"replaced by {new['id']}")
    assert await mail.api.database.fetchval("select count(*) from dispatch where id = $1", new["id"]) == 1


async def test_an_archived_message_is_sent_again_at_once_although_it_had_a_schedule(mail: Any) -> None:
    old = await mail.send(scheduledAt=(mail.api.clock.now() + timedelta(days=1)).isoformat())
    await mail.api.post(f"/messages/{old['id']}/archive")
    answer = await reprocess(mail, old["id"], {})
    assert answer.status == 201
    assert "scheduledAt" not in answer.body
    shown = (await mail.api.get(f"/messages/{old['id']}")).body
    assert (shown["status"], shown["originalError"]) == ("archived", "withdrawn: archived before it was sent")


async def test_its_batch_goes_with_it(mail: Any) -> None:
    old, batch_id = await failed(mail), "btc_" + "1" * 21
    await mail.api.database.execute("update messages set batch_id = $2 where id = $1", old["id"], batch_id)
    new = (await reprocess(mail, old["id"])).body
    assert new["batchId"] == batch_id
    assert await mail.api.database.fetchval("select owner from dispatch where id = $1", new["id"]) == batch_id


async def test_it_is_replaced_once(mail: Any) -> None:
    old = await failed(mail)
    new = (await reprocess(mail, old["id"])).body
    again = await reprocess(mail, old["id"])
    assert (again.status, again.code, again.body["meta"]) == (409, "ALREADY_REPLACED", {"replacedBy": new["id"]})
    assert await mail.stored() == 2


async def test_of_many_at_the_same_time_one_wins(mail: Any) -> None:
    old = await failed(mail)
    answers = await asyncio.gather(*(reprocess(mail, old["id"]) for _ in range(12)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 11
    assert {answer.code for answer in answers if answer.status == 409} == {"ALREADY_REPLACED"}
    assert await mail.stored() == 2
    assert await mail.api.database.fetchval("select count(*) from audit where action = 'message.reprocess'") == 1


async def test_many_at_the_same_time_under_one_key_get_one_message(mail: Any) -> None:
    old = await failed(mail)
    key = {"Idempotency-Key": "again"}
    answers = await asyncio.gather(*(reprocess(mail, old["id"], headers=key) for _ in range(12)))
    assert {answer.status for answer in answers} == {201}
    assert len({answer.body["id"] for answer in answers}) == 1
    assert sorted(answer.body["replayed"] for answer in answers) == [False] + [True] * 11


async def test_a_repeat_shows_the_new_message_as_it_is_now(mail: Any) -> None:
    old = await failed(mail)
    key = {"Idempotency-Key": "again"}
    new = (await reprocess(mail, old["id"], headers=key)).body
    await mail.set_status(new["id"], "sent")
    again = await reprocess(mail, old["id"], headers=key, token=await mail.api.key("messages:send"))
    assert (again.status, again.body["id"], again.body["status"]) == (201, new["id"], "sent")
    assert (again.body["replayed"], again.body["to"]) == (True, MASKED)
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_what_did_not_fail_is_left_alone(mail: Any) -> None:
    sent = await mail.send()
    for status in ("queued", "sending", "sent", "delivered", "read"):
        await mail.set_status(sent["id"], status)
        refused = await reprocess(mail, sent["id"])
        assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": status})
    inbound = await mail.api.post("/v2/sandbox/inbound", {"numberId": mail.number_id, "from": sent["to"], "text": "hi"})
    assert (await reprocess(mail, inbound.body["messageId"])).code == "INVALID_STATE"


async def test_what_has_lost_its_content_is_not_sent_again(mail: Any) -> None:
    kept_from = months_before(mail.api.clock.now(), CONTENT_MONTHS)
    old = await mail.age((await failed(mail))["id"], kept_from - timedelta(minutes=1))
    refused = await reprocess(mail, old)
    assert (refused.status, refused.code, refused.body["meta"]) == (409, "INVALID_STATE", {"status": "failed"})
    assert refused.body["detail"] == "The content of a message is kept for 12 months: this one has none any more."
    younger = await mail.age((await failed(mail))["id"], kept_from + timedelta(minutes=1))
    assert (await reprocess(mail, younger)).status == 201


async def test_what_may_have_left_is_sent_again_only_when_the_caller_says_so(mail: Any) -> None:
    old = await failed(mail, "outcome_unknown: no report came within 24 hours")
    refused = await reprocess(mail, old["id"])
    assert (refused.status, refused.code) == (409, "INVALID_STATE")
    assert refused.body["meta"] == {"status": "failed", "uncertain": True}
    assert (await reprocess(mail, old["id"], {"includeUncertain": True})).status == 201
    assert (await mail.api.get(f"/messages/{old['id']}")).body["originalError"].startswith("outcome_unknown:")


async def test_every_rule_of_a_new_message_holds(mail: Any) -> None:
    old = await failed(mail)
    await mail.api.database.execute("update numbers set status = $1", NumberStatus.DISCONNECTED.value)
    mail.api.directories.numbers.clear()
    refused = await reprocess(mail, old["id"])
    assert (refused.status, refused.code) == (422, "NUMBER_UNAVAILABLE")
    shown = (await mail.api.get(f"/messages/{old['id']}")).body
    assert (shown["reprocessed"], "replacedBy" in shown) == (False, False)
    assert await mail.stored() == 1


async def test_a_free_form_message_needs_the_window_again(mail: Any) -> None:
    await mail.api.post("/v2/sandbox/inbound", {"numberId": mail.number_id, "from": "+5511987654321", "text": "hi"})
    old = await failed(mail, type="text", payload={"text": {"body": "hi"}}, templateId=..., templateVars=...)
    await mail.api.database.execute("delete from chat_windows")
    refused = await reprocess(mail, old["id"])
    assert (refused.status, refused.code) == (422, "WINDOW_CLOSED")
    assert not refused.body.get("errors")  # the body has no such field


async def test_a_repeat_of_the_first_request_does_not_send_a_third(mail: Any) -> None:
    key = {"Idempotency-Key": "first"}
    old = (await mail.api.post("/messages", mail.body(), headers=key)).body
    await mail.set_status(old["id"], "failed")
    await mail.api.database.execute("update messages set last_error = 'expired: too late' where id = $1", old["id"])
    new = (await reprocess(mail, old["id"])).body
    again = await mail.api.post("/messages", mail.body(), headers=key)
    assert (again.status, again.body["id"], again.body["replacedBy"]) == (201, old["id"], new["id"])
    assert await mail.stored() == 2


@pytest.mark.parametrize(
    ("how", "status"),
    [({"organization": 1}, 404), ({"env": "live"}, 404), ({"token": ""}, 401)],
)
async def test_only_its_own_organization_and_environment_reach_it(mail: Any, how: dict[str, Any], status: int) -> None:
    old = await failed(mail)
    assert (await reprocess(mail, old["id"], **how)).status == status


async def test_it_stands_in_the_audit(mail: Any) -> None:
    old = await failed(mail)
    new = (await reprocess(mail, old["id"])).body
    entry = await mail.api.database.fetchrow("select * from audit where action = 'message.reprocess'")
    assert (entry["target_id"], entry["actor_type"]) == (old["id"], "key")
    assert entry["details"] == {"status": "failed", "replacedBy": new["id"]}
