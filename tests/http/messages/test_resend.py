"""POST /messages/resend: failed messages are sent again as a batch of copies, each once (C15.4)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from recado.domain.ids import NUMBER, TEMPLATE
from recado.domain.number import NumberStatus
from recado.domain.phones import recipient_hash
from recado.domain.retention import CONTENT_MONTHS, months_before
from recado.domain.template import TemplateStatus
from recado.storage import replacements
from recado.storage.settlements import Failed

NOWHERE = "msg_000000000000000000000"


async def failed(mail: Any, last_error: str = "expired: too late", **changes: Any) -> str:
    """A message that failed; its id."""
    sent = await mail.send(**changes)
    now = mail.api.clock.now()
    await mail.sending.settle(Failed(mail.organization_id, "test", "chatapp", sent["id"], last_error, now, True))
    return str(sent["id"])


async def resend(mail: Any, body: dict[str, Any], **how: Any) -> Any:
    return await mail.api.post("/messages/resend", body, **how)


async def message(mail: Any, message_id: str) -> dict[str, Any]:
    found: dict[str, Any] = (await mail.api.get(f"/messages/{message_id}")).body
    return found


async def copies(mail: Any, answer: Any) -> list[dict[str, Any]]:
    """The messages of the batch that a resend made, in the order of their ids."""
    listed = (await mail.api.get(f"/messages?batchId={answer.body['batch']['id']}&limit=200")).body["items"]
    return sorted(listed, key=lambda item: str(item["id"]))


async def second_number(mail: Any) -> str:
    """Another connected number."""
    number_id = mail.api.ids.new(NUMBER)
    await mail.api.database.execute(
        "insert into numbers select (jsonb_populate_record(n, $2::jsonb)).* from numbers n where id = $1",
        mail.number_id,
        {"id": number_id, "phone_number_id": number_id},
    )
    return str(number_id)


async def second_template(mail: Any, number_id: str, **changes: Any) -> str:
    """A template like that of `mail`, on another number."""
    template_id = mail.api.ids.new(TEMPLATE)
    await mail.api.database.execute(
        "insert into templates select (jsonb_populate_record(t, $2::jsonb)).* from templates t where id = $1",
        mail.template.id,
        {"id": template_id, "number_id": number_id, **changes},
    )
    return str(template_id)


async def test_failed_messages_are_sent_again_as_copies(mail: Any) -> None:
    first = await failed(mail, campaignId="spring", metadata={"order": "7"}, templateVars=["Ana"])
    second = await failed(mail, to="+5511987654322", campaignId="spring", templateVars=["Bia"])
    answer = await resend(mail, {"messageIds": [first, second]})
    assert (answer.status, answer.body["matched"], answer.body["skipped"]) == (202, 2, {})
    batch = answer.body["batch"]
    assert (batch["status"], batch["totals"]["accepted"], batch["campaignId"]) == ("running", 2, "spring")
    assert (batch["numberId"], batch["templateId"]) == (mail.number_id, mail.template.id)
    made = await copies(mail, answer)
    for old_id, new in zip((first, second), made, strict=True):
        old = await message(mail, old_id)
        same = ("to", "type", "numberId", "templateId", "templateVars", "campaignId", "metadata")
        assert {name: new.get(name) for name in same} == {name: old.get(name) for name in same}
        assert (new["status"], new["attempts"], new["priority"], new["batchId"]) == ("queued", 0, "bulk", batch["id"])
        # Only one that was reprocessed by itself says so.
        assert (old["replacedBy"], old["reprocessed"], old["status"]) == (new["id"], False, "failed")
        assert (old["originalError"], old["lastError"]) == ("expired: too late", f"replaced by {new['id']}")
    queued = await mail.api.database.fetch("select id, owner, campaign_id from dispatch order by id")
    assert [tuple(row) for row in queued] == [(new["id"], batch["id"], "spring") for new in made]
    totals = (await mail.api.get("/v2/campaigns/spring")).body["totals"]
    assert (totals["accepted"], totals["queued"], totals["failed"]) == (4, 2, 2)


async def test_what_has_lost_its_content_is_skipped(mail: Any) -> None:
    kept_from = months_before(mail.api.clock.now(), CONTENT_MONTHS)
    old = await mail.age(await failed(mail), kept_from - timedelta(minutes=1))
    younger = await mail.age(await failed(mail), kept_from + timedelta(minutes=1))
    answer = await resend(mail, {"messageIds": [old, younger]})
    assert (answer.body["matched"], answer.body["skipped"]) == (1, {"INVALID_STATE": 1})
    assert "replacedBy" in await message(mail, younger)
    assert "replacedBy" not in await message(mail, old)


async def test_what_cannot_be_sent_again_is_skipped_with_its_reason(mail: Any) -> None:
    good, queued = await failed(mail), (await mail.send())["id"]
    unknown = await failed(mail, "outcome_unknown: no report came within 24 hours")
    replaced = await failed(mail)
    await mail.api.post(f"/messages/{replaced}/reprocess")
    inbound = (
        await mail.api.post("/v2/sandbox/inbound", {"numberId": mail.number_id, "from": "+5511987654399", "text": "hi"})
    ).body["messageId"]
    ids = [queued, good, NOWHERE, unknown, "msg_1", replaced, inbound, good]
    answer = await resend(mail, {"messageIds": ids})
    assert (answer.status, answer.body["matched"]) == (202, 1)
    assert answer.body["skipped"] == {
        "INVALID_STATE": 2, "NOT_FOUND": 2, "OUTCOME_UNKNOWN": 1, "ALREADY_REPLACED": 1,
    }  # fmt: skip
    batch = answer.body["batch"]
    assert (batch["totals"]["requested"], batch["totals"]["skipped"]) == (7, 6)
    assert {error["path"]: error["code"] for error in batch["errors"]} == {
        "/messageIds/0": "INVALID_STATE",
        "/messageIds/2": "NOT_FOUND",
        "/messageIds/3": "OUTCOME_UNKNOWN",
        "/messageIds/4": "NOT_FOUND",
        "/messageIds/5": "ALREADY_REPLACED",
        "/messageIds/6": "INVALID_STATE",
    }
    assert "replacedBy" not in await message(mail, unknown)


async def test_what_may_have_left_is_sent_again_when_the_caller_says_so(mail: Any) -> None:
    unknown = await failed(mail, "outcome_unknown: no report came within 24 hours")
    answer = await resend(mail, {"messageIds": [unknown], "includeUncertain": True})
    assert (answer.body["matched"], (await message(mail, unknown))["replacedBy"]) == (
        1,
        (await copies(mail, answer))[0]["id"],
    )


async def test_a_filter_finds_what_failed_of_a_campaign_or_a_batch(mail: Any) -> None:
    spring = [await failed(mail, campaignId="spring") for _ in range(3)]
    await mail.send(campaignId="spring")
    await failed(mail, campaignId="summer")
    answer = await resend(mail, {"filter": {"campaignId": "spring", "numberId": mail.number_id}})
    assert (answer.status, answer.body["matched"], answer.body["skipped"]) == (202, 3, {})
    made = await copies(mail, answer)
    assert [(await message(mail, old))["replacedBy"] for old in spring] == [new["id"] for new in made]

    for new in made[:2]:
        now = mail.api.clock.now()
        await mail.sending.settle(Failed(mail.organization_id, "test", "chatapp", new["id"], "expired: x", now, True))
    batch_id = answer.body["batch"]["id"]
    again = await resend(mail, {"filter": {"batchId": batch_id}})
    assert (again.body["matched"], again.body["batch"]["totals"]["accepted"]) == (2, 2)
    once_more = await resend(mail, {"filter": {"batchId": batch_id}})
    assert (once_more.status, once_more.body["matched"]) == (202, 0)
    assert (once_more.body["skipped"], once_more.body["batch"]["status"]) == ({"ALREADY_REPLACED": 2}, "failed")


async def test_a_filter_takes_a_period(mail: Any) -> None:
    await failed(mail, campaignId="spring")
    mail.api.clock.shift(3600)
    middle = (mail.api.clock.now() - timedelta(seconds=60)).isoformat()
    late = await failed(mail, campaignId="spring")
    early = await resend(mail, {"filter": {"campaignId": "spring", "to": middle}, "dryRun": True})
    assert early.body["matched"] == 1
    answer = await resend(mail, {"filter": {"campaignId": "spring", "from": middle}})
    assert (answer.body["matched"], "replacedBy" in await message(mail, late)) == (1, True)


async def test_a_dry_run_sends_nothing_and_names_the_price(mail: Any) -> None:
    ids = [await failed(mail), await failed(mail, to="+14155550100"), NOWHERE]
    before = await mail.stored(), await mail.api.database.fetchval("select count(*) from batches")
    answer = await resend(mail, {"messageIds": ids, "dryRun": True})
    assert (answer.status, answer.body["matched"], answer.body["skipped"]) == (200, 2, {"NOT_FOUND": 1})
    assert answer.body["estimatedCoins"] == 600 + 1_800  # a utility template, in Brazil and elsewhere
    assert (await mail.stored(), await mail.api.database.fetchval("select count(*) from batches")) == before
    assert "replacedBy" not in await message(mail, ids[0])
    sent = await resend(mail, {"messageIds": ids})
    assert sent.body["batch"]["heldCoins"] == answer.body["estimatedCoins"]


async def test_of_many_resends_at_once_each_message_is_copied_once(mail: Any) -> None:
    ids = [await failed(mail) for _ in range(10)]
    answers = await asyncio.gather(*(resend(mail, {"messageIds": ids}) for _ in range(6)))
    assert {answer.status for answer in answers} == {202}
    assert sum(answer.body["matched"] for answer in answers) == 10
    for answer in answers:
        assert answer.body["matched"] + sum(answer.body["skipped"].values()) == 10
        assert answer.body["batch"]["totals"]["accepted"] == answer.body["matched"]
    assert await mail.stored() == 20
    pointers = await mail.api.database.fetch("select replaced_by from messages where replaced_by is not null")
    assert len({row["replaced_by"] for row in pointers}) == 10
    held = await mail.api.database.fetchval("select held_coins from wallets where env = 'test' and held_coins > 0")
    assert held == 10 * 600


async def test_a_resend_and_a_reprocess_at_once_make_one_copy(mail: Any) -> None:
    old = await failed(mail)
    first, second = await asyncio.gather(
        resend(mail, {"messageIds": [old]}), mail.api.post(f"/messages/{old}/reprocess")
    )
    assert (first.body["matched"], second.status) in {(1, 409), (0, 201)}
    assert await mail.stored() == 2


async def test_a_repeat_under_the_same_key_shows_the_batch_as_it_is_now(mail: Any) -> None:
    ids, key = [await failed(mail), NOWHERE], {"Idempotency-Key": "again"}
    first = await resend(mail, {"messageIds": ids}, headers=key)
    again = await resend(mail, {"messageIds": ids}, headers=key)
    assert (again.status, again.body["matched"], again.body["skipped"]) == (202, 1, {"NOT_FOUND": 1})
    assert again.body["batch"]["id"] == first.body["batch"]["id"]
    assert again.headers["Idempotency-Replayed"] == "true"
    other = await resend(mail, {"messageIds": [NOWHERE]}, headers=key)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert await mail.stored() == 2


async def test_requests_at_once_under_one_key_make_one_batch(mail: Any) -> None:
    ids, key = [await failed(mail) for _ in range(3)], {"Idempotency-Key": "again"}
    answers = await asyncio.gather(*(resend(mail, {"messageIds": ids}, headers=key) for _ in range(8)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body["batch"]["id"] for answer in answers}) == 1
    assert await mail.stored() == 6
    assert await mail.api.database.fetchval("select count(*) from batches") == 1


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
    queued = await mail.api.database.fetch("select number_id, campaign_id from dispatch order by id")
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
    await database.execute("update numbers set status = $2 where id = $1", number_id, NumberStatus.DISCONNECTED.value)
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


async def many_failed(mail: Any, count: int) -> list[str]:
    """So many failed messages of the campaign `spring`, beside one that is queued."""
    await mail.send(campaignId="spring")
    rows = await mail.api.database.fetch(
        "insert into messages (organization_id, env, channel, id, direction, status, type, number_id, recipient,"
        " recipient_hash, class, force, template_id, template_vars, campaign_id, last_error, failed_at, updated_at)"
        " select organization_id, env, channel, left(id, 12) || lpad(n::text, 13, '0'), direction, 'failed', type,"
        " number_id, recipient, recipient_hash, class, force, template_id, template_vars, campaign_id, 'expired: late',"
        " now(), now() from messages, generate_series(1, $1) as s (n) returning id",
        count,
    )
    return [row["id"] for row in rows]


async def test_more_than_a_block_is_built_after_the_answer(mail: Any) -> None:
    await many_failed(mail, 2_500)
    answer = await resend(mail, {"filter": {"campaignId": "spring"}})
    batch = answer.body["batch"]
    assert (answer.body["matched"], batch["status"], batch["totals"]["accepted"]) == (2_500, "building", 1_000)
    key = (mail.organization_id, "test", batch["id"])
    assert [await mail.maker.make_next(key) for _ in range(2)] == [1, 0]
    database = mail.api.database
    assert await database.fetchval("select count(*) from messages where batch_id = $1", batch["id"]) == 2_500
    assert await database.fetchval("select count(*) from messages where replaced_by is not null") == 2_500
    assert (await mail.api.get("/v2/campaigns/spring")).body["totals"]["queued"] == 2_501


async def test_what_was_replaced_before_its_block_is_built_is_left_out(mail: Any) -> None:
    ids = await many_failed(mail, 1_002)
    batch_id = (await resend(mail, {"filter": {"campaignId": "spring"}})).body["batch"]["id"]
    assert (await mail.api.post(f"/messages/{ids[-1]}/reprocess")).status == 201
    assert await mail.maker.make_next((mail.organization_id, "test", batch_id)) == 0
    row = await mail.api.database.fetchrow(
        "select b.skipped, b.skipped_reasons, t.accepted from batches b join totals t on t.key = b.id where b.id = $1",
        batch_id,
    )
    assert tuple(row) == (1, {"ALREADY_REPLACED": 1}, 1_001)


async def test_a_resend_of_which_all_was_replaced_before_it_is_built_has_failed(
    mail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await many_failed(mail, 1_002)

    async def none_is_left(*_: Any) -> set[str]:
        return set()

    monkeypatch.setattr(replacements, "lock", none_is_left)
    batch_id = (await resend(mail, {"filter": {"campaignId": "spring"}})).body["batch"]["id"]
    key = (mail.organization_id, "test", batch_id)
    assert await mail.maker.make_next(key) == 0
    row = await mail.api.database.fetchrow(
        "select status, open, skipped, finished_at is not null as finished from batches where id = $1", batch_id
    )
    assert tuple(row) == ("failed", False, 1_002, True)


async def test_an_uncovered_resend_changes_nothing(mail: Any) -> None:
    ids = [await failed(mail) for _ in range(3)]
    await mail.api.database.execute("update wallets set balance_coins = 1799, held_coins = 0 where env = 'test'")
    answer = await resend(mail, {"messageIds": ids})
    assert (answer.status, answer.code) == (402, "PAYMENT_REQUIRED")
    assert answer.body["meta"] == {"requiredCoins": 1800, "availableCoins": 1799}
    assert await mail.stored() == 3
    assert "replacedBy" not in await message(mail, ids[0])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "VALIDATION_ERROR"),
        ({"messageIds": []}, "VALIDATION_ERROR"),
        ({"messageIds": [NOWHERE] * 1001}, "VALIDATION_ERROR"),
        ({"messageIds": [NOWHERE], "filter": {"campaignId": "a"}}, "VALIDATION_ERROR"),
        ({"filter": {}}, "VALIDATION_ERROR"),
        ({"filter": {"numberId": "num_1"}}, "VALIDATION_ERROR"),
        (
            {"filter": {"campaignId": "a", "from": "2026-01-02T00:00:00Z", "to": "2026-01-01T00:00:00Z"}},
            "VALIDATION_ERROR",
        ),
        ({"filter": {"campaignId": "a"}}, "EMPTY_AUDIENCE"),
        ({"filter": {"batchId": "btc_000000000000000000000"}}, "REFERENCE_NOT_FOUND"),
        ({"filter": {"campaignId": "a", "numberId": "num_1"}}, "REFERENCE_NOT_FOUND"),
        ({"messageIds": [NOWHERE], "numberId": "num_1"}, "REFERENCE_NOT_FOUND"),
    ],
)
async def test_a_bad_request_is_refused(mail: Any, body: dict[str, Any], code: str) -> None:
    answer = await resend(mail, body)
    assert (answer.status, answer.code) == (422, code)


async def test_a_resend_of_too_many_asks_for_less(mail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recado.actors.resend.MAX_RECIPIENTS", 2)
    for _ in range(3):
        await failed(mail, campaignId="spring")
    answer = await resend(mail, {"filter": {"campaignId": "spring"}})
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 2})


async def test_messages_of_others_are_not_found(mail: Any) -> None:
    old = await failed(mail, campaignId="spring")
    for how in ({"organization": 1}, {"env": "live"}):
        answer = await resend(mail, {"messageIds": [old], "dryRun": True}, **how)
        assert (answer.body["matched"], answer.body["skipped"]) == (0, {"NOT_FOUND": 1})
        assert (await resend(mail, {"filter": {"campaignId": "spring"}}, **how)).code == "EMPTY_AUDIENCE"


async def test_it_stands_in_the_audit(mail: Any) -> None:
    answer = await resend(mail, {"messageIds": [await failed(mail)]})
    entry = await mail.api.database.fetchrow("select * from audit where action = 'message.resend'")
    assert (entry["target_id"], entry["actor_type"]) == (answer.body["batch"]["id"], "key")
    assert entry["details"] == {"requested": 1, "includeUncertain": False}


def hash_of(mail: Any, phone: str) -> int:
    return recipient_hash(mail.organization_id, phone)


async def open_window(mail: Any, phone: str) -> None:
    await mail.api.post("/v2/sandbox/inbound", {"numberId": mail.number_id, "from": phone, "text": "hi"})
