"""An RCS message as callers see it: hand-made dicts, because this runs once for each accepted message."""

from collections.abc import Mapping
from typing import Any

import orjson

from recado.domain.channels.policies import masked_recipient
from recado.domain.channels.rcs import FALLBACK, RCS, carried_by, reason_of, status_shown
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.message import MessageStatus
from recado.http.routes.messages.view_parts import members, show_made, show_moments, show_named
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

_MOMENTS = members("scheduled_at", "sent_at", "delivered_at", "read_at", "failed_at")


def rcs_view(message: Message, *, unmasked: bool) -> dict[str, Any]:
    """The record; fields without value are absent."""
    view = _view(
        message.id, message.env, message.recipient, status_shown(message.status, message.sent_at),
        message.details or {}, message.payload, unmasked=unmasked,
    )  # fmt: skip
    if message.status == MessageStatus.FAILED and (reason := reason_of(message.failure_code)) is not None:
        view["failureReason"] = reason
    show_named(view, message)
    show_moments(view, message, _MOMENTS)
    return view


def created_rcs_view(message: Message, *, unmasked: bool) -> dict[str, Any]:
    """The answer to a repeat of the request that made the message: its price is in it (C25.2)."""
    return show_made(rcs_view(message, unmasked=unmasked), message.price_coins, replayed=True)


def accepted_rcs_view(new: NewMessage, *, unmasked: bool) -> dict[str, Any]:
    """The answer to a message that was just accepted."""
    details = {} if new.details is None else orjson.loads(new.details)
    view = _view(new.id, new.env, new.recipient, MessageStatus.QUEUED, details, new.payload, unmasked=unmasked)
    show_named(view, new)
    if new.scheduled_at is not None:
        view["scheduledAt"] = format_timestamp(new.scheduled_at)
    return show_made(view, new.coins, replayed=False)


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
