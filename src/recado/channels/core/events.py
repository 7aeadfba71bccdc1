"""What providers report: one frozen value per kind, with the types of its JSON form, that of bridges (C29.3)."""

from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from pydantic import ConfigDict, Field, SkipValidation, StrictBool, StrictInt
from pydantic.alias_generators import to_camel

from recado.channels.core.fields import Receipt, Text16, Text64, Text128, Text256, Text512, Text1024, Time, Tree

ReportStatus = Literal["sent", "delivered", "read", "failed", "bounced", "complained"]
MessageType = Literal["text", "media", "interactive"]
Verdict = Literal["approved", "rejected", "paused", "disabled"]
Category = Literal["marketing", "utility", "authentication"]
NumberState = Literal["available", "connected", "flagged", "disconnected"]
Quality = Literal["green", "yellow", "red", "unknown"]
Tier = Literal["tier_250", "tier_1k", "tier_2k", "tier_10k", "tier_100k", "unlimited"]
NameState = Literal["approved", "pending", "rejected", "expired", "none"]
FlowState = Literal["published", "throttled", "blocked", "deprecated"]
Removal = Literal["PARTNER_REMOVED", "PARTNER_APP_UNINSTALLED"]
PaymentStatus = Literal["paid", "canceled"]

VERDICTS: frozenset[Verdict] = frozenset(get_args(Verdict))
LONGEST_NAME = 512  # characters
MOST_CENTS = 10**15

CAMEL = ConfigDict(alias_generator=to_camel)


@dataclass(frozen=True, slots=True)
class Status:
    """A delivery report.

    `reference`: our message id where the provider echoes it. `code`: of a failure or a bounce, one of those of C15.4.
    `bounce_type`: where the provider says whether the address is good for nothing any more; else the code tells it.
    """

    __pydantic_config__ = CAMEL
    status: ReportStatus
    at: Time
    provider_message_id: Text256 | None = None
    reference: Text64 | None = None
    code: Annotated[str | None, SkipValidation] = None
    account: Text128 | None = None  # the provider's phone number id: finds the message of a report without reference
    receipt: Receipt | None = field(default=None, repr=False)  # the report as its provider keeps it
    bounce_type: Literal["permanent", "temporary"] | None = None
    kind: Literal["status"] = field(default="status", repr=False)


@dataclass(frozen=True, slots=True)
class Inbound:
    """A message from a person (C28). `account`: the provider's phone number id; `quoted`: a provider message id.

    `user_id`: of a sender with a phone, the business-scoped user id that the provider names it by, too (C28.6).
    """

    __pydantic_config__ = CAMEL
    account: Text128
    sender: Annotated[Text128, Field(alias="from")] = field(repr=False)
    at: Time
    type: MessageType
    payload: Tree = field(repr=False)
    provider_message_id: Text256
    quoted: Text256 | None = None
    media_ref: Text1024 | None = None
    profile_name: Text512 | None = field(default=None, repr=False)  # the name that the sender shows there
    user_id: Text128 | None = field(default=None, repr=False)
    kind: Literal["inbound"] = field(default="inbound", repr=False)


@dataclass(frozen=True, slots=True)
class TemplateVerdict:
    """The provider's verdict on a template (C11.3); `category` where the provider changed it. One of both is there.

    `business_account`: where the provider shares a template among the numbers of one, as it is meant for all of them.
    `name` and `language` find a template whose id is not known yet: its verdict can be faster than the answer to its
    submission.
    """

    __pydantic_config__ = CAMEL
    status: Annotated[Verdict | None, Field(default=None)]
    at: Time
    provider_template_id: Text256
    account: Text128 | None = None
    category: Category | None = None
    reason: Text512 | None = None
    business_account: Text128 | None = None
    name: Text512 | None = None
    language: Text16 | None = None
    kind: Literal["template"] = field(default="template", repr=False)


@dataclass(frozen=True, slots=True)
class NumberNews:
    """News of a number (C14.2); None = no news of that field.

    `status` is the state that the provider sees: `available` = verified, `connected` = cleared, `flagged`,
    `disconnected` = refused, restricted or lost. A number is named by its id at the provider (`account`), by its phone
    within a business account, or, with all its siblings, by the business account alone.
    """

    __pydantic_config__ = CAMEL
    account: Annotated[Text128 | None, Field(default=None)]
    at: Time
    status: NumberState | None = None
    quality: Quality | None = None
    tier: Tier | None = None
    name_status: NameState | None = None
    partner_removed: Removal | None = None
    business_account: Text128 | None = None
    phone: Text128 | None = field(default=None, repr=False)
    kind: Literal["number"] = field(default="number", repr=False)


@dataclass(frozen=True, slots=True)
class FlowNews:
    """The state of a published flow at the provider (C19): `published` = cleared.

    `account`: the provider's phone number id; `business_account`: where the provider keeps flows by that.
    """

    __pydantic_config__ = CAMEL
    status: FlowState
    at: Time
    provider_flow_id: Text256
    account: Text128 | None = None
    business_account: Text128 | None = None
    kind: Literal["flow"] = field(default="flow", repr=False)


@dataclass(frozen=True, slots=True)
class Preference:
    """A person told the provider to stop, or to let through again, marketing from this account (C28.4)."""

    __pydantic_config__ = CAMEL
    account: Text128
    phone: Text128 = field(repr=False)
    stopped: StrictBool
    at: Time
    kind: Literal["preference"] = field(default="preference", repr=False)


@dataclass(frozen=True, slots=True)
class Payment:
    """News of the payment of a top-up. `reference`: the top-up's `paymentReference`; `amount_cents`: what was paid."""

    __pydantic_config__ = CAMEL
    reference: Text64
    status: PaymentStatus
    at: Time
    amount_cents: Annotated[StrictInt, Field(ge=0, le=MOST_CENTS)] | None = None
    kind: Literal["payment"] = field(default="payment", repr=False)


@dataclass(frozen=True, slots=True)
class NotTaken:
    """The answer to a send whose outcome is unknown by now: nothing of the message was taken. No bridge tells that.

    `reference`: our message id. `code`: of a refusal for good; None: it was refused for now. `spent`: as an attempt.
    """

    __pydantic_config__ = CAMEL
    reference: Text64
    at: Time
    code: Text128 | None = None
    spent: StrictBool = False
    kind: Literal["notTaken"] = field(default="notTaken", repr=False)


Event = Status | Inbound | TemplateVerdict | NumberNews | FlowNews | Preference
CallbackEvent = Event | Payment | NotTaken
"""What a callback tells: a union whose kinds each have one handler (`callbacks.py`)."""


@dataclass(frozen=True, slots=True)
class LinkOpened:
    """A person of the sandbox opens a tracked link (C29.4): no provider tells that."""

    code: str
    kind: Literal["opened"] = field(default="opened", repr=False)


@dataclass(frozen=True, slots=True)
class Followup:
    """An event that the sandbox will report `after_seconds` from now: a value for the caller to store."""

    after_seconds: float
    event: Event | LinkOpened
