"""From the body of POST /messages/bulk to a draft: what concerns several fields at once (C15.5)."""

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from recado.domain.core.errors import Problem
from recado.http.bodies.parsing import parse_json, validate_body
from recado.http.routes.messages.bulk import draft_of
from recado.http.routes.messages.bulk_models import CreateBatch

GOOD: dict[str, Any] = {
    "numberId": "num_1",
    "type": "template",
    "templateId": "tpl_1",
    "recipients": [{"to": " +5511987654321 ", "templateVars": [" Ana "], "color": "red"}],
}


def call(scopes: tuple[str, ...] = ("messages:send",), **changes: Any) -> Any:
    body = {name: value for name, value in {**GOOD, **changes}.items() if value is not ...}
    principal = SimpleNamespace(organization_id="org_1", env="test", actor_id="key_1")
    return SimpleNamespace(
        body=validate_body(CreateBatch, parse_json(orjson.dumps(body)), 422),
        can=scopes.__contains__,
        principal=principal,
        idempotency=None,
    )


def test_a_batch_is_bulk_unless_said_and_its_recipients_are_trimmed() -> None:
    draft = draft_of(call())
    assert (draft.priority, draft.channel, draft.created_by_id) == ("bulk", "chatapp", "key_1")
    assert draft.recipients == [{"to": "+5511987654321", "templateVars": ["Ana"]}]


@pytest.mark.parametrize(
    ("changes", "code", "paths"),
    [
        ({"recipients": []}, "VALIDATION_ERROR", ["/recipients"]),
        ({"recipients": [{}] * 10_001}, "VALIDATION_ERROR", ["/recipients"]),
        ({"recipients": [{"to": 5}]}, "VALIDATION_ERROR", ["/recipients/0/to"]),
        ({"recipients": ["+5511987654321"]}, "VALIDATION_ERROR", ["/recipients/0"]),
        ({"recipients": [{"templateVars": ["x" * 1025]}]}, "VALIDATION_ERROR", ["/recipients/0/templateVars/0"]),
        ({"templateVars": ["x" * 1024] * 4 + ["x"]}, "VALIDATION_ERROR", ["/templateVars"]),
        ({"recipients": ...}, "AUDIENCE_INVALID", [""]),
        ({"listId": "lst_1"}, "AUDIENCE_INVALID", ["/recipients", "/listId"]),
        ({"recipients": ..., "listId": "lst_1", "segmentId": "seg_1"}, "AUDIENCE_INVALID", ["/listId", "/segmentId"]),
        ({"numberId": ...}, "VALIDATION_ERROR", ["/numberId"]),
        ({"templateId": ...}, "VALIDATION_ERROR", ["/templateId"]),
        ({"type": "text", "payload": {"text": {"body": "x"}}}, "VALIDATION_ERROR", ["/templateId"]),
        ({"type": "text", "templateId": ...}, "VALIDATION_ERROR", ["/payload"]),
        ({"metadata": {"1": "x"}}, "METADATA_INVALID", ["/metadata"]),
        ({"name": "x" * 121}, "VALIDATION_ERROR", ["/name"]),
        ({"ttlSeconds": 59}, "VALIDATION_ERROR", ["/ttlSeconds"]),
        ({"channel": "pigeon"}, "VALIDATION_ERROR", ["/channel"]),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused_with_its_place(changes: dict[str, Any], code: str, paths: list[str]) -> None:
    with pytest.raises(Problem) as caught:
        draft_of(call(**changes))
    assert (caught.value.status, caught.value.code) == (422, code)
    assert [error.path for error in caught.value.errors] == paths


@pytest.mark.parametrize("channel", ["sms", "rcs"])
def test_each_channel_asks_for_its_own_scope(channel: str) -> None:
    with pytest.raises(Problem) as caught:
        draft_of(call(channel=channel))
    assert (caught.value.status, caught.value.meta) == (403, {"requiredScope": f"{channel}:send"})
    assert draft_of(call(("messages:send", f"{channel}:send"), channel=channel)).channel == channel


@pytest.mark.parametrize(("name", "field"), [("listId", "list_id"), ("segmentId", "segment_id")])
def test_a_list_or_a_segment_is_an_audience(name: str, field: str) -> None:
    draft = draft_of(call(**{name: "of this organization", "recipients": ...}))
    assert (getattr(draft, field), draft.recipients, draft.has_audience) == ("of this organization", (), True)
    assert not draft_of(call()).has_audience
