"""An RCS message as callers see it: hand-made dicts, because this runs once for each accepted message."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from recado.domain.channels.policies import masked_recipient
from recado.domain.channels.rcs import FALLBACK, RCS, carried_by, reason_of, status_shown
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.message import MessageStatus
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

_TIMES = (
    ("scheduled_at", "scheduledAt"),
    ("sent_at", "sentAt"),
    ("delivered_at", "deliveredAt"),
    ("read_at", "readAt"),
    ("failed_at", "failedAt"),
)


def rcs_view(message: Message, *, unmasked: bool) -> dict[str, Any]:
    """The record; fields without value are absent."""
    view = _view(
        message.id, message.env, message.recipient, status_shown(message.status, message.sent_at),
        message.details or {}, message.payload, unmasked=unmasked,
    )  # fmt: skip
    if message.status == MessageStatus.FAILED and (reason := reason_of(message.failure_code)) is not None:
        view["failureReason"] = reason
    for attribute, name in (("contact_id", "contactId"), ("campaign_id", "campaignId")):
        if (value := getattr(message, attribute)) is not None:
            view[name] = value
    if message.metadata is not None:
        view["metadata"] = orjson.Fragment(message.metadata)
    for attribute, name in _TIMES:
        at: datetime | None = getattr(message, attribute)
        if at is not None:
            view[name] = format_timestamp(at)
    return view


def created_rcs_view(message: Message, *, unmasked: bool) -> dict[str, Any]:
    """The answer to a repeat of the request that made the message: its price is in it (C25.2)."""
    view = rcs_view(message, unmasked=unmasked)
    if message.price_coins is not None:
        view["billing"] = {"coins": message.price_coins}
    view["replayed"] = True
    return view


def accepted_rcs_view(new: NewMessage, *, unmasked: bool) -> dict[str, Any]:
    """The answer to a message that was just accepted."""
    details = {} if new.details is None else orjson.loads(new.details)
    view = _view(new.id, new.env, new.recipient, MessageStatus.QUEUED, details, new.payload, unmasked=unmasked)
    if new.contact_id is not None:
        view["contactId"] = new.contact_id
    if new.campaign_id is not None:
        view["campaignId"] = new.campaign_id
    if new.metadata is not None:
        view["metadata"] = orjson.Fragment(new.metadata)
    if new.scheduled_at is not None:
        view["scheduledAt"] = format_timestamp(new.scheduled_at)
    if new.coins is not None:
        view["billing"] = {"coins": new.coins}
    view["replayed"] = False
    return view


def _view(
    message_id: str,
    env: str,
    recipient: str,
    status: str,
    details: Mapping[str, Any],
    payload: str | None,
    *,
    unmasked: bool,
) -> dict[str, Any]:
    said: dict[str, Any] = {} if payload is None else orjson.loads(payload)
    sms = said.pop(FALLBACK, None) or {}
    text = said.pop("text", None)
    view = {
        "id": message_id,
        "status": status,
        "env": env,
        "channel": carried_by(details),
        "route": details.get("route"),
        "to": recipient if unmasked else masked_recipient(RCS, recipient),
        "content": {**({} if text is None else {"text": text["body"]}), **said},
        "createdAt": format_timestamp(created_at(message_id)),
    }
    if (told := details.get(FALLBACK)) is not None:
        view[FALLBACK] = {**sms, "afterSeconds": told["afterSeconds"], "segments": told["segments"]}
    return view
