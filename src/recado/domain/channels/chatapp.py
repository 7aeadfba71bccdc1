"""Chat-app, whose messages are templates, or free-form in the 24 hours after the person wrote (C14.5, C15.2, C15.4)."""

from datetime import timedelta
from typing import Final

from recado.domain.billing.prices import (
    CHATAPP_AUTHENTICATION,
    CHATAPP_FREE_FORM,
    CHATAPP_MARKETING,
    CHATAPP_PLATFORM,
    CHATAPP_UTILITY,
)
from recado.domain.channels.policy import AddressKind, Policy, SenderKind
from recado.domain.core.machine import Machine
from recado.domain.messages.message import MessageEvent, MessageStatus, Priority
from recado.domain.templates.template import TemplateCategory

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

AUTHENTICATION_TTL: Final = timedelta(minutes=10)
_TTL: Final[dict[Priority, timedelta]] = {
    Priority.CRITICAL: timedelta(hours=1),
    Priority.NORMAL: timedelta(hours=24),
    Priority.BULK: timedelta(hours=72),
}
_PRICE_KIND: Final = {
    None: CHATAPP_FREE_FORM,
    TemplateCategory.MARKETING: CHATAPP_MARKETING,
    TemplateCategory.UTILITY: CHATAPP_UTILITY,
    TemplateCategory.AUTHENTICATION: CHATAPP_AUTHENTICATION,
}


def _needs_window(kind: str) -> bool:
    return kind != TEMPLATE


def _subject_to_consent(category: TemplateCategory | None) -> bool:
    return category is TemplateCategory.MARKETING


def _obeys_quiet_hours(kind: str, category: TemplateCategory | None, priority: Priority) -> bool:
    """Marketing does, and all that is sent in bulk; a reply in the window never does."""
    return kind == TEMPLATE and (category is TemplateCategory.MARKETING or priority is Priority.BULK)


def _ttl(category: TemplateCategory | None, priority: Priority) -> timedelta:
    return AUTHENTICATION_TTL if category is TemplateCategory.AUTHENTICATION else _TTL[priority]


def _price_kind(category: TemplateCategory | None, byo: bool) -> str:
    return CHATAPP_PLATFORM if byo else _PRICE_KIND[category]


POLICY: Final = Policy(
    channel=CHATAPP,
    sender=SenderKind.NUMBER,
    address=AddressKind.PHONE,
    scope="messages:send",
    machine=MACHINE,
    needs_window=_needs_window,
    subject_to_consent=_subject_to_consent,
    obeys_quiet_hours=_obeys_quiet_hours,
    ttl=_ttl,
    price_kind=_price_kind,
    events={
        _S.SENT: "message.sent",
        _S.DELIVERED: "message.delivered",
        _S.READ: "message.read",
        _S.FAILED: "message.failed",
    },
    received="message.received",
)
