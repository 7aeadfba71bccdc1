"""E-mail: sent while its caller waits, or queued by a journey or a batch; bounces and complaints tell of it (C10)."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from recado.domain.billing.prices import EMAIL_RECIPIENT
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policy import MessageFacts, Policy, Reports, SenderKind
from recado.domain.core.machine import Machine
from recado.domain.dispatch import gates
from recado.domain.dispatch.gates import GateTable
from recado.domain.email.suppression import SuppressionReason
from recado.domain.messages.message import (
    Cause,
    FailureCode,
    GenericStatus,
    MessageEvent,
    MessageStatus,
    Priority,
    Report,
)

EMAIL: Final = "email"
ROUTE: Final = "mail"
"""What all e-mails of an environment leave by."""


class EmailReason(StrEnum):
    """Why a message did not arrive, or was not wanted, as its record says it."""

    INVALID_ADDRESS = "invalid_address"
    MAILBOX_FULL = "mailbox_full"
    SUPPRESSED = "suppressed"
    CONTENT_REJECTED = "content_rejected"
    COMPLAINT = "complaint"
    PROVIDER_ERROR = "provider_error"
    NO_VERIFIED_SENDER = "no_verified_sender"


class BounceType(StrEnum):
    """Whether an address that gave a message back may take the next one."""

    PERMANENT = "permanent"
    TEMPORARY = "temporary"


REFUSALS: Final = frozenset(
    {EmailReason.INVALID_ADDRESS, EmailReason.MAILBOX_FULL, EmailReason.SUPPRESSED, EmailReason.CONTENT_REJECTED}
)
"""What providers refuse with, or report, besides the codes of every channel."""
ANSWERED: Final = frozenset(
    {
        EmailReason.INVALID_ADDRESS,
        EmailReason.SUPPRESSED,
        EmailReason.CONTENT_REJECTED,
        FailureCode.RECIPIENT_UNREACHABLE,
        FailureCode.POLICY_BLOCKED,
    }
)
"""Refusals that say what is wrong with the message itself: a repeat gets the same answer (C6.2)."""
PERMANENT: Final = frozenset({EmailReason.INVALID_ADDRESS, EmailReason.SUPPRESSED, FailureCode.RECIPIENT_UNREACHABLE})
"""Codes of bounces after which the address gets nothing any more (C10.2.8)."""

_REASONS: Final[Mapping[str, EmailReason]] = {
    **{reason: reason for reason in EmailReason},
    FailureCode.RECIPIENT_UNREACHABLE: EmailReason.INVALID_ADDRESS,
    FailureCode.POLICY_BLOCKED: EmailReason.CONTENT_REJECTED,
    FailureCode.OPTED_OUT: EmailReason.SUPPRESSED,
}


def reason_of(code: str | None) -> EmailReason | None:
    """The reason that a record shows for the code it failed with."""
    return None if code is None else _REASONS.get(code, EmailReason.PROVIDER_ERROR)


def bounce_type(code: str | None) -> BounceType:
    """Of a bounce with this code."""
    return BounceType.PERMANENT if code in PERMANENT else BounceType.TEMPORARY


def bounce_code(code: str | None, told: str | None) -> str | None:
    """The code of a bounce, made to agree with what its provider `told`: `bounce_type` says the same of it.

    A temporary one says only whether the mailbox was full (C10.2.8).
    """
    permanent = told == BounceType.PERMANENT if told in set(BounceType) else code in PERMANENT
    if permanent:
        return code if code in PERMANENT else EmailReason.INVALID_ADDRESS
    return EmailReason.MAILBOX_FULL if code == EmailReason.MAILBOX_FULL else FailureCode.PROVIDER_ERROR


def suppresses(status: str, code: str | None) -> SuppressionReason | None:
    """Why an address gets nothing any more of which this is reported; None: it says nothing of the kind (C10.2.8)."""
    if status == Report.COMPLAINED:
        return SuppressionReason.COMPLAINT
    if status == Report.BOUNCED and bounce_type(code) is BounceType.PERMANENT:
        return SuppressionReason.BOUNCE
    return None


_S = MessageStatus
_E = MessageEvent

MACHINE: Final = Machine(
    "e-mail",
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
        (_S.QUEUED, _E.OUTCOME_UNKNOWN): _S.FAILED,
        (_S.SENT, _E.REPORT_DELIVERED): _S.DELIVERED,
        (_S.SENT, _E.REPORT_BOUNCED): _S.BOUNCED,
        (_S.SENT, _E.REPORT_COMPLAINED): _S.COMPLAINED,
        (_S.SENT, _E.REPORT_FAILED): _S.FAILED,
        (_S.DELIVERED, _E.REPORT_BOUNCED): _S.BOUNCED,
        (_S.DELIVERED, _E.REPORT_COMPLAINED): _S.COMPLAINED,
        (_S.FAILED, _E.LATE_SENT): _S.SENT,
        (_S.FAILED, _E.LATE_DELIVERED): _S.DELIVERED,
        (_S.FAILED, _E.LATE_COMPLAINED): _S.COMPLAINED,
    },
    initial={"accepted": _S.QUEUED, "inbound": _S.DELIVERED},
)

REPORTS: Final[Reports] = {
    (_S.QUEUED, Report.SENT): (_E.REPORT_SENT,),
    (_S.QUEUED, Report.DELIVERED): (_E.REPORT_SENT, _E.REPORT_DELIVERED),
    (_S.QUEUED, Report.BOUNCED): (_E.REPORT_SENT, _E.REPORT_BOUNCED),
    (_S.QUEUED, Report.COMPLAINED): (_E.REPORT_SENT, _E.REPORT_COMPLAINED),
    (_S.QUEUED, Report.FAILED): (_E.REPORT_SENT, _E.REPORT_FAILED),
    (_S.SENT, Report.DELIVERED): (_E.REPORT_DELIVERED,),
    (_S.SENT, Report.BOUNCED): (_E.REPORT_BOUNCED,),
    (_S.SENT, Report.COMPLAINED): (_E.REPORT_COMPLAINED,),
    (_S.SENT, Report.FAILED): (_E.REPORT_FAILED,),
    (_S.DELIVERED, Report.BOUNCED): (_E.REPORT_BOUNCED,),
    (_S.DELIVERED, Report.COMPLAINED): (_E.REPORT_COMPLAINED,),
}
LATE_REPORTS: Final[Reports] = {
    (_S.FAILED, Report.SENT): (_E.LATE_SENT,),
    (_S.FAILED, Report.DELIVERED): (_E.LATE_DELIVERED,),
    (_S.FAILED, Report.COMPLAINED): (_E.LATE_COMPLAINED,),
}

UNANSWERED: Final = Cause(
    FailureCode.OUTCOME_UNKNOWN, "the provider's answer was lost and no report came in 24 hours", certain=False
)

GATES: Final = GateTable(
    gates.ORGANIZATION_SUSPENDED,
    gates.OWNER_PAUSED,
    gates.SLOWED_DOWN,
    gates.NO_CONNECTION,
    gates.RATE,
)

TRANSACTIONAL: Final = "transactional"
"""What a message that answers what its person did is told apart by."""
_TTL: Final[Mapping[Priority, timedelta]] = {
    Priority.CRITICAL: timedelta(hours=1),
    Priority.NORMAL: timedelta(hours=24),
    Priority.BULK: timedelta(hours=72),
}
"""Of what is queued: by classes, as of every queue (C14.5)."""


def is_transactional(category: str | None) -> bool:
    """Whether neither a refusal nor quiet hours keep it (C10.2.7)."""
    return category == TRANSACTIONAL


def _tells(status: str, facts: MessageFacts) -> Mapping[str, Any]:
    """Its subject and whom it is from, and why it came back (C23.6)."""
    told = {name: facts.details[name] for name in ("subject", "from") if name in facts.details}
    if status == _S.BOUNCED:
        told["reason"] = reason_of(facts.failure_code) or EmailReason.PROVIDER_ERROR
        told["bounceType"] = bounce_type(facts.failure_code)
    elif status == _S.COMPLAINED:
        told["reason"] = EmailReason.COMPLAINT
    return told


POLICY: Final = Policy(
    channel=EMAIL,
    sender=SenderKind.ROUTE,
    default_route=ROUTE,
    addresses=(AddressKind.EMAIL,),
    scope="email:send",
    machine=MACHINE,
    gates=GATES,
    reports=REPORTS,
    late_reports=LATE_REPORTS,
    needs_window=lambda kind: False,
    subject_to_consent=lambda category: not is_transactional(category),
    obeys_quiet_hours=lambda kind, category, priority: False,
    ttl=lambda category, priority: _TTL[priority],
    price_kind=lambda category, byo: EMAIL_RECIPIENT,
    unanswered=UNANSWERED,
    refusals=REFUSALS | {EmailReason.NO_VERIFIED_SENDER},
    answered=ANSWERED,
    events={
        _S.DELIVERED: "email.delivered",
        _S.BOUNCED: "email.bounced",
        _S.COMPLAINED: "email.complained",
    },
    received=None,
    clicked="email.clicked",
    tells=_tells,
    opens_window=False,
    answers_opt_outs=False,
    nobody_there=frozenset(),
    shown={_S.BOUNCED: GenericStatus.FAILED, _S.COMPLAINED: GenericStatus.DELIVERED},
    direct=True,
)
