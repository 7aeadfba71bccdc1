"""RCS, which an SMS takes the place of where it does not arrive: one message, whatever carries it (C17)."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from recado.domain.billing.prices import RCS_OTHER, RCS_OTP, RCS_TEXT, SMS_OTP, SMS_PREMIUM, Price
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policy import (
    AfterSent,
    Carried,
    MessageFacts,
    OnwardRoute,
    Policy,
    Reports,
    SenderKind,
    TakenPrice,
    Ways,
)
from recado.domain.channels.sms import SMS, TRANSACTIONAL, SmsRoute
from recado.domain.core.machine import Machine
from recado.domain.dispatch import gates
from recado.domain.dispatch.gates import GateTable
from recado.domain.messages.message import Cause, FailureCode, MessageEvent, MessageStatus, Priority, Report

RCS: Final = "rcs"


class RcsRoute(StrEnum):
    """What a caller chooses. `easy_otp_rcs` takes texts only."""

    EASY = "easy_rcs"
    OTP = "easy_otp_rcs"


class RcsReason(StrEnum):
    """Why a message did not arrive, as its record says it (`failureReason`)."""

    NOT_CAPABLE = "not_rcs_capable"
    INVALID_NUMBER = "invalid_number"
    CONTENT_REJECTED = "content_rejected"
    CARRIER_REJECTED = "carrier_rejected"
    BLACKLISTED = "blacklisted"
    EXPIRED = "expired"
    OPTED_OUT = "opted_out"
    WITHDRAWN = "withdrawn"
    PROVIDER_ERROR = "provider_error"
    OUTCOME_UNKNOWN = "outcome_unknown"


REFUSALS: Final = frozenset(
    {
        RcsReason.NOT_CAPABLE,
        RcsReason.INVALID_NUMBER,
        RcsReason.CONTENT_REJECTED,
        RcsReason.CARRIER_REJECTED,
        RcsReason.BLACKLISTED,
    }
)
"""What providers refuse with, those of its SMS too, besides the codes of every channel."""

_REASONS: Final[Mapping[str, RcsReason]] = {
    **{reason: reason for reason in RcsReason},
    FailureCode.RECIPIENT_UNREACHABLE: RcsReason.INVALID_NUMBER,
    FailureCode.POLICY_BLOCKED: RcsReason.BLACKLISTED,
    FailureCode.MEDIA_INVALID: RcsReason.CONTENT_REJECTED,
}


def reason_of(code: str | None) -> RcsReason | None:
    """The reason that a record shows for the code it failed with."""
    return None if code is None else _REASONS.get(code, RcsReason.PROVIDER_ERROR)


FALLBACK: Final = "fallback"
"""What is due after a departure: a delivery, else the SMS. In the details of a message, how that leaves."""
BY_SMS: Final = "sms"
"""The route of what an SMS carries: its lane sends through the gateways of SMS."""
DELIVERED_VIA: Final = "deliveredVia"
REVOKED: Final = "revoked"
"""In the details of a message that had left by RCS, and was revoked there: its price was captured."""
RICH: Final = "rich"

MOST_SHORT_TEXT: Final = 160
"""Characters of a text that costs less, where it has no suggestions."""

_S = MessageStatus
_E = MessageEvent

MACHINE: Final = Machine(
    "RCS message",
    {
        (_S.QUEUED, _E.CLAIM): _S.QUEUED,
        (_S.QUEUED, _E.RETURN_TO_QUEUE): _S.QUEUED,
        (_S.QUEUED, _E.EXPIRED): _S.FAILED,
        (_S.QUEUED, _E.SET_ASIDE): _S.FAILED,
        (_S.QUEUED, _E.OPTED_OUT): _S.FAILED,
        (_S.QUEUED, _E.WITHDRAWN): _S.FAILED,
        (_S.QUEUED, _E.ACCEPTED): _S.SENT,
        (_S.QUEUED, _E.REPORT_SENT): _S.SENT,
        (_S.QUEUED, _E.REFUSED): _S.FAILED,
        (_S.QUEUED, _E.UNANSWERED): _S.QUEUED,
        (_S.QUEUED, _E.REPEAT): _S.QUEUED,
        (_S.QUEUED, _E.OUTCOME_UNKNOWN): _S.FAILED,
        (_S.SENT, _E.REVOKED): _S.QUEUED,
        (_S.SENT, _E.REPORT_DELIVERED): _S.DELIVERED,
        (_S.SENT, _E.REPORT_READ): _S.READ,
        (_S.SENT, _E.REPORT_FAILED): _S.FAILED,
        (_S.DELIVERED, _E.REPORT_READ): _S.READ,
        (_S.FAILED, _E.LATE_SENT): _S.SENT,
        (_S.FAILED, _E.LATE_DELIVERED): _S.DELIVERED,
        (_S.FAILED, _E.LATE_READ): _S.READ,
    },
    initial={"accepted": _S.QUEUED},
)

REPORTS: Final[Reports] = {
    (_S.QUEUED, Report.SENT): (_E.REPORT_SENT,),
    (_S.QUEUED, Report.DELIVERED): (_E.REPORT_SENT, _E.REPORT_DELIVERED),
    (_S.QUEUED, Report.READ): (_E.REPORT_SENT, _E.REPORT_READ),
    (_S.QUEUED, Report.FAILED): (_E.REPORT_SENT, _E.REPORT_FAILED),
    (_S.SENT, Report.DELIVERED): (_E.REPORT_DELIVERED,),
    (_S.SENT, Report.READ): (_E.REPORT_READ,),
    (_S.SENT, Report.FAILED): (_E.REPORT_FAILED,),
    (_S.DELIVERED, Report.READ): (_E.REPORT_READ,),
}
LATE_REPORTS: Final[Reports] = {
    (_S.FAILED, Report.SENT): (_E.LATE_SENT,),
    (_S.FAILED, Report.DELIVERED): (_E.LATE_DELIVERED,),
    (_S.FAILED, Report.READ): (_E.LATE_READ,),
}

UNANSWERED: Final = Cause(
    RcsReason.OUTCOME_UNKNOWN, "the provider's answer was lost and no report came in 24 hours", certain=False
)

GATES: Final = GateTable(
    gates.ORGANIZATION_SUSPENDED,
    gates.OWNER_PAUSED,
    gates.QUIET_HOURS,
    gates.SLOWED_DOWN,
    gates.NO_CONNECTION,
    gates.RATE,
)

_TTL: Final = timedelta(hours=24)
_OTP_TTL: Final = timedelta(hours=1)
SHORTEST_WAIT, LONGEST_WAIT = 30, 86_400
USUAL_WAIT: Final[Mapping[RcsRoute, int]] = {RcsRoute.EASY: 3_600, RcsRoute.OTP: 60}
"""Seconds without a delivery after which the SMS leaves, where the caller names none."""
SMS_ROUTE_OF: Final[Mapping[RcsRoute, SmsRoute]] = {RcsRoute.EASY: SmsRoute.PREMIUM, RcsRoute.OTP: SmsRoute.OTP}
"""As what the SMS leaves, and is paid for (C25.3)."""
_SMS_KIND: Final = {SmsRoute.PREMIUM: SMS_PREMIUM, SmsRoute.OTP: SMS_OTP}


def category_of(route: RcsRoute, *, rich: bool, transactional: bool) -> str:
    """What the policy is asked with. `rich`: more than a short text."""
    return " ".join([route, *([RICH] if rich else []), *([TRANSACTIONAL] if transactional else [])])


def category_in(details: Mapping[str, Any]) -> str:
    """The category by the details of a message."""
    flags = {"rich": bool(details.get(RICH)), "transactional": bool(details.get(TRANSACTIONAL))}
    return category_of(RcsRoute(details.get("route", RcsRoute.EASY)), **flags)


def is_rich(text: str | None, *, card: bool, suggestions: bool) -> bool:
    """Whether it costs more than a short text (C25.3)."""
    return card or suggestions or text is None or len(text) > MOST_SHORT_TEXT


def sms_kind(route: RcsRoute) -> str:
    """What a segment of its SMS counts for."""
    return _SMS_KIND[SMS_ROUTE_OF[route]]


def _words(category: str | None) -> list[str]:
    return (category or RcsRoute.EASY).split(" ")


def _is_marketing(category: str | None) -> bool:
    return RcsRoute.OTP not in _words(category) and TRANSACTIONAL not in _words(category)


def _price_kind(category: str | None, byo: bool) -> str:
    words = _words(category)
    if RcsRoute.OTP in words:
        return RCS_OTP
    return RCS_OTHER if RICH in words else RCS_TEXT


def _ttl(category: str | None, priority: Priority) -> timedelta:
    return _OTP_TTL if RcsRoute.OTP in _words(category) else _TTL


def priority_of(route: RcsRoute) -> Priority:
    """One-time codes go before everything else."""
    return Priority.CRITICAL if route is RcsRoute.OTP else Priority.NORMAL


def asks_grant(route: RcsRoute) -> bool:
    """Whether only those get it who agreed, where an organization wants that (C12.5.5)."""
    return route is RcsRoute.EASY


def carried_by(details: Mapping[str, Any]) -> str:
    """What carries a message, or carried it: `rcs` or `sms`."""
    return str(details.get(DELIVERED_VIA, RCS))


def status_shown(status: str, sent_at: datetime | None) -> str:
    """The status of a record: between its revocation and its SMS a message that had left is still sent."""
    return _S.SENT if status == _S.QUEUED and sent_at is not None else status


def _fallback(details: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The SMS that it has still before it."""
    told: Mapping[str, Any] | None = details.get(FALLBACK)
    return None if carried_by(details) == SMS else told


