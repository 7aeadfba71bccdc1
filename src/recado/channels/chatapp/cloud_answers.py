"""What the hosted API's answers mean: statuses, error codes and bodies to outcome values and records (C29.2). Pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from recado.channels.chatapp.cloud_codes import MEANINGS, Fail, Meaning, Unavailable, outcome_of
from recado.channels.core.errors import MalformedCallback, ProviderError
from recado.channels.core.events import NumberState, Quality
from recado.channels.core.fields import Fields
from recado.channels.core.provider import Accepted, Down, NumberHealth, Outcome, Refused, Retry, SlowDown, Unknown
from recado.channels.core.refusals import bounded_text
from recado.channels.http.answer import Answer, Lost, NotSent, retry_after
from recado.domain.messages.message import FailureCode

_NOT_THERE = {401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "not_found"}
_IN_DOUBT = frozenset({408, 409, 425})
_INVALID_PARAMETER = 100
_NO_SUCH_OBJECT = 33  # a subcode: the address names no number that this token may see

HEALTH_FIELDS: Final = (
    "verified_name,code_verification_status,quality_rating,status,name_status,throughput,"
    "whatsapp_business_manager_messaging_limit,health_status"
)
PROFILE_FIELDS: Final = "about,address,email,websites,vertical,profile_picture_url"

NAME_STATES: Final[Mapping[str, str]] = {
    "APPROVED": "approved",
    "AVAILABLE_WITHOUT_REVIEW": "approved",
    "PENDING": "pending",
    "PENDING_REVIEW": "pending",
    "DEFERRED": "pending",
    "DECLINED": "rejected",
    "REJECTED": "rejected",
    "EXPIRED": "expired",
    "NONE": "none",
    "NON_EXISTS": "none",
}
QUALITY_READ: Final[Mapping[str, Quality]] = {
    "GREEN": "green",
    "YELLOW": "yellow",
    "RED": "red",
    "UNKNOWN": "unknown",
    "NA": "unknown",
}
TIERS_READ: Final[Mapping[str, str]] = {
    "TIER_50": "tier_250",  # the least that this service tells apart; the provider refuses beyond its own
    "TIER_250": "tier_250",
    "TIER_1K": "tier_1k",
    "TIER_2K": "tier_2k",
    "TIER_10K": "tier_10k",
    "TIER_100K": "tier_100k",
    "TIER_UNLIMITED": "unlimited",
}
_STATES: Final[Mapping[str, NumberState]] = {
    "CONNECTED": "connected",
    "RATE_LIMITED": "connected",
    "FLAGGED": "flagged",
    "RESTRICTED": "disconnected",
    "BANNED": "disconnected",
    "DISCONNECTED": "disconnected",
    "DELETED": "disconnected",
    "MIGRATED": "disconnected",
}
_PER_SECOND = {"STANDARD": 80, "HIGH": 1_000}
_PROFILE = {
    "about": "about",
    "address": "address",
    "email": "email",
    "vertical": "vertical",
    "profile_picture_url": "profilePictureUrl",
}
_NO_VERTICAL = "UNDEFINED"
_MOST_ISSUES = 50


def outcome(answer: Answer | NotSent | Lost, now: datetime, *, personal: Sequence[str]) -> Outcome:
    """The outcome of a send. `personal`: values that must not come back in a refusal's text.

    An error code of the table decides, whatever the status; without one, an answer that does not say that the message
    was refused leaves it in doubt.
    """
    if isinstance(answer, NotSent):
        return Down("connect_failed")
    if isinstance(answer, Lost):
        return Unknown()
    status, after = answer.status, retry_after(answer.retry_after, now)
    if 200 <= status < 300:
        message_id = _message_id(answer)
        return Unknown() if message_id is None else Accepted(message_id)
    error = _error(answer)
    meaning = _meaning(error)
    if meaning is not None:
        return outcome_of(meaning, _text(error, status, personal), after)
    if status in (429, 503):
        return SlowDown(after)
    if status in _NOT_THERE:
        return Down(_NOT_THERE[status])
    if 300 <= status < 400:
        return Down("redirected")
    if status >= 500 or status < 200 or status in _IN_DOUBT:
        return Unknown()
    if error.get("is_transient") is True:
        return Retry(after)
    return Refused(FailureCode.PROVIDER_ERROR.value, _text(error, status, personal))


def operation_result(answer: Answer, *, personal: Sequence[str]) -> Mapping[str, Any]:
    """The body of a successful operation other than a send; raises `ProviderError` for every other answer."""
    status = answer.status
    if 200 <= status < 300:
        result = _json_object(answer)
        if result is None:
            raise malformed("the body")
        return result
    error = _error(answer)
    meaning = _meaning(error)
    text = _text(error, status, personal)
    if isinstance(meaning, Fail):
        raise ProviderError("refused", meaning.code.value, text)
    if isinstance(meaning, Unavailable):
        raise ProviderError("unreachable", meaning.code, text)
    definite = 400 <= status < 500 and status not in _NOT_THERE and status not in (408, 425, 429)
    if meaning is None and definite and error.get("is_transient") is not True:
        raise ProviderError("refused", FailureCode.PROVIDER_ERROR.value, text)
    code = "no_answer" if meaning is None else "try_later"
    raise ProviderError("unreachable", _NOT_THERE.get(status, code), text)


def number_health(number: Mapping[str, Any], profile: Mapping[str, Any]) -> NumberHealth:
    """From the number's own fields and the answer that holds its profile; unknown words count as nothing said."""
    try:
        fields = Fields(number, "number")
        state = fields.optional_text("status", 64)
        level = Fields(number.get("throughput") or {}, "number.throughput").optional_text("level", 64)
        tier = fields.optional_text("whatsapp_business_manager_messaging_limit", 64)
        checked = fields.optional_text("code_verification_status", 64) == "VERIFIED"
        status = _STATES.get(state or "")
        return NumberHealth(
            verified=checked or status in ("connected", "flagged"),
            status=status,
            quality_rating=QUALITY_READ.get(fields.optional_text("quality_rating", 64) or ""),
            messaging_tier=TIERS_READ.get(tier or ""),
            name_status=NAME_STATES.get(fields.optional_text("name_status", 64) or ""),
            verified_name=fields.optional_text("verified_name", 512),
            per_second=_PER_SECOND.get(level or ""),
            profile=_profile(profile),
            issues=tuple(_issues(number)),
        )
    except MalformedCallback as error:
        raise malformed(error.where) from None


