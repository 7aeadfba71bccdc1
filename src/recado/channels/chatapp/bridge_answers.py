"""What the bridge's answers mean: statuses and bodies to outcome values and records (C29.3). Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from recado.channels.core.errors import MalformedCallback, ProviderError
from recado.channels.core.events import CATEGORIES, NAME_STATES, QUALITIES, TIERS
from recado.channels.core.fields import Fields
from recado.channels.core.provider import (
    Accepted,
    Down,
    NumberHealth,
    Outcome,
    ProviderTemplate,
    Refused,
    SlowDown,
    Submission,
    Unknown,
)
from recado.channels.core.refusals import bounded_text, refusal_code
from recado.channels.http.answer import Answer, Lost, NotSent, retry_after

_NUMBER_STATES = frozenset({"pending", "available", "connected", "flagged", "disconnected"})
_TEMPLATE_STATES = frozenset({"pending", "approved", "rejected", "paused", "disabled"})
_PROFILE = ("about", "address", "email", "website", "vertical", "profilePictureUrl")
_MOST_TEMPLATES = 1_000

# The bridge is not where its address says, or not for us: the message was certainly not taken (C29.2, `Down`).
_NOT_THERE = {401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "not_found"}
# Refusals in name, but a first request under the same key may be the one being processed, or none was read to its end.
_IN_DOUBT = frozenset({408, 409, 425})


def outcome(answer: Answer | NotSent | Lost, now: datetime, *, personal: Sequence[str]) -> Outcome:
    """The outcome of a send. `personal`: values that must not come back in a refusal's text."""
    if isinstance(answer, NotSent):
        return Down("connect_failed")
    if isinstance(answer, Lost):
        return Unknown()
    status = answer.status
    if 200 <= status < 300:
        provider_message_id = _provider_message_id(answer)
        # Processed without a readable id: saying "failed" could make somebody send it again.
        return Unknown() if provider_message_id is None else Accepted(provider_message_id)
    if status in (429, 503):
        return SlowDown(retry_after(answer.retry_after, now))
    if status in _NOT_THERE:
        return Down(_NOT_THERE[status])
    if 300 <= status < 400:
        return Down("redirected")
    if status >= 500 or status < 200 or status in _IN_DOUBT:
        return Unknown()
    code, text = _refusal(answer, personal)
    return Refused(code, text)


def operation_result(answer: Answer, *, personal: Sequence[str]) -> Mapping[str, Any]:
    """The body of a successful operation; raises `ProviderError` for every other answer."""
    status = answer.status
    if 200 <= status < 300:
        result = _json_object(answer)
        if result is None:
            raise _malformed("the body")
        return result
    if 400 <= status < 500 and status not in _NOT_THERE and status not in (408, 425, 429):
        raise ProviderError("refused", *_refusal(answer, personal))
    raise ProviderError("unreachable", _NOT_THERE.get(status, "no_answer"), f"the bridge answered with status {status}")


def number_health(result: Mapping[str, Any]) -> NumberHealth:
    try:
        fields = Fields(result, "numberHealth")
        status = fields.choice("status", _NUMBER_STATES)
        profile = Fields(result.get("profile", {}), "numberHealth.profile")
        said = {name: profile.optional_text(name, 2_048) for name in _PROFILE}
        return NumberHealth(
            verified=status in ("available", "connected", "flagged"),
            status=status,
            quality_rating=fields.optional_choice("quality", QUALITIES),
            messaging_tier=fields.optional_choice("tier", TIERS),
            name_status=fields.optional_choice("nameStatus", NAME_STATES),
            verified_name=fields.optional_text("verifiedName", 512),
            per_second=fields.optional_count("perSecond", 1_000_000),
            profile={name: value for name, value in said.items() if value is not None} if "profile" in result else None,
            issues=tuple(_issue(item, index) for index, item in enumerate(fields.items("issues", 50))),
        )
    except MalformedCallback as error:
        raise _malformed(error.where) from None


def submission(result: Mapping[str, Any]) -> Submission:
    try:
        return Submission(Fields(result, "submission").text("providerTemplateId", 256))
    except MalformedCallback as error:
        raise _malformed(error.where) from None


def templates(result: Mapping[str, Any]) -> list[ProviderTemplate]:
    try:
        items = Fields(result, "list").items("templates", _MOST_TEMPLATES)
        return [_template(Fields(item, f"templates[{index}]")) for index, item in enumerate(items)]
    except MalformedCallback as error:
        raise _malformed(error.where) from None


def _template(fields: Fields) -> ProviderTemplate:
    return ProviderTemplate(
        provider_template_id=fields.text("providerTemplateId", 256),
        name=fields.text("name", 512),
        language=fields.text("language", 16),
        category=fields.choice("category", CATEGORIES),
        status=fields.choice("status", _TEMPLATE_STATES),
        components=fields.trees("components", 20),
        rejection_reason=fields.optional_text("rejectionReason", 512),
    )


def _issue(item: object, index: int) -> tuple[str, str]:
    fields = Fields(item, f"issues[{index}]")
    return fields.text("code", 64), fields.text("message", 512)


def _provider_message_id(answer: Answer) -> str | None:
    result = _json_object(answer)
    if result is None:
        return None
    try:
        return Fields(result, "answer").text("providerMessageId", 256)
    except MalformedCallback:
        return None


def _refusal(answer: Answer, personal: Sequence[str]) -> tuple[str, str]:
    result = _json_object(answer) or {}
    text = result.get("message")
    if not isinstance(text, str) or not text.strip():
        text = f"the bridge answered with status {answer.status}"
    return refusal_code(result.get("code")), bounded_text(text, personal)


def _json_object(answer: Answer) -> dict[str, Any] | None:
    if not answer.complete:
        return None
    try:
        value = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _malformed(where: str) -> ProviderError:
    return ProviderError("unreachable", "malformed_answer", f"the bridge's answer is malformed at {where}")
