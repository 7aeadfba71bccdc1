"""An e-mail as callers see it, and what they are told of one that its provider did not take (C10.2.4)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson

from recado.domain.channels.email import EMAIL, EmailReason, reason_of
from recado.domain.channels.policies import masked_recipient
from recado.domain.contacts.consent import OPTED_OUT
from recado.domain.core.errors import Problem
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.message import FailureCode, MessageStatus
from recado.http.routes.messages.view_parts import members, show_moments, show_named
from recado.services.messages.acceptance_rules import no_consent
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

_MOMENTS: Final = members("sent_at", "delivered_at", "failed_at", "opened_at", "clicked_at")


def email_view(message: Message, *, unmasked: bool) -> dict[str, Any]:
    """The record of an e-mail; fields without value are absent."""
    view = {
        **_common(message, message.details, message.status, unmasked=unmasked),
        "createdAt": format_timestamp(message.created_at),
        "organizationId": message.organization_id,
    }
    reason = EmailReason.COMPLAINT if message.status == MessageStatus.COMPLAINED else reason_of(message.failure_code)
    if reason is not None:
        view["reason"] = reason
    show_moments(view, message, _MOMENTS)
    view["updatedAt"] = format_timestamp(message.updated_at)
    return view


def created_email_view(message: Message, *, replayed: bool, unmasked: bool) -> dict[str, Any]:
    """The answer to the request that made it. The first one tells of the send alone, however fast reports come."""
    status = message.status if replayed else MessageStatus.SENT.value
    view = _common(message, message.details, status, unmasked=unmasked)
    return _created(view, message.created_at, message.sent_at, message.price_coins, replayed=replayed)


def sent_email_view(new: NewMessage, sent_at: datetime, *, unmasked: bool) -> dict[str, Any]:
    """The same of one that has left by this request, without a look at its row."""
    details = None if new.details is None else orjson.loads(new.details)
    view = _common(new, details, MessageStatus.SENT.value, unmasked=unmasked)
    return _created(view, new.accepted_at, sent_at, new.coins, replayed=False)


def _created(
    view: dict[str, Any], created_at: datetime, sent_at: datetime | None, coins: int | None, *, replayed: bool
) -> dict[str, Any]:
    view["createdAt"] = format_timestamp(created_at)
    view["replayed"] = replayed
    if sent_at is not None:
        view["sentAt"] = format_timestamp(sent_at)
    if coins is not None:
        view["billing"] = {"coins": coins}
    return view


def _common(
    message: Message | NewMessage, details: Mapping[str, Any] | None, status: str, *, unmasked: bool
) -> dict[str, Any]:
    details = details or {}
    view: dict[str, Any] = {
        "id": message.id,
        "status": status,
        "env": message.env,
        "to": message.recipient if unmasked else masked_recipient(EMAIL, message.recipient),
        "bodyBytes": details.get("bodyBytes", 0),
    }
    for name in ("from", "subject"):
        if name in details:
            view[name] = details[name]
    show_named(view, message)
    return view


class _Told(NamedTuple):
    """`meta`: besides the message's id and the reason."""

    code: str
    detail: str
    meta: Mapping[str, str] = {}


_CONTENT: Final = _Told("CONTENT_REJECTED", "The provider refused the content of the e-mail.")
_ADDRESS: Final = _Told("CONTENT_REJECTED", "The provider refused the address: it cannot exist.")
_REFUSED: Final[Mapping[str, _Told]] = {
    EmailReason.SUPPRESSED: _Told(
        "RECIPIENT_SUPPRESSED", "The address gets no e-mail any more: it is suppressed.", {"motivo": "suppressed"}
    ),
    EmailReason.CONTENT_REJECTED: _CONTENT,
    FailureCode.POLICY_BLOCKED: _CONTENT,
    EmailReason.INVALID_ADDRESS: _ADDRESS,
    FailureCode.RECIPIENT_UNREACHABLE: _ADDRESS,
    EmailReason.NO_VERIFIED_SENDER: _Told(
        "SENDER_NOT_VERIFIED", "No verified sender covers `from`; without `from`, none is the default."
    ),
}
_FAILED: Final = _Told("DEPENDENCY_FAILED", "The provider did not take the e-mail.")


def refusal_of(message: Message, headers: Mapping[str, str] | None = None) -> Problem | None:
    """What the caller is told in place of the e-mail; None where it left (C10.2.4).

    What is still queued has had no answer in time: a report may yet say that it left. `headers`: of a repeat.
    """
    if message.status == MessageStatus.QUEUED:
        detail = (
            "The provider has not answered in time: the e-mail may leave yet. Read it, or repeat with the same key."
        )
        return Problem("PROVIDER_TIMEOUT", detail, meta={"messageId": message.id})
    if message.status != MessageStatus.FAILED or message.sent_at is not None:
        return None
    code = message.failure_code or ""
    reason = str(reason_of(code) or EmailReason.PROVIDER_ERROR)
    if code == FailureCode.OPTED_OUT:
        return no_consent(OPTED_OUT, messageId=message.id, reason=reason)
    told = _REFUSED.get(code, _FAILED)
    return Problem(
        told.code, told.detail, meta={**told.meta, "messageId": message.id, "reason": reason}, headers=headers
    )
