"""SMS, whose messages leave by a route that all organizations share, and cost by their segments (C16, C12.5.4)."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from recado.domain.billing.prices import SMS_DEDICATED, SMS_OTP, SMS_PREMIUM, region_of
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policy import AfterSent, MessageFacts, Policy, Reports, SenderKind
from recado.domain.core.machine import Machine
from recado.domain.dispatch import gates
from recado.domain.dispatch.gates import GateTable
from recado.domain.messages.message import (
    Cause,
    FailureCode,
    GenericStatus,
    MessageEvent,
    MessageStatus,
    Priority,
    Report,
)

SMS: Final = "sms"


class SmsRoute(StrEnum):
    """What a caller chooses: the price, and how it is carried."""

    PREMIUM = "premium"
    OTP = "otp"
    DEDICATED = "la_dedicada"  # from the sender that is one organization's


class SmsReason(StrEnum):
    """Why a message did not arrive, as its record says it."""

    INVALID_NUMBER = "invalid_number"
    CARRIER_REJECTED = "carrier_rejected"
    BLACKLISTED = "blacklisted"
    EXPIRED = "expired"
    INDETERMINATE = "indeterminate"
    ABANDONED = "abandoned"


REFUSALS: Final = frozenset({SmsReason.INVALID_NUMBER, SmsReason.CARRIER_REJECTED, SmsReason.BLACKLISTED})
"""What providers refuse with, besides the codes of every channel."""

_REASONS: Final[Mapping[str, SmsReason]] = {
    **{reason: reason for reason in SmsReason},
    FailureCode.RECIPIENT_UNREACHABLE: SmsReason.INVALID_NUMBER,
    FailureCode.POLICY_BLOCKED: SmsReason.BLACKLISTED,
    FailureCode.OPTED_OUT: SmsReason.ABANDONED,
    FailureCode.WITHDRAWN: SmsReason.ABANDONED,
    FailureCode.OUTCOME_UNKNOWN: SmsReason.INDETERMINATE,
}


SENDER: Final = r"^(\+?[0-9]{1,20}|[!-~]([ -~]{0,9}[!-~])?)$"
"""Whom a message may come from: a phone or a short code, or a name of at most 11 characters."""


def spellings(sender: str) -> tuple[str, ...]:
    """All forms of one sender: one says digits with the `+` of a phone, another without."""
    digits = sender.removeprefix("+")
    return (digits, f"+{digits}") if digits.isascii() and digits.isdigit() else (sender,)


def reason_of(code: str | None) -> SmsReason | None:
    """The reason that a record shows for the code it failed with: what has no word of its own, the carrier refused."""
    return None if code is None else _REASONS.get(code, SmsReason.CARRIER_REJECTED)


GATEWAYS: Final = ("gateway_a", "gateway_b")
"""Those of live, in the order in which they are preferred."""

OVERDUE_AFTER: Final = timedelta(hours=72)
UNREPORTED: Final = "report"
"""What is due after a departure: a report."""

_S = MessageStatus
_E = MessageEvent

MACHINE: Final = Machine(
    "SMS message",
    {
        (_S.QUEUED, _E.CLAIM): _S.SENDING,
        (_S.QUEUED, _E.EXPIRED): _S.FAILED,
        (_S.QUEUED, _E.OPTED_OUT): _S.FAILED,
        (_S.QUEUED, _E.SET_ASIDE): _S.FAILED,
        (_S.QUEUED, _E.WITHDRAWN): _S.FAILED,
        (_S.SENDING, _E.ACCEPTED): _S.SENT,
        (_S.SENDING, _E.REPORT_SENT): _S.SENT,
        (_S.SENDING, _E.RETURN_TO_QUEUE): _S.QUEUED,
        (_S.SENDING, _E.REFUSED): _S.FAILED,
        (_S.SENDING, _E.UNANSWERED): _S.SENDING,
        (_S.SENDING, _E.REPEAT): _S.SENDING,
        (_S.SENDING, _E.OUTCOME_UNKNOWN): _S.FAILED,
        (_S.SENT, _E.REPORT_DELIVERED): _S.DELIVERED,
        (_S.SENT, _E.REPORT_FAILED): _S.UNDELIVERED,
        (_S.SENT, _E.OVERDUE): _S.UNDELIVERED,
        (_S.UNDELIVERED, _E.LATE_DELIVERED): _S.DELIVERED,
        (_S.FAILED, _E.LATE_SENT): _S.SENT,
        (_S.FAILED, _E.LATE_DELIVERED): _S.DELIVERED,
    },
    initial={"accepted": _S.QUEUED, "inbound": _S.DELIVERED},
)

REPORTS: Final[Reports] = {
    (_S.SENDING, Report.SENT): (_E.REPORT_SENT,),
    (_S.SENDING, Report.DELIVERED): (_E.REPORT_SENT, _E.REPORT_DELIVERED),
    (_S.SENDING, Report.FAILED): (_E.REPORT_SENT, _E.REPORT_FAILED),
    (_S.SENT, Report.DELIVERED): (_E.REPORT_DELIVERED,),
    (_S.SENT, Report.FAILED): (_E.REPORT_FAILED,),
}
LATE_REPORTS: Final[Reports] = {
    (_S.UNDELIVERED, Report.DELIVERED): (_E.LATE_DELIVERED,),
    (_S.FAILED, Report.SENT): (_E.LATE_SENT,),
    (_S.FAILED, Report.DELIVERED): (_E.LATE_DELIVERED,),
}
"""Of what failed, or is undelivered, only because nothing was heard of it."""

UNANSWERED: Final = Cause(
    SmsReason.INDETERMINATE, "the gateway's answer was lost and no report came in 24 hours", certain=False
)
UNHEARD: Final = Cause(SmsReason.INDETERMINATE, "no report came in 72 hours", certain=False)

GATES: Final = GateTable(
    gates.ORGANIZATION_SUSPENDED,
    gates.OWNER_PAUSED,
    gates.QUIET_HOURS,
    gates.SLOWED_DOWN,
    gates.NO_CONNECTION,
    gates.RATE,
)
"""No route has a pace or a state of its own: the gateways have (C16.3)."""

_TTL: Final = timedelta(hours=24)
_OTP_TTL: Final = timedelta(hours=1)
_PRICE_KIND: Final[Mapping[SmsRoute, str]] = {
    SmsRoute.PREMIUM: SMS_PREMIUM,
    SmsRoute.OTP: SMS_OTP,
    SmsRoute.DEDICATED: SMS_DEDICATED,
}

TRANSACTIONAL: Final = "transactional"


def category_of(route: SmsRoute, *, transactional: bool) -> str:
    """What the policy is asked with: the route, and whether the message is an answer to what the person did."""
    return f"{route} {TRANSACTIONAL}" if transactional else route


def route_in(details: Mapping[str, Any] | None) -> SmsRoute:
    """The route that the details of a draft, or of a message, name."""
    return SmsRoute((details or {}).get("route", SmsRoute.PREMIUM))


def category_in(details: Mapping[str, Any] | None) -> str:
    """The category by these."""
    return category_of(route_in(details), transactional=bool((details or {}).get(TRANSACTIONAL)))


def _route(category: str | None) -> SmsRoute:
    return SmsRoute.PREMIUM if category is None else SmsRoute(category.partition(" ")[0])


def _is_marketing(category: str | None) -> bool:
    return _route(category) is not SmsRoute.OTP and not (category or "").endswith(f" {TRANSACTIONAL}")


def _ttl(category: str | None, priority: Priority) -> timedelta:
    return _OTP_TTL if _route(category) is SmsRoute.OTP else _TTL


def priority_of(route: SmsRoute) -> Priority:
    """One-time codes go before everything else; batches say `bulk` themselves (C16.3)."""
    return Priority.CRITICAL if route is SmsRoute.OTP else Priority.NORMAL


def asks_grant(route: SmsRoute) -> bool:
    """Whether only those get it who agreed, where an organization wants that (C12.5.5)."""
    return route is SmsRoute.PREMIUM


def _tells(status: str, facts: MessageFacts) -> Mapping[str, Any]:
    """What came in tells its text; what went out its route, size and region, and why it did not arrive (C23.6)."""
    if status == "received":
        return {"text": ((facts.content or {}).get("text") or {}).get("body")}
    told = {"route": facts.details.get("route"), "segments": facts.units, "region": region_of(facts.recipient)}
    if status in (_S.FAILED, _S.UNDELIVERED):
        # Only what was indeterminate is taken back by a late report, and its code is gone from the row then.
        told["reason"] = reason_of(facts.failure_code) or SmsReason.INDETERMINATE
    return told


POLICY: Final = Policy(
    channel=SMS,
    sender=SenderKind.ROUTE,
    default_route=SmsRoute.PREMIUM,
    addresses=(AddressKind.PHONE,),
    scope="sms:send",
    machine=MACHINE,
    gates=GATES,
    reports=REPORTS,
    late_reports=LATE_REPORTS,
    needs_window=lambda kind: False,
    subject_to_consent=_is_marketing,
    obeys_quiet_hours=lambda kind, category, priority: _is_marketing(category),
    ttl=_ttl,
    price_kind=lambda category, byo: _PRICE_KIND[_route(category)],
    unanswered=UNANSWERED,
    refusals=REFUSALS,
    events={_S.DELIVERED: "sms.delivered", _S.FAILED: "sms.failed", _S.UNDELIVERED: "sms.undelivered"},
    received="sms.received",
    clicked="sms.clicked",
    tells=_tells,
    opens_window=False,
    answers_opt_outs=False,
    nobody_there=frozenset({SmsReason.INVALID_NUMBER, FailureCode.RECIPIENT_UNREACHABLE}),
    shown={_S.UNDELIVERED: GenericStatus.FAILED},
    after_sent={
        UNREPORTED: AfterSent(delay=lambda details: OVERDUE_AFTER, event=_E.OVERDUE, cause=UNHEARD),
    },
)
