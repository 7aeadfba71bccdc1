"""What providers report: one frozen value per kind, and their JSON form, that of the bridge's callbacks (C29.3).

The same form serves as the row of an event that waits. Reading is strict: what was read can be stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from datetime import datetime
from typing import Any, Literal, get_args

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.fields import Fields
from recado.channels.core.refusals import refusal_code
from recado.domain.core.timestamps import format_timestamp

ReportStatus = Literal["sent", "delivered", "read", "failed"]
Verdict = Literal["approved", "rejected", "paused", "disabled"]
Category = Literal["marketing", "utility", "authentication"]
NumberState = Literal["available", "connected", "flagged", "disconnected"]
Quality = Literal["green", "yellow", "red", "unknown"]
Removal = Literal["PARTNER_REMOVED", "PARTNER_APP_UNINSTALLED"]


@dataclass(frozen=True, slots=True)
class Status:
    """A delivery report.

    `reference`: our message id where the provider echoes it. `code`: of a failure, one of the codes of C15.4.
    """

    status: ReportStatus
    at: datetime
    provider_message_id: str | None = None
    reference: str | None = None
    code: str | None = None
    account: str | None = None  # the provider's phone number id: finds the message of a report without reference


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message from a person (C28). `account`: the provider's phone number id; `quoted`: a provider message id."""

    account: str
    sender: str = field(repr=False)
    at: datetime
    type: str
    payload: Mapping[str, Any] = field(repr=False)
    provider_message_id: str
    quoted: str | None = None
    media_ref: str | None = None
    profile_name: str | None = field(default=None, repr=False)  # the name that the sender shows there


@dataclass(frozen=True, slots=True)
class TemplateStatus:
    """The provider's verdict on a template (C11.3); `category` where the provider changed it. One of both is there.

    `business_account`: where the provider shares a template among the numbers of one, as it is meant for all of them.
    `name` and `language` find a template whose id is not known yet: its verdict can be faster than the answer to its
    submission.
    """

    status: Verdict | None
    at: datetime
    provider_template_id: str
    account: str | None = None
    category: Category | None = None
    reason: str | None = None
    business_account: str | None = None
    name: str | None = None
    language: str | None = None


@dataclass(frozen=True, slots=True)
class NumberStatus:
    """News of a number (C14.2); None = no news of that field.

    `status` is the state that the provider sees: `available` = verified, `connected` = cleared, `flagged`,
    `disconnected` = refused, restricted or lost. A number is named by its id at the provider (`account`), by its phone
    within a business account, or, with all its siblings, by the business account alone.
    """

    account: str | None
    at: datetime
    status: NumberState | None = None
    quality: Quality | None = None
    tier: str | None = None
    name_status: str | None = None
    partner_removed: Removal | None = None
    business_account: str | None = None
    phone: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Preference:
    """A person told the provider to stop, or to let through again, marketing from this account (C28.4)."""

    account: str
    phone: str = field(repr=False)
    stopped: bool
    at: datetime


Event = Status | Inbound | TemplateStatus | NumberStatus | Preference


@dataclass(frozen=True, slots=True)
class Followup:
    """An event that the sandbox will report `after_seconds` from now: a value for the caller to store."""

    after_seconds: float
    event: Event


def event_to_json(event: Event) -> dict[str, Any]:
    """The JSON form, `kind` first; fields without value are left out. Times have milliseconds."""
    kind, names = _FORMS[type(event)]
    form: dict[str, Any] = {"kind": kind}
    for name, called in names:
        value = getattr(event, name)
        if value is not None:
            form[called] = format_timestamp(value) if name == "at" else value
    return form


def event_from_json(item: object, where: str = "event") -> Event:
    """Read one event; raises `MalformedCallback` naming the field, as in `events[3].at`."""
    fields = Fields(item, where)
    kind = _KINDS.get(fields.text("kind", 16))
    if kind is None:
        raise MalformedCallback(f"{where}.kind")
    _, read = kind
    return read(fields)