def text_of(result: Mapping[str, Any], name: str, longest: int) -> str:
    """One field of an operation's result; raises `ProviderError` when it is not there."""
    try:
        return Fields(result, "answer").text(name, longest)
    except MalformedCallback as error:
        raise malformed(error.where) from None


def malformed(where: str) -> ProviderError:
    return ProviderError("unreachable", "malformed_answer", f"the provider's answer is malformed at {where}")


def _profile(result: Mapping[str, Any]) -> dict[str, str] | None:
    items = Fields(result, "profile").items("data", 10)
    if not items:
        return None
    fields = Fields(items[0], "profile.data[0]")
    said = {
        ours: fields.optional_text(theirs, 2_048)
        for theirs, ours in _PROFILE.items()
        if items[0].get(theirs) not in (None, "", _NO_VERTICAL)
    }
    websites = fields.items("websites", 10)
    if websites and isinstance(websites[0], str) and websites[0]:
        said["website"] = websites[0][:2_048]
    return {name: value for name, value in said.items() if value is not None}


def _issues(number: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What keeps the number or its account from sending, as the provider explains it."""
    health = number.get("health_status")
    entities = health.get("entities") if isinstance(health, dict) else None
    found = []
    for entity in entities if isinstance(entities, list) else ():
        errors = entity.get("errors") if isinstance(entity, dict) else None
        for error in errors if isinstance(errors, list) else ():
            if isinstance(error, dict):
                text = error.get("error_description")
                found.append(
                    (str(error.get("error_code"))[:64], bounded_text(text if isinstance(text, str) else "", ()))
                )
    return found[:_MOST_ISSUES]


def _message_id(answer: Answer) -> str | None:
    result = _json_object(answer)
    if result is None:
        return None
    try:
        messages = Fields(result, "answer").items("messages", 10)
        return Fields(messages[0], "answer.messages[0]").text("id", 256) if messages else None
    except MalformedCallback:
        return None


def _error(answer: Answer) -> Mapping[str, Any]:
    error = (_json_object(answer) or {}).get("error")
    return error if isinstance(error, dict) else {}


def _meaning(error: Mapping[str, Any]) -> Meaning | None:
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        return None
    if code == _INVALID_PARAMETER and error.get("error_subcode") == _NO_SUCH_OBJECT:
        return Unavailable("not_found")
    return MEANINGS.get(code)


def _text(error: Mapping[str, Any], status: int, personal: Sequence[str]) -> str:
    data = error.get("error_data")
    details = data.get("details") if isinstance(data, dict) else None
    for text in (details, error.get("error_user_msg"), error.get("message")):
        if isinstance(text, str) and text.strip():
            return bounded_text(text, personal)
    return f"the provider answered with status {status}"


def _json_object(answer: Answer) -> dict[str, Any] | None:
    if not answer.complete:
        return None
    try:
        value = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
