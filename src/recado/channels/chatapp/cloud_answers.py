"""What the hosted API's answers mean: statuses, error codes and bodies to outcome values and records (C29.2). Pure."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Final, TypeVar, get_args

from pydantic import BeforeValidator, Field

from recado.channels.chatapp.cloud_codes import MEANINGS, outcome_of
from recado.channels.core import answers
from recado.channels.core.errors import ProviderError
from recado.channels.core.events import NameState, NumberState, Quality, Tier
from recado.channels.core.fields import Text64, Text256, Text512, Text2048, known, object_in, objects_in, text_or_none
from recado.channels.core.provider import Down, NumberHealth, Outcome, Refused, Retry
from recado.channels.core.reading import Shape, record
from recado.channels.core.refusals import bounded_text
from recado.channels.http.answer import Answer, Lost, NotSent, retry_after
from recado.domain.messages.message import FailureCode

T = TypeVar("T")

NOUN: Final = "provider"
_INVALID_PARAMETER = 100
_NO_SUCH_OBJECT = 33  # a subcode: the address names no number that this token may see

HEALTH_FIELDS: Final = (
    "verified_name,code_verification_status,quality_rating,status,name_status,throughput,"
    "whatsapp_business_manager_messaging_limit,health_status"
)
PROFILE_FIELDS: Final = "about,address,email,websites,vertical,profile_picture_url"

# Their words in ours: those in capitals, and others.
NAME_STATES: Final[Mapping[str, NameState]] = {
    **{state.upper(): state for state in get_args(NameState)},
    "AVAILABLE_WITHOUT_REVIEW": "approved",
    "PENDING_REVIEW": "pending",
    "DEFERRED": "pending",
    "DECLINED": "rejected",
    "NON_EXISTS": "none",
}
QUALITY_READ: Final[Mapping[str, Quality]] = {
    **{quality.upper(): quality for quality in get_args(Quality)},
    "NA": "unknown",
}
TIERS_READ: Final[Mapping[str, Tier]] = {
    **{tier.upper(): tier for tier in get_args(Tier)},
    "TIER_50": "tier_250",  # the least that this service tells apart; the provider refuses beyond its own
    "TIER_UNLIMITED": "unlimited",
}
_STATES: Final[Mapping[str, NumberState]] = {
    "CONNECTED": "connected",
    "RATE_LIMITED": "connected",
    "FLAGGED": "flagged",
    **dict.fromkeys(("RESTRICTED", "BANNED", "DISCONNECTED", "DELETED", "MIGRATED"), "disconnected"),
}
_PER_SECOND = {"STANDARD": 80, "HIGH": 1_000}
_PROFILE_NAMES = {
    "about": "about",
    "address": "address",
    "email": "email",
    "vertical": "vertical",
    "profile_picture_url": "profilePictureUrl",
}
_UNSAID = ("", "UNDEFINED")
_MOST_ISSUES = 50

_Said = Annotated[Text2048 | None, BeforeValidator(lambda value: None if value in _UNSAID else value)]


_NUMBER = record(
    {},
    {
        "code_verification_status": Text64 | None,
        "status": Annotated[NumberState, known(_STATES)] | None,
        "quality_rating": Annotated[Quality, known(QUALITY_READ)] | None,
        "whatsapp_business_manager_messaging_limit": Annotated[Tier, known(TIERS_READ)] | None,
        "name_status": Annotated[NameState, known(NAME_STATES)] | None,
        "verified_name": Text512 | None,
    },
)
_THROUGHPUT = record({}, {"level": Annotated[int, known(_PER_SECOND)] | None})
_TEN = Annotated[list[Any], Field(max_length=10)]
_PROFILES = record({}, {"data": _TEN})
_PROFILE = record({}, {**dict.fromkeys(_PROFILE_NAMES, _Said), "websites": _TEN})
_MADE = record({"id": Text256})


def outcome(answer: Answer | NotSent | Lost, now: datetime, *, personal: Callable[[], Sequence[str]]) -> Outcome:
    """The outcome of a send. `personal`: values that must not come back in a refusal's text.

    An error code of the table decides, whatever the status; without one, an answer that does not say that the message
    was refused leaves it in doubt.
    """
    if isinstance(answer, Answer) and not answer.ok:
        error = _error(answer)
        meaning = _meaning(error)
        if meaning is not None:
            text = _text(error, answer.status, personal())
            return outcome_of(meaning, text, retry_after(answer.retry_after, now))
    return answers.outcome(
        answer, now, message_id=_message_id, refused=lambda refusal, after: _refused(refusal, after, personal())
    )


def _refused(answer: Answer, after: float | None, personal: Sequence[str]) -> Outcome:
    error = _error(answer)
    if error.get("is_transient") is True:
        return Retry(after)
    return Refused(FailureCode.PROVIDER_ERROR.value, _text(error, answer.status, personal))


def operation_result(answer: Answer, *, personal: Sequence[str]) -> Mapping[str, Any]:
    """The body of a successful operation other than a send; raises `ProviderError` for every other answer."""
    if answer.ok:
        return answers.body_of(answer, NOUN)
    error = _error(answer)
    text = _text(error, answer.status, personal)
    match _meaning(error):
        case Refused(code):
            raise ProviderError("refused", code, text)
        case Down(code):
            raise ProviderError("unreachable", code, text)
        case None:
            later = "no_answer" if error.get("is_transient") is True else None
        case _:
            later = "try_later"
    raise answers.failure(answer.status, FailureCode.PROVIDER_ERROR.value, text, later=later)


def number_health(number: Mapping[str, Any], profile: Mapping[str, Any]) -> NumberHealth:
    """From the number's own fields and the answer that holds its profile; unknown words count as nothing said."""
    said = read(_NUMBER, number, "number")
    status = said.get("status")
    return NumberHealth(
        verified=said.get("code_verification_status") == "VERIFIED" or status in ("connected", "flagged"),
        status=status,
        quality_rating=said.get("quality_rating"),
        messaging_tier=said.get("whatsapp_business_manager_messaging_limit"),
        name_status=said.get("name_status"),
        verified_name=said.get("verified_name"),
        per_second=read(_THROUGHPUT, number.get("throughput") or {}, "number.throughput").get("level"),
        profile=_profile(profile),
        issues=tuple(_issues(number)),
    )