def _status(fields: Fields) -> Status:
    status = fields.choice("status", _REPORTS)
    provider_message_id = fields.optional_text("providerMessageId", 256)
    reference = fields.optional_text("reference", 64)
    if provider_message_id is None and reference is None:
        raise MalformedCallback(f"{fields.where}.providerMessageId")
    return Status(
        status,
        fields.time("at"),
        provider_message_id,
        reference,
        refusal_code(fields.optional_text("code", 128)) if status == "failed" else None,
        fields.optional_text("account", 128),
    )


def _inbound(fields: Fields) -> Inbound:
    return Inbound(
        account=fields.text("account", 128),
        sender=fields.text("from", 128),
        at=fields.time("at"),
        type=fields.choice("type", _MESSAGE_TYPES),
        payload=fields.tree("payload"),
        provider_message_id=fields.text("providerMessageId", 256),
        quoted=fields.optional_text("quoted", 256),
        media_ref=fields.optional_text("mediaRef", 1024),
        profile_name=fields.optional_text("profileName", LONGEST_NAME),
    )


def _template(fields: Fields) -> TemplateStatus:
    category = fields.optional_choice("category", CATEGORIES)
    return TemplateStatus(
        status=fields.choice("status", VERDICTS) if category is None else fields.optional_choice("status", VERDICTS),
        at=fields.time("at"),
        provider_template_id=fields.text("providerTemplateId", 256),
        account=fields.optional_text("account", 128),
        category=category,
        reason=fields.optional_text("reason", LONGEST_REASON),
        business_account=fields.optional_text("businessAccount", 128),
        name=fields.optional_text("name", LONGEST_TEMPLATE_NAME),
        language=fields.optional_text("language", 16),
    )


def _number(fields: Fields) -> NumberStatus:
    business_account = fields.optional_text("businessAccount", 128)
    return NumberStatus(
        account=fields.text("account", 128) if business_account is None else fields.optional_text("account", 128),
        at=fields.time("at"),
        status=fields.optional_choice("status", NUMBER_STATES),
        quality=fields.optional_choice("quality", QUALITIES),
        tier=fields.optional_choice("tier", TIERS),
        name_status=fields.optional_choice("nameStatus", NAME_STATES),
        partner_removed=fields.optional_choice("partnerRemoved", _REMOVALS),
        business_account=business_account,
        phone=fields.optional_text("phone", 128),
    )


def _preference(fields: Fields) -> Preference:
    return Preference(
        account=fields.text("account", 128),
        phone=fields.text("phone", 128),
        stopped=fields.flag("stopped"),
        at=fields.time("at"),
    )


_KINDS: Mapping[str, tuple[type[Event], Callable[[Fields], Event]]] = {
    "status": (Status, _status),
    "inbound": (Inbound, _inbound),
    "template": (TemplateStatus, _template),
    "number": (NumberStatus, _number),
    "preference": (Preference, _preference),
}


def _called(name: str) -> str:
    """A field's name in the JSON form."""
    first, *others = name.split("_")
    return "from" if name == "sender" else first + "".join(map(str.capitalize, others))


_FORMS: Mapping[type[Event], tuple[str, tuple[tuple[str, str], ...]]] = {
    event: (kind, tuple((each.name, _called(each.name)) for each in fields_of(event)))
    for kind, (event, _) in _KINDS.items()
}
_REPORTS: frozenset[ReportStatus] = frozenset(get_args(ReportStatus))
_MESSAGE_TYPES = frozenset({"text", "media", "interactive"})
VERDICTS: frozenset[Verdict] = frozenset(get_args(Verdict))
_REMOVALS: frozenset[Removal] = frozenset(get_args(Removal))
CATEGORIES: frozenset[Category] = frozenset(get_args(Category))
NUMBER_STATES: frozenset[NumberState] = frozenset(get_args(NumberState))
QUALITIES: frozenset[Quality] = frozenset(get_args(Quality))
LONGEST_NAME = 512  # characters
LONGEST_REASON = 512
LONGEST_TEMPLATE_NAME = 512
TIERS = frozenset({"tier_250", "tier_1k", "tier_2k", "tier_10k", "tier_100k", "unlimited"})
NAME_STATES = frozenset({"approved", "pending", "rejected", "expired", "none"})
