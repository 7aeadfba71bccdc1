"""POST /messages/resend: failed messages are sent again as a batch of copies, each once (C15.4)."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from tests.causes import cause
from tests.http.messages.resending import NOWHERE, copies, failed, message, resend, second_template

from recado.domain.core.retention import CONTENT_MONTHS, months_before
from recado.services.batches import resend as resend_service
from recado.services.batches.resend import PLANS_WAITING
from recado.storage.dispatch.settlements import Failed
from recado.storage.messages import resends


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


async def test_codes_among_others_live_no_longer_than_codes_do(mail: Any) -> None:
    code_template = await second_template(mail, mail.number_id, name="code", category="authentication")
    other, code = await failed(mail), await failed(mail, to="+5511987654322", templateId=code_template)
    answer = await resend(mail, {"messageIds": [other, code]})
    ids = [made["id"] for made in await copies(mail, answer)]
    rows = await mail.api.database.fetch(
        "select ttl_ms, expires_at - due_at as lives from dispatch where id = any($1::text[]) order by id", ids
    )
    assert [row["lives"] for row in rows] == [timedelta(hours=72), timedelta(minutes=10)]
    assert [row["ttl_ms"] for row in rows] == [row["lives"] / timedelta(milliseconds=1) for row in rows]


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


async def test_what_waited_for_its_repeat_when_its_time_ended_may_have_left_and_is_left_out(mail: Any) -> None:
    message_id, now = (await mail.send())["id"], mail.api.clock.now()
    await mail.api.database.execute("update dispatch set repeat_of = $2 where id = $1", message_id, now)
    await mail.api.database.execute("update messages set status = 'sending' where id = $1", message_id)
    of_it = (mail.organization_id, "test", "chatapp", message_id)
    await mail.sending.settle(Failed(*of_it, cause("expired: its time to live ran out"), now, True))
    assert (await message(mail, message_id))["status"] == "sending"
    assert (await mail.api.post(f"/messages/{message_id}/archive")).status == 409
    assert (await resend(mail, {"messageIds": [message_id], "dryRun": True})).body["skipped"] == {"INVALID_STATE": 1}
    await mail.sending.settle(Failed(*of_it, cause("outcome_unknown: no report came within 24 hours"), now, False))
    assert (await message(mail, message_id))["status"] == "failed"
    assert (await resend(mail, {"messageIds": [message_id], "dryRun": True})).body["skipped"] == {"OUTCOME_UNKNOWN": 1}


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
        await mail.sending.settle(
            Failed(mail.organization_id, "test", "chatapp", new["id"], cause("expired: x"), now, True)
        )
    batch_id = answer.body["batch"]["id"]
    again = await resend(mail, {"filter": {"batchId": batch_id}})
    assert (again.body["matched"], again.body["batch"]["totals"]["accepted"]) == (2, 2)
    once_more = await resend(mail, {"filter": {"batchId": batch_id}})
    assert (once_more.status, once_more.body["matched"]) == (202, 0)
    assert (once_more.body["skipped"], once_more.body["batch"]["status"]) == ({"ALREADY_REPLACED": 2}, "failed")


async def test_resends_by_a_filter_are_planned_one_after_the_other(mail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may hold ten thousand messages."""
    await failed(mail, campaignId="spring")
    under_way: list[int] = []
    found, running = resends.failed, 0

    async def counted(*given: Any) -> Any:
        nonlocal running
        running += 1
        under_way.append(running)
        try:
            return await found(*given)
        finally:
            running -= 1

    monkeypatch.setattr(resends, "failed", counted)
    asked = [resend(mail, {"filter": {"campaignId": "spring"}, "dryRun": True}) for _ in range(PLANS_WAITING + 2)]
    statuses = Counter([answer.status for answer in await asyncio.gather(*asked)])
    assert statuses == {200: PLANS_WAITING + 1, 503: 1}
    assert set(under_way) == {1}


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


async def test_a_dry_run_keeps_its_answer_under_its_key_and_sends_nothing_under_it_later(mail: Any) -> None:
    ids = [await failed(mail)]
    how: dict[str, Any] = {"headers": {"Idempotency-Key": "once"}}
    first = await resend(mail, {"messageIds": ids, "dryRun": True}, **how)
    await resend(mail, {"messageIds": ids})
    again = await resend(mail, {"messageIds": ids, "dryRun": True}, **how)
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (200, first.body, "true")
    other = await resend(mail, {"messageIds": ids}, **how)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")


