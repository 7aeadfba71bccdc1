"""What a delivery says: the envelope (C23.5) and the payload of each event (C23.6), from the rows as they are.

A message's event tells the status that its name says, with the moments that belong to it: those are filled once, so
that every delivery of an event says the same.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from recado.domain.channels.policies import POLICIES, masked_recipient, sender_field
from recado.domain.channels.policy import MessageFacts
from recado.domain.core.events import API_VERSION
from recado.domain.core.ids import created_at
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.message import FAILURES
from recado.storage.core.crypto import KeyRing
from recado.storage.webhooks.deliveries import Told
from recado.storage.webhooks.sealed_phones import hides, shown

# Columns in the order of the reference, and which moments an event of that status implies.
_REFERENCES = (
    ("contact_id", "contactId"),
    ("contact_external_id", "contactExternalId"),
    ("campaign_id", "campaignId"),
    ("template_id", "templateId"),
    ("batch_id", "batchId"),
)
_MOMENTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "sent": (("scheduled_at", "scheduledAt"), ("sent_at", "sentAt")),
    "delivered": (("scheduled_at", "scheduledAt"), ("sent_at", "sentAt"), ("delivered_at", "deliveredAt")),
    "read": (
        ("scheduled_at", "scheduledAt"),
        ("sent_at", "sentAt"),
        ("delivered_at", "deliveredAt"),
        ("read_at", "readAt"),
    ),
    "failed": (("scheduled_at", "scheduledAt"), ("sent_at", "sentAt")),
    "undelivered": (("scheduled_at", "scheduledAt"), ("sent_at", "sentAt")),
    "bounced": (("sent_at", "sentAt"), ("delivered_at", "deliveredAt")),
    "complained": (("sent_at", "sentAt"), ("delivered_at", "deliveredAt")),
}
_DONE_BY_PEOPLE = ("clicked", "opened")  # no status of a message: which one it had then is in the event's data
_FAILURES = frozenset(state.value for state in FAILURES)
_INBOUND = (("delivered_at", "deliveredAt"),)
# A failure is taken back only where the outcome was unknown; then its text is gone from the row.
_TAKEN_BACK = "outcome_unknown: no report came within 24 hours"
_EMPTY = orjson.Fragment(b"{}")


def envelope(told: Told, organization_id: str, *, unmasked: KeyRing | None) -> bytes:
    """The body of a delivery: compact UTF-8, keys in the order of C23.5.

    `unmasked`: with personal data, which these keys open; raises Tampered. None: without.
    """
    if told.message_id is not None:
        data = _message(told, unmasked is not None)
    else:
        data = _stored(told, organization_id, unmasked)
    return enveloped(data, organization_id, event_id=told.event_id, event=told.type, env=told.env, test=told.test)


def enveloped(data: Any, organization_id: str, *, event_id: str, event: str, env: str, test: bool = False) -> bytes:
    """Data in the envelope. `test`: they are an example."""
    body: dict[str, Any] = {
        "id": event_id,
        "type": event,
        "env": env,
        "organizationId": organization_id,
        "createdAt": format_timestamp(created_at(event_id)),
        "apiVersion": API_VERSION,
    }
    if test:
        body["test"] = True
    body["data"] = data
    return orjson.dumps(body)


def _stored(told: Told, organization_id: str, unmasked: KeyRing | None) -> Any:
    if told.data is None:
        return _EMPTY
    if not hides(told.data):
        return orjson.Fragment(told.data)
    return shown(told.data, unmasked, organization_id=organization_id, event_id=told.event_id)


def _message(told: Told, unmasked: bool) -> dict[str, Any]:
    channel, recipient, message_id = told.channel, told.recipient, told.message_id
    if channel is None or recipient is None or message_id is None:
        return {"id": message_id}  # the message is past its time; the event is told all the same
    status = told.type.rpartition(".")[2]
    received = status == "received"
    done = orjson.loads(told.data) if status in _DONE_BY_PEOPLE and told.data is not None else {}
    then = done.get("status", status)
    data: dict[str, Any] = {
        "id": message_id,
        "channel": channel,
        "direction": told.direction,
        "type": told.message_type,
        "status": "delivered" if received else then,
        "to": recipient if unmasked else masked_recipient(channel, recipient),
    }
    if told.sender_id is not None and (field := sender_field(channel)) is not None:
        data[field] = told.sender_id
    for column, name in _REFERENCES:
        value: str | None = getattr(told, column)
        if value is not None:
            data[name] = value
    data["metadata"] = _EMPTY if told.metadata is None else orjson.Fragment(told.metadata)
    if told.provider_message_id is not None:
        data["providerMessageId"] = told.provider_message_id
    data["createdAt"] = format_timestamp(created_at(message_id))
    for column, name in _INBOUND if received else _MOMENTS.get(then, ()):
        moment: datetime | None = getattr(told, column)
        if moment is not None:
            data[name] = format_timestamp(moment)
    if then in _FAILURES:
        data["failedAt"] = format_timestamp(told.failed_at or created_at(told.event_id))
    policy = POLICIES.get(channel)
    if status in _DONE_BY_PEOPLE:
        if status == "opened" and policy is not None and policy.tells is not None:
            data |= policy.tells(status, _facts(told, recipient))
        data |= done
    elif policy is not None and policy.tells is not None:
        data |= policy.tells(status, _facts(told, recipient))
    elif status == "failed":
        data["lastError"] = told.message_error or _TAKEN_BACK
        data["attempts"] = told.message_attempts
    elif received:
        data["payload"] = None if told.payload is None else orjson.Fragment(told.payload)
        if told.data is not None:  # the contact, and what is answered
            data |= orjson.loads(told.data)
    return data


def _facts(told: Told, recipient: str) -> MessageFacts:
    content = None if told.payload is None else orjson.loads(told.payload)
    return MessageFacts(recipient, told.details or {}, told.units or 1, told.failure_code, content)
