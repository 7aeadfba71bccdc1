"""Chat-app, whose messages are templates, or free-form in the 24 hours after the person wrote (C14.5, C15.2, C15.4)."""

from datetime import datetime, timedelta
from typing import Final

from recado.domain.billing.prices import (
    CHATAPP_AUTHENTICATION,
    CHATAPP_FREE_FORM,
    CHATAPP_MARKETING,
    CHATAPP_PLATFORM,
    CHATAPP_UTILITY,
)
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policy import Policy, Reports, SenderKind
from recado.domain.core.machine import Machine
from recado.domain.dispatch import gates
from recado.domain.dispatch.gates import (
    Asked,
    ClassGate,
    Fail,
    GateTable,
    Hold,
    MessageGate,
    Release,
    SenderGate,
    SenderState,
)
from recado.domain.messages.message import (
    BULK,
    CRITICAL,
    Cause,
    FailureCode,
    MessageEvent,
    MessageStatus,
    Priority,
    Report,
    WaitReason,
)
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.templates.template import TemplateCategory, TemplateStatus

CHATAPP: Final = "chatapp"
TEMPLATE: Final = "template"
"""The type of what is not free-form."""

_S = MessageStatus
_E = MessageEvent

MACHINE: Final = Machine(
    "message",
    {
        (_S.QUEUED, _E.CLAIM): _S.SENDING,
        (_S.QUEUED, _E.EXPIRED): _S.FAILED,
        (_S.QUEUED, _E.WINDOW_CLOSED): _S.FAILED,
        (_S.QUEUED, _E.TEMPLATE_UNAVAILABLE): _S.FAILED,
        (_S.QUEUED, _E.OPTED_OUT): _S.FAILED,
        (_S.QUEUED, _E.SET_ASIDE): _S.FAILED,
        (_S.QUEUED, _E.WITHDRAWN): _S.ARCHIVED,
        (_S.SENDING, _E.ACCEPTED): _S.SENT,
        (_S.SENDING, _E.REPORT_SENT): _S.SENT,
        (_S.SENDING, _E.RETURN_TO_QUEUE): _S.QUEUED,
        (_S.SENDING, _E.REFUSED): _S.FAILED,
        (_S.SENDING, _E.UNANSWERED): _S.SENDING,
        (_S.SENDING, _E.REPEAT): _S.SENDING,
        (_S.SENDING, _E.OUTCOME_UNKNOWN): _S.FAILED,
        (_S.SENT, _E.REPORT_DELIVERED): _S.DELIVERED,
        (_S.SENT, _E.REPORT_READ): _S.READ,
        (_S.SENT, _E.REPORT_FAILED): _S.FAILED,
        (_S.DELIVERED, _E.REPORT_READ): _S.READ,
        (_S.DELIVERED, _E.OPENED): _S.READ,
        (_S.FAILED, _E.ARCHIVE): _S.ARCHIVED,
        (_S.FAILED, _E.LATE_SENT): _S.SENT,
        (_S.FAILED, _E.LATE_DELIVERED): _S.DELIVERED,
        (_S.FAILED, _E.LATE_READ): _S.READ,
    },
    initial={"accepted": _S.QUEUED, "inbound": _S.DELIVERED},
)

REPORTS: Final[Reports] = {
    (_S.SENDING, Report.SENT): (_E.REPORT_SENT,),
    (_S.SENDING, Report.DELIVERED): (_E.REPORT_SENT, _E.REPORT_DELIVERED),
    (_S.SENDING, Report.READ): (_E.REPORT_SENT, _E.REPORT_READ),
    (_S.SENDING, Report.FAILED): (_E.REPORT_SENT, _E.REPORT_FAILED),
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
    FailureCode.OUTCOME_UNKNOWN, "the provider's answer was lost and no report came in 24 hours", certain=False
)

AUTHENTICATION_TTL: Final = timedelta(minutes=10)
TTL: Final[dict[Priority, timedelta]] = {
    Priority.CRITICAL: timedelta(hours=1),
    Priority.NORMAL: timedelta(hours=24),
    Priority.BULK: timedelta(hours=72),
}
_PRICE_KIND: Final[dict[str | None, str]] = {
    None: CHATAPP_FREE_FORM,
    TemplateCategory.MARKETING: CHATAPP_MARKETING,
    TemplateCategory.UTILITY: CHATAPP_UTILITY,
    TemplateCategory.AUTHENTICATION: CHATAPP_AUTHENTICATION,
}


