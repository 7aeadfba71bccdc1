"""A message as callers see it: hand-made dicts, because this runs once for each accepted message.

JSON columns are passed on as the texts that they are; recipients are masked without `pii:full` (C2.5).
"""

from datetime import timedelta
from typing import Any

import orjson

from recado.domain.channels.policies import POLICIES, masked_recipient, sender_field, shown
from recado.domain.core.ids import created_at, time_in
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.message import CLASSES, WaitReason
from recado.http.routes.messages.view_parts import members, show_made, show_moments, show_texts
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

_NO_PAYLOAD = frozenset(each.channel for each in POLICIES.values() if each.direct)
"""Whose content is in no answer, also where its row holds what it is made of (C15.1)."""
_MILLISECOND = timedelta(milliseconds=1)
_PRIORITIES = tuple(priority.value for priority in CLASSES)
_MOMENTS = members("scheduled_at", "sent_at", "delivered_at", "read_at", "failed_at")
_TEXTS = members(
    "contact_id",
    "campaign_id",
    "template_id",
    "batch_id",
    "replaced_by",
    "last_error",
    "original_error",
    "provider_message_id",
    "sent_by_account_id",
    "sent_by_name",
)
_DOCUMENTS = (
    ("metadata", "metadata"),
    ("payload", "payload"),
    ("template_vars", "templateVars"),
    ("link_origin", "origemDoLink"),
    ("media_storage", "mediaStorage"),
)


def message_view(message: Message, *, unmasked: bool) -> dict[str, Any]:
    """The record of a message (C15.1); fields without value are absent."""
    view: dict[str, Any] = {
        "id": message.id,
        "organizationId": message.organization_id,
        "channel": message.channel,
        "to": message.recipient if unmasked else masked_recipient(message.channel, message.recipient),
        "type": message.type,
        "direction": message.direction,
        "priority": _PRIORITIES[message.klass],
        "status": shown(message.channel, message.status),
        "force": message.force,
        "reprocessed": message.reprocessed,
        "attempts": message.attempts,
        "createdAt": format_timestamp(message.created_at),
        # The ids of a batch's messages are made after the moment that its request counts as.
        "updatedAt": format_timestamp(max(message.updated_at, message.created_at)),
    }
    if message.sender_id is not None and (field := sender_field(message.channel)) is not None:
        view[field] = message.sender_id
    show_texts(view, message, _TEXTS)
    for attribute, name in _DOCUMENTS:
        value = getattr(message, attribute)
        if value is not None and not (name == "payload" and message.channel in _NO_PAYLOAD):
            view[name] = orjson.Fragment(value)
    show_moments(view, message, _MOMENTS)
    return view


def waits_view(message: Message) -> list[dict[str, Any]]:
    """What a message that has left waited for, and how long: its moment first, then the longest (C34.4)."""
    waits = sorted((message.waits or {}).items(), key=lambda each: (-each[1], each[0]))
    if message.sent_at is not None and message.scheduled_at is not None:
        until = min(message.scheduled_at, message.sent_at)
        if until > message.created_at:
            waits.insert(0, (WaitReason.SCHEDULED, (until - message.created_at) // _MILLISECOND))
    return [{"reason": reason, "ms": ms} for reason, ms in waits]


def created_view(message: Message, *, replayed: bool, unmasked: bool) -> dict[str, Any]:
    """The answer to the request that made the message, or would have: its price is in it (C25.2)."""
    return show_made(message_view(message, unmasked=unmasked), message.price_coins, replayed=replayed)


def masked(view: dict[str, Any]) -> dict[str, Any]:
    """An unmasked view as a caller without `pii:full` sees it."""
    return {**view, "to": masked_recipient(view["channel"], view["to"])}


class AcceptedView:
    """Renders the answer to a message that was just accepted; what messages of one millisecond share is kept."""

    __slots__ = ("_at_text", "_time")

    def __init__(self) -> None:
        self._time = ""  # as ids have it
        self._at_text = ""

    def render(self, new: NewMessage, *, unmasked: bool) -> bytes:
        """The JSON of the record as it was committed, with `replayed: false`."""
        time = time_in(new.id)
        if time != self._time:
            self._time = time
            self._at_text = format_timestamp(created_at(new.id))
        view: dict[str, Any] = {
            "id": new.id,
            "organizationId": new.organization_id,
            "channel": new.channel,
            "to": new.recipient if unmasked else masked_recipient(new.channel, new.recipient),
            "type": new.type,
            "direction": "outbound",
            "priority": _PRIORITIES[new.klass],
            "status": "queued",
            "force": new.force,
            "reprocessed": False,
            "attempts": 0,
            "createdAt": self._at_text,
            "updatedAt": self._at_text,
        }
        if (field := sender_field(new.channel)) is not None:
            view[field] = new.sender_id
        if new.contact_id is not None:
            view["contactId"] = new.contact_id
        if new.campaign_id is not None:
            view["campaignId"] = new.campaign_id
        if new.template_id is not None:
            view["templateId"] = new.template_id
        if new.metadata is not None:
            view["metadata"] = orjson.Fragment(new.metadata)
        if new.payload is not None:
            view["payload"] = orjson.Fragment(new.payload)
        if new.template_vars is not None:
            view["templateVars"] = orjson.Fragment(new.template_vars)
        if new.sent_by is not None:
            view["sentByAccountId"], view["sentByName"] = new.sent_by
        if new.scheduled_at is not None:
            view["scheduledAt"] = format_timestamp(new.scheduled_at)
        return orjson.dumps(show_made(view, new.coins, replayed=False))
