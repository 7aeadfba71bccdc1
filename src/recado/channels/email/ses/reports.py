"""What SES reports of an e-mail: to events (C29.2). Pure.

Opens and clicks are passed over: the links and the image are ours (C27).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from recado.channels.core.callback_json import callback_json
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import Event, ReportStatus, Status
from recado.channels.core.fields import Text256, Time, object_in, text_or_none
from recado.channels.core.reading import Shape, field, json_object
from recado.domain.channels.email import EmailReason

TAG: Final = "recado_id"
"""The tag that carries our message id."""

_KEPT_BACK: Final = frozenset({"Suppressed", "OnAccountSuppressionList", "OnTenantSuppressionList"})
"""Bounces and complaints of messages that SES did not send, for the address had one before."""
_TEXT: Final = Shape[str](Text256)
_TIME: Final = Shape[Any](Time)
_LONGEST_TAG: Final = 64

_Meaning = tuple[ReportStatus, str | None]


def _bounce(bounce: Mapping[str, Any]) -> _Meaning:
    kind = text_or_none(bounce.get("bounceSubType"), 64) or ""
    if bounce.get("bounceType") == "Permanent":
        return "bounced", EmailReason.SUPPRESSED if kind in _KEPT_BACK else EmailReason.INVALID_ADDRESS
    return "bounced", EmailReason.MAILBOX_FULL if kind == "MailboxFull" else EmailReason.PROVIDER_ERROR


def _complaint(complaint: Mapping[str, Any]) -> _Meaning | None:
    if complaint.get("complaintFeedbackType") == "not-spam":
        return None
    if complaint.get("complaintSubType") in _KEPT_BACK:
        return "bounced", EmailReason.SUPPRESSED
    return "complained", None


_KINDS: Final[Mapping[str, tuple[str, Callable[[Mapping[str, Any]], _Meaning | None]]]] = {
    "Send": ("send", lambda _: ("sent", None)),
    "Delivery": ("delivery", lambda _: ("delivered", None)),
    "Bounce": ("bounce", _bounce),
    "Complaint": ("complaint", _complaint),
    "Reject": ("reject", lambda _: ("failed", EmailReason.CONTENT_REJECTED)),
    "Rendering Failure": ("failure", lambda _: ("failed", EmailReason.PROVIDER_ERROR)),
}
"""By the type of a report: where its details are, and what they mean. Whatever is not here, a delay too, is nothing."""


def events_of(message: str) -> Sequence[Event]:
    """The events in the message of an envelope; raises `MalformedCallback`."""
    told = json_object(callback_json(message.encode(errors="replace")))
    kind = text_or_none(told.get("eventType", told.get("notificationType")), 64)
    if kind is None:
        # The text by which SES tries a topic that was just entered.
        return ()
    if (known := _KINDS.get(kind)) is None:
        return ()
    name, meaning = known
    mail, details = _object(told, "mail"), object_in(told.get(name))
    if (meant := meaning(details)) is None:
        return ()
    status, code = meant
    at = _TIME.read(details.get("timestamp", mail.get("timestamp")))
    return (Status(status, at, field(_TEXT, mail, "messageId"), _reference(mail), code),)


def _object(told: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = told.get(name)
    if not isinstance(found, dict):
        raise MalformedCallback(name)
    return found


def _reference(mail: Mapping[str, Any]) -> str | None:
    found = object_in(mail.get("tags")).get(TAG)
    return text_or_none(found[0], _LONGEST_TAG) if isinstance(found, list) and found else None