_NOT_SENDING = frozenset({NumberStatus.PENDING, NumberStatus.AVAILABLE, NumberStatus.DISCONNECTED})
_TEMPLATE_GONE = frozenset({TemplateStatus.REJECTED, TemplateStatus.DISABLED})
TEMPLATE_WAITS: Final = frozenset(TemplateStatus) - _TEMPLATE_GONE - {TemplateStatus.APPROVED}
"""States of a template in which its messages wait."""


def _template_state(state: SenderState, now: datetime, asked: Asked) -> Hold | Fail | None:
    template = asked.template
    status = None if template is None else template.status
    if status is TemplateStatus.APPROVED:
        return None
    if status is None or status in _TEMPLATE_GONE:
        return Fail(FailureCode.TEMPLATE_UNAVAILABLE, "the template was rejected, disabled or deleted")
    return Hold(WaitReason.TEMPLATE_STATE)


def _out_of_service(state: SenderState, now: datetime) -> Hold | None:
    return Hold(WaitReason.NUMBER_STATE) if state.status in _NOT_SENDING else None


def _flagged(state: SenderState, now: datetime) -> Hold | None:
    return Hold(WaitReason.NUMBER_STATE) if state.status is NumberStatus.FLAGGED else None


def _flagged_for_others(state: SenderState, now: datetime, asked: Asked) -> Hold | None:
    if state.status is NumberStatus.FLAGGED and asked.klass != CRITICAL:
        return Hold(WaitReason.NUMBER_STATE)
    return None


def _red(state: SenderState, now: datetime) -> Hold | None:
    return Hold(WaitReason.QUALITY) if state.quality is QualityRating.RED else None


_R, _BY = WaitReason, Release
GATES: Final = GateTable(
    gates.OPERATOR_PAUSED,
    gates.ORGANIZATION_SUSPENDED,
    gates.OWNER_PAUSED,
    gates.QUIET_BULK,
    gates.QUIET_HOURS,
    MessageGate(_R.TEMPLATE_STATE, _BY.TEMPLATE, _template_state, replies_pass=True),
    SenderGate(_R.NUMBER_STATE, _BY.SENDER, _out_of_service),
    ClassGate(_R.NUMBER_STATE, _BY.SENDER, BULK, _flagged),
    MessageGate(_R.NUMBER_STATE, _BY.SENDER, _flagged_for_others, replies_pass=True),
    ClassGate(_R.QUALITY, _BY.SENDER, BULK, _red),
    MessageGate(_R.TIER_LIMIT, _BY.MOMENT | _BY.SENDER, None),
    gates.SLOWED_DOWN,
    gates.NO_CONNECTION,
    SenderGate(_R.DAILY_LIMIT, _BY.MOMENT | _BY.SENDER, None),
    MessageGate(_R.PAIR_LIMIT, _BY.MOMENT, None),
    gates.RATE,
)
"""In the order of C14.5."""


def _needs_window(kind: str) -> bool:
    return kind != TEMPLATE


def _subject_to_consent(category: str | None) -> bool:
    return category is TemplateCategory.MARKETING


def _obeys_quiet_hours(kind: str, category: str | None, priority: Priority) -> bool:
    """Marketing does, and all that is sent in bulk; a reply in the window never does."""
    return kind == TEMPLATE and (category is TemplateCategory.MARKETING or priority is Priority.BULK)


def _ttl(category: str | None, priority: Priority) -> timedelta:
    return AUTHENTICATION_TTL if category is TemplateCategory.AUTHENTICATION else TTL[priority]


def _price_kind(category: str | None, byo: bool) -> str:
    return CHATAPP_PLATFORM if byo else _PRICE_KIND[category]


POLICY: Final = Policy(
    channel=CHATAPP,
    sender=SenderKind.NUMBER,
    addresses=(AddressKind.PHONE, AddressKind.SCOPED_USER),
    scope="messages:send",
    machine=MACHINE,
    gates=GATES,
    reports=REPORTS,
    late_reports=LATE_REPORTS,
    needs_window=_needs_window,
    subject_to_consent=_subject_to_consent,
    obeys_quiet_hours=_obeys_quiet_hours,
    ttl=_ttl,
    price_kind=_price_kind,
    unanswered=UNANSWERED,
    events={
        _S.SENT: "message.sent",
        _S.DELIVERED: "message.delivered",
        _S.READ: "message.read",
        _S.FAILED: "message.failed",
    },
    received="message.received",
    opens_window=True,
    answers_opt_outs=True,
    nobody_there=frozenset({FailureCode.RECIPIENT_UNREACHABLE}),
)
