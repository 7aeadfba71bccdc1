"""POST /messages: what is stored, what is refused and why, and repeats (C15.2, C15.3)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from recado.domain.access.scopes import KEY_SCOPES

PHONE = "+5511987654321"
MASKED = "+55*******4321"


async def test_an_accepted_message_is_shown_as_it_is_stored(mail: Any) -> None:
    at = (mail.api.clock.now() + timedelta(days=1)).isoformat()
    sent = await mail.send(metadata={"order": "x1", "n": 1.5, "paid": True}, campaignId="spring", scheduledAt=at)
    assert sent.pop("replayed") is False
    read = (await mail.api.get(f"/messages/{sent['id']}")).body
    assert read.pop("waiting") == {"reason": "rate"}
    assert sent.pop("billing") == {"coins": 600}
    assert sent == read
    assert sent["metadata"] == {"order": "x1", "n": 1.5, "paid": True}
    assert (sent["status"], sent["priority"], sent["direction"], sent["force"]) == (
        "queued",
        "normal",
        "outbound",
        False,
    )
    assert sent["createdAt"] == sent["updatedAt"]
    assert sent["organizationId"] == mail.organization_id
    [listed] = (await mail.api.get("/messages")).body["items"]
    assert listed == sent


async def test_payload_and_variables_come_back_trimmed_and_without_unknown_fields(mail: Any) -> None:
    await mail.api.post("/v2/sandbox/inbound", {"numberId": mail.number_id, "from": PHONE, "text": "hello"})
    sent = await mail.api.post(
        "/messages", mail.text(payload={"text": {"body": "  hi ", "previewUrl": True, "color": "red"}, "x": 1})
    )
    assert sent.body["payload"] == {"text": {"body": "hi", "previewUrl": True}}
    assert (await mail.send(templateVars=[" Ana "]))["templateVars"] == ["Ana"]


async def test_the_recipient_is_canonical_and_masked_without_its_scope(mail: Any) -> None:
    assert (await mail.send(to="+55 (11) 8765-4321"))["to"] == "+5511987654321"
    token = await mail.api.key("messages:send", "messages:read")
    sent = await mail.api.post("/messages", mail.body(), token=token, headers={"Idempotency-Key": "k"})
    again = await mail.api.post("/messages", mail.body(), token=token, headers={"Idempotency-Key": "k"})
    read = await mail.api.get(f"/messages/{sent.body['id']}", token=token)
    listed = await mail.api.get("/messages", token=token)
    assert [answer.body["to"] for answer in (sent, again, read)] == [MASKED] * 3
    assert {item["to"] for item in listed.body["items"]} == {MASKED}


@pytest.mark.parametrize(
    ("changes", "code", "paths"),
    [
        ({"to": ...}, "RECIPIENT_MISSING", ["/to"]),
        ({"to": "11987654321"}, "PHONE_INVALID", ["/to"]),
        ({"numberId": ...}, "VALIDATION_ERROR", ["/numberId"]),
        ({"templateId": ...}, "VALIDATION_ERROR", ["/templateId"]),
        ({"type": ...}, "VALIDATION_ERROR", ["/type"]),
        ({"type": "carrier-pigeon"}, "VALIDATION_ERROR", ["/type"]),
        ({"type": "text"}, "VALIDATION_ERROR", ["/payload"]),
        (
            {"type": "text", "payload": {"text": {"body": "x"}}},
            "VALIDATION_ERROR",
            ["/templateId", "/templateVars"],
        ),
        ({"templateVars": ["x" * 1025]}, "VALIDATION_ERROR", ["/templateVars/0"]),
        ({"templateVars": ["x"] * 61}, "VALIDATION_ERROR", ["/templateVars"]),
        ({"templateVars": [" "]}, "TEMPLATE_VARS_MISMATCH", ["/templateVars/0"]),
        ({"metadata": {"1": "x"}}, "METADATA_INVALID", ["/metadata"]),
        ({"metadata": {"k": ["x"]}}, "METADATA_INVALID", ["/metadata/k"]),
        ({"metadata": []}, "METADATA_INVALID", ["/metadata"]),
        ({"campaignId": "x" * 65}, "VALIDATION_ERROR", ["/campaignId"]),
        ({"ttlSeconds": 59}, "VALIDATION_ERROR", ["/ttlSeconds"]),
        ({"ttlSeconds": 2_592_001}, "VALIDATION_ERROR", ["/ttlSeconds"]),
        ({"scheduledAt": "2026-11-20T10:00:00"}, "VALIDATION_ERROR", ["/scheduledAt"]),
        ({"scheduledAt": "2099-01-01T00:00:00Z"}, "SCHEDULE_TOO_FAR", ["/scheduledAt"]),
        ({"priority": "urgent"}, "VALIDATION_ERROR", ["/priority"]),
        ({"force": "yes"}, "VALIDATION_ERROR", ["/force"]),
        ({"contactId": "cnt_1"}, "REFERENCE_NOT_FOUND", ["/contactId"]),
        ({"channel": "social"}, "VALIDATION_ERROR", ["/socialAccountId", "/type"]),
        ({"channel": "sms"}, "VALIDATION_ERROR", ["/channel"]),
        ({"numberId": "num_1"}, "REFERENCE_NOT_FOUND", ["/numberId"]),
        ({"metadata": {"k": "\0"}}, "INVALID_CHARACTER", ["/metadata/k"]),
    ],
)
async def test_a_refusal_names_its_rule_and_its_place(
    mail: Any, changes: dict[str, Any], code: str, paths: list[str]
) -> None:
    refused = await mail.refusal(mail.body(**changes))
    assert (refused.status, refused.code) == (422, code)
    assert [error["path"] for error in refused.body.get("errors", [])] == paths
    assert PHONE not in str(refused.body)


async def test_force_needs_its_scope(mail: Any) -> None:
    token = await mail.api.key(*(KEY_SCOPES - {"messages:force"}))
    refused = await mail.refusal(mail.body(force=True), token=token)
    assert (refused.status, refused.code, refused.body["meta"]) == (
        403,
        "SCOPE_REQUIRED",
        {"requiredScope": "messages:force"},
    )
    sent = await mail.send(force=True)
    assert sent["force"] is True
    audited = await mail.api.database.fetchrow("select * from audit where action = 'message.force'")
    assert (audited["action"], audited["target_id"], audited["ip"]) == ("message.force", sent["id"], "127.0.0.1")


async def test_a_create_takes_no_if_match(mail: Any) -> None:
    refused = await mail.refusal(mail.body(), headers={"If-Match": "*"})
    assert (refused.status, refused.code) == (412, "VERSION_MISMATCH")


async def test_a_repeat_is_replayed_and_another_request_with_its_key_refused(mail: Any) -> None:
    key = {"Idempotency-Key": "order 7"}
    first = await mail.api.post("/messages", mail.body(), headers=key)
    await mail.set_status(first.body["id"], "delivered")
    # The same document with its members in another order is the same request.
    again = await mail.api.post("/messages", dict(reversed(mail.body().items())), headers=key)
    assert (first.status, again.status) == (201, 201)
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.body == {**first.body, "status": "delivered", "replayed": True}
    refused = await mail.refusal(mail.body(to="+5511987650000"), headers=key)
    assert (refused.status, refused.code) == (422, "IDEMPOTENCY_KEY_REUSED")


async def test_sends_that_come_at_once_under_one_key_are_one_message(mail: Any) -> None:
    key = {"Idempotency-Key": "order 8"}
    answers = await asyncio.gather(*(mail.api.post("/messages", mail.body(), headers=key) for _ in range(6)))
    assert [answer.status for answer in answers] == [201] * 6
    assert len({answer.body["id"] for answer in answers}) == 1
    assert sorted(answer.body["replayed"] for answer in answers) == [False, *[True] * 5]
    assert await mail.stored() == 1


async def test_the_body_of_a_send_is_looked_at_before_its_key(mail: Any) -> None:
    key = {"Idempotency-Key": "order 9"}
    await mail.api.post("/messages", mail.body(), headers=key)
    refused = await mail.api.post("/messages", {**mail.body(), "priority": "no such"}, headers=key)
    assert (refused.status, refused.code) == (422, "VALIDATION_ERROR")


async def test_a_body_where_none_is_taken_is_no_part_of_the_request(mail: Any) -> None:
    sent = await mail.send()
    headers = {"Idempotency-Key": "archive 1", "Prefer": "handling=strict"}
    first = await mail.api.post(f"/messages/{sent['id']}/archive", {"zzz": 1}, headers=headers)
    assert (first.status, first.body["status"], "warnings" in first.body) == (200, "archived", False)
    again = await mail.api.post(f"/messages/{sent['id']}/archive", headers=headers)
    assert (again.status, again.headers["Idempotency-Replayed"]) == (200, "true")