def read(shape: Shape[T], value: object, where: str) -> T:
    """What an operation was answered with; raises `ProviderError` when it has another shape."""
    return answers.read(shape, value, where, NOUN)


def id_of(result: Mapping[str, Any]) -> str:
    """The id of what an operation made; raises `ProviderError` when it is not there."""
    made: str = read(_MADE, result, "answer")["id"]
    return made


def _profile(result: Mapping[str, Any]) -> dict[str, str] | None:
    profiles = read(_PROFILES, result, "profile").get("data")
    if not profiles:
        return None
    profile = read(_PROFILE, profiles[0], "profile.data[0]")
    said = {ours: profile[theirs] for theirs, ours in _PROFILE_NAMES.items() if profile.get(theirs) is not None}
    for website in (profile.get("websites") or ())[:1]:
        if isinstance(website, str) and website:
            said["website"] = website[:2_048]
    return said


def _issues(number: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What keeps the number or its account from sending, as the provider explains it."""
    entities = objects_in(object_in(number.get("health_status")).get("entities"))
    errors = [error for entity in entities for error in objects_in(entity.get("errors"))][:_MOST_ISSUES]
    told = [(str(error.get("error_code"))[:64], error.get("error_description")) for error in errors]
    return [(code, bounded_text(text if isinstance(text, str) else "", ())) for code, text in told]


def _message_id(taken: Mapping[str, Any]) -> str | None:
    messages = objects_in(taken.get("messages"))
    return text_or_none(messages[0].get("id"), 256) if messages else None


def _error(answer: Answer) -> Mapping[str, Any]:
    return object_in(answers.said(answer).get("error"))


def _meaning(error: Mapping[str, Any]) -> Outcome | None:
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        return None
    if code == _INVALID_PARAMETER and error.get("error_subcode") == _NO_SUCH_OBJECT:
        return Down("not_found")
    return MEANINGS.get(code)


def _text(error: Mapping[str, Any], status: int, personal: Sequence[str]) -> str:
    details = object_in(error.get("error_data")).get("details")
    for text in (details, error.get("error_user_msg"), error.get("message")):
        if isinstance(text, str) and text.strip():
            return bounded_text(text, personal)
    return f"the provider answered with status {status}"
