"""An SMS as callers see it: hand-made dicts, because this runs once for each accepted message."""

from collections.abc import Mapping
from typing import Any

import orjson

from recado.domain.billing.prices import region_of
from recado.domain.channels.policies import masked_recipient
from recado.domain.channels.sms import GATEWAYS, SMS, reason_of
from recado.domain.channels.source import SANDBOX
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.message import MessageStatus
from recado.http.routes.messages.view_parts import members, show_made, show_moments, show_named
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

_MOMENTS = members("scheduled_at", "sent_at", "delivered_at", "failed_at")


def sms_view(message: Message, *, unmasked: bool) -> dict[str, Any]:
    """The record of an SMS; fields without value are absent."""
    view = _view(
        message.id, message.env, message.recipient, message.status, message.details or {}, message.units,
        message.gateway, unmasked=unmasked,
    )  # fmt: skip
    reason = reason_of(message.failure_code)
    if reason is not None:
        view["reason"] = reason
    show_named(view, message)
    if message.receipt:
        view["providerReceipt"] = _receipt(message.receipt, unmasked=unmasked)
    show_moments(view, message, _MOMENTS)
    return view


def created_sms_view(message: Message, *, replayed: bool, unmasked: bool) -> dict[str, Any]:
    """The answer to the request that made the message before: its price is in it (C25.2)."""
    return show_made(sms_view(message, unmasked=unmasked), message.price_coins, replayed=replayed)


def accepted_sms_view(new: NewMessage, *, unmasked: bool) -> dict[str, Any]:
    """The answer to a message that was just accepted."""
    details = {} if new.details is None else orjson.loads(new.details)
    view = _view(
        new.id, new.env, new.recipient, MessageStatus.QUEUED, details, new.units, None, unmasked=unmasked
    )  # fmt: skip
    show_named(view, new)
    if new.scheduled_at is not None:
        view["scheduledAt"] = format_timestamp(new.scheduled_at)
    return show_made(view, new.coins, replayed=False)


def provider_of(env: str, gateway: str | None) -> str:
    """Who carries it: until it has left, the gateway that is preferred."""
    return SANDBOX if env == "test" else gateway or GATEWAYS[0]


def _view(
    message_id: str,
    env: str,
    recipient: str,
    status: str,
    details: Mapping[str, Any],
    segments: int,
    gateway: str | None,
    *,
    unmasked: bool,
) -> dict[str, Any]:
    return {
        "id": message_id,
        "status": status,
        "env": env,
        "route": details.get("route"),
        "region": region_of(recipient),
        "to": recipient if unmasked else masked_recipient(SMS, recipient),
        "provider": provider_of(env, gateway),
        "encoding": details.get("encoding"),
        "length": details.get("length"),
        "segments": segments,
        "createdAt": format_timestamp(created_at(message_id)),
    }


def _receipt(receipt: Mapping[str, Any], *, unmasked: bool) -> Mapping[str, Any]:
    to = receipt.get("to")
    return receipt if unmasked or to is None else {**receipt, "to": masked_recipient(SMS, to)}