async def test_a_key_of_a_dry_run_is_free_after_its_day(mail: Any) -> None:
    ids = [await failed(mail)]
    how: dict[str, Any] = {"headers": {"Idempotency-Key": "once"}}
    await resend(mail, {"messageIds": ids, "dryRun": True}, **how)
    await mail.api.database.execute("update idempotency set created_at = created_at - interval '1 day'")
    assert (await resend(mail, {"messageIds": ids}, **how)).status == 202


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
    monkeypatch.setattr("recado.services.batches.resend.MAX_RECIPIENTS", 2)
    for _ in range(3):
        await failed(mail, campaignId="spring")
    answer = await resend(mail, {"filter": {"campaignId": "spring"}})
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "LIMIT_REACHED", {"limit": 2})


async def refused_unread(
    mail: Any, monkeypatch: pytest.MonkeyPatch, body: dict[str, Any], size: int, reads: str
) -> None:
    """Beyond `size` bytes the resend is refused before `reads` of `resends` is asked; with room for them it goes."""
    read: list[object] = []
    with monkeypatch.context() as bound:
        bound.setattr(resends, reads, lambda *given: read.append(given))
        bound.setattr(resend_service, "MOST_BYTES", size)
        before = await mail.stored()
        answer = await resend(mail, body)
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "LIMIT_REACHED", {"limit": size})
    assert (read, await mail.stored()) == ([], before)
    monkeypatch.setattr(resend_service, "MOST_BYTES", size + 200)
    assert (await resend(mail, body)).body["matched"] == 3


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_filter_that_finds_too_much_content_is_refused_before_it_is_read(
    mail: Any, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    body = {"filter": {"campaignId": "spring"}, "dryRun": dry_run}
    name = "ç" * 200
    for _ in range(3):
        await failed(mail, campaignId="spring", templateVars=[name], metadata={"order": name})
    size = 3 * 2 * 2 * len(name)  # both in UTF-8, without what is around them
    await refused_unread(mail, monkeypatch, body, size, "failed")


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_list_of_messages_with_too_much_content_is_refused_before_it_is_read(
    mail: Any, monkeypatch: pytest.MonkeyPatch, dry_run: bool
) -> None:
    name = "ç" * 200
    ids = [await failed(mail, templateVars=[name]) for _ in range(3)]
    body = {"messageIds": [*ids, *ids, NOWHERE], "dryRun": dry_run}
    size = 3 * 2 * len(name)  # in UTF-8, without what is around it
    await refused_unread(mail, monkeypatch, body, size, "by_ids")


async def test_long_lists_of_an_organization_take_turns_as_filters_do(
    mail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"messageIds": [await failed(mail)], "dryRun": True}
    few = await asyncio.gather(*(resend(mail, body) for _ in range(PLANS_WAITING + 2)))
    assert {answer.status for answer in few} == {200}
    monkeypatch.setattr(resend_service, "FEW_BYTES", 1)
    measured, all_measured = 0, asyncio.Event()
    size, by_ids = resends.size, resends.by_ids

    async def counted(*given: Any) -> int:
        nonlocal measured
        found = await size(*given)
        measured += 1
        if measured == PLANS_WAITING + 2:
            all_measured.set()
        return found

    async def held(*given: Any) -> Any:
        await all_measured.wait()
        return await by_ids(*given)

    monkeypatch.setattr(resends, "size", counted)
    monkeypatch.setattr(resends, "by_ids", held)
    many = await asyncio.gather(*(resend(mail, body) for _ in range(PLANS_WAITING + 2)))
    assert Counter(answer.status for answer in many) == {200: PLANS_WAITING + 1, 503: 1}


async def test_what_was_sent_again_already_is_not_too_many(mail: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recado.services.batches.resend.MAX_RECIPIENTS", 2)
    wanted = {"filter": {"campaignId": "spring"}}
    for _ in range(2):
        await failed(mail, campaignId="spring")
    assert (await resend(mail, wanted)).body["matched"] == 2
    await failed(mail, campaignId="spring")
    estimate = await resend(mail, {**wanted, "dryRun": True})
    assert (estimate.status, estimate.body["matched"]) == (200, 1)
    answer = await resend(mail, wanted)
    assert (answer.status, answer.body["matched"], answer.body["skipped"]) == (202, 1, {"ALREADY_REPLACED": 2})
    assert answer.body["batch"]["totals"]["requested"] == 3


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