def _after(details: Mapping[str, Any]) -> timedelta | None:
    fallback = _fallback(details)
    return None if fallback is None else timedelta(seconds=fallback["afterSeconds"])


def _onward(details: Mapping[str, Any], code: str) -> OnwardRoute | None:
    """A refusal sends it on by SMS; not that of who wants nothing from the sender any more."""
    fallback = _fallback(details)
    return None if fallback is None or code == FailureCode.OPTED_OUT else by_sms(details)


def by_sms(details: Mapping[str, Any], *, revoked: bool = False) -> OnwardRoute:
    """Its way by SMS. `revoked`: it had left by RCS before."""
    changed = {DELIVERED_VIA: SMS, **({REVOKED: True} if revoked else {})}
    return OnwardRoute(BY_SMS, changed, details[FALLBACK]["segments"])


def _taken(details: Mapping[str, Any]) -> TakenPrice | None:
    """What a departure takes of the dearer price, which is held (C25.2)."""
    own = details.get("price")
    if own is None:
        return None
    if carried_by(details) == RCS:
        return TakenPrice(own["coins"], 1, own["kind"])
    other = details[FALLBACK]["price"]
    if details.get(REVOKED):
        return TakenPrice(0, 0, None, adjusted=other["coins"] - own["coins"])
    return TakenPrice(other["coins"], details[FALLBACK]["segments"], other["kind"])


def priced(details: Mapping[str, Any], own: Price, sms: Price | None) -> dict[str, Any]:
    """The details, with what each way costs as it is accepted (C25.3). `sms`: of a segment, where it has that way."""
    told = {**details, "price": {"coins": own.coins, "kind": own.kind}}
    if sms is not None:
        price = {"coins": sms.coins * details[FALLBACK]["segments"], "kind": sms.kind}
        told[FALLBACK] = {**details[FALLBACK], "price": price}
    return told


def dearer(details: Mapping[str, Any]) -> int:
    """What is held of priced details: the price of the dearer way."""
    prices = [details["price"], *([details[FALLBACK]["price"]] if FALLBACK in details else [])]
    return max(int(price["coins"]) for price in prices)


def other_kind(details: Mapping[str, Any]) -> str | None:
    """What a segment of its SMS counts for, where it has that way."""
    return sms_kind(RcsRoute(details["route"])) if FALLBACK in details else None


def _as_sms(payload: Mapping[str, Any], details: Mapping[str, Any]) -> Carried:
    told = details[FALLBACK]
    form = {name: told[name] for name in ("route", "encoding", "length", "segments")}
    return Carried(
        {"text": {"body": payload[FALLBACK]["text"]}},
        {**form, **({TRANSACTIONAL: True} if details.get(TRANSACTIONAL) else {})},
    )


def _tells(status: str, facts: MessageFacts) -> Mapping[str, Any]:
    """What carries it, and why it did not arrive (C23.6)."""
    told: dict[str, Any] = {DELIVERED_VIA: carried_by(facts.details)}
    if status == _S.FAILED:
        told["failureReason"] = reason_of(facts.failure_code) or RcsReason.OUTCOME_UNKNOWN
    return told


POLICY: Final = Policy(
    channel=RCS,
    sender=SenderKind.ROUTE,
    default_route=RcsRoute.EASY,
    addresses=(AddressKind.PHONE,),
    scope="rcs:send",
    machine=MACHINE,
    gates=GATES,
    reports=REPORTS,
    late_reports=LATE_REPORTS,
    needs_window=lambda kind: False,
    subject_to_consent=_is_marketing,
    obeys_quiet_hours=lambda kind, category, priority: _is_marketing(category),
    ttl=_ttl,
    price_kind=_price_kind,
    unanswered=UNANSWERED,
    refusals=REFUSALS,
    events={_S.DELIVERED: "rcs.delivered", _S.READ: "rcs.read", _S.FAILED: "rcs.failed"},
    received=None,
    clicked="rcs.clicked",
    tells=_tells,
    opens_window=False,
    answers_opt_outs=True,
    nobody_there=frozenset({RcsReason.INVALID_NUMBER, FailureCode.RECIPIENT_UNREACHABLE}),
    after_sent={FALLBACK: AfterSent(delay=_after, holds_rest=True, elsewhere=True)},
    generic=False,
    heard_as=SMS,
    carriers={BY_SMS: SMS},
    carried=_as_sms,
    onward=_onward,
    taken=_taken,
    ways=Ways(other_kind, priced, dearer),
)
