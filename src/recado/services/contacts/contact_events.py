"""What webhooks are told of contacts (C23.6). Phones are given in the clear, and stored encrypted (C30.5)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from recado.domain.contacts.consent import ConsentUpdate
from recado.domain.contacts.contact import Contact
from recado.domain.core.masking import mask_phone
from recado.storage.webhooks.events import RecordEvent
from recado.storage.webhooks.sealed_phones import SEALED

CREATED = "contact.created"
CONSENT_CHANGED = "contact.consent_changed"
OPTED_OUT = "contact.opted_out"

_UNSAID = "api"  # the source of a refusal that named none
# Of what the contact was given; a refusal's source stays, as it does in the registry.
_DETAILS = {
    CREATED: ("externalId",),
    CONSENT_CHANGED: ("externalId", "source"),
    OPTED_OUT: ("externalId", "revokedReason"),
}


def created(contact: Contact) -> RecordEvent:
    """`contact.created`."""
    data = _named(contact) | {
        "source": contact.source,
        "phone": contact.phone,
        "optInStatus": contact.opt_in_status.value,
        "tags": list(contact.tags),
        "createdAt": contact.created_at,
    }
    return RecordEvent(contact.organization_id, contact.env, CREATED, data)


def consent_changed(contact: Contact, changed: ConsentUpdate) -> list[RecordEvent]:
    """`contact.consent_changed`, and for a refusal `contact.opted_out` (C12.5.2)."""
    data = _named(contact) | {
        "from": changed.before.value,
        "to": changed.after.status.value,
        "at": changed.at,
        "dataInformada": changed.date_given,
    }
    if changed.after.source is not None:
        data["source"] = changed.after.source
    events = [RecordEvent(contact.organization_id, contact.env, CONSENT_CHANGED, data)]
    if changed.denies:
        events.append(
            opted_out(
                contact.organization_id,
                contact.env,
                contact,
                phone=contact.phone,
                source=changed.after.source,
                at=changed.at,
                reason=changed.after.revoked_reason,
            )
        )
    return events


def opted_out(
    organization_id: str,
    env: str,
    contact: Contact | None,
    *,
    phone: str | None,
    source: str | None,
    at: datetime,
    reason: str | None,
    user_id: str | None = None,
) -> RecordEvent:
    """`contact.opted_out`; without a contact, of an entry of the registry alone, by its phone or `user_id`."""
    data: dict[str, Any] = {} if contact is None else _named(contact)
    if phone is not None:
        data["phone"] = phone
    if user_id is not None:
        data["chatappUserId"] = user_id
    data |= {"source": source or _UNSAID, "revokedAt": at}
    if reason is not None:
        data["revokedReason"] = reason
    return RecordEvent(organization_id, env, OPTED_OUT, data)


def without_details(type: str, data: Mapping[str, Any]) -> dict[str, Any]:  # noqa: A002 - as in the envelope
    """What is kept of the data of a stored event when its contact is deleted (C12.6): the same, when done again."""
    lost = {SEALED, *_DETAILS.get(type, ())}
    kept = {name: value for name, value in data.items() if name not in lost}
    if "phone" in kept:
        kept["phone"] = mask_phone(kept["phone"])
    if "tags" in kept:
        kept["tags"] = []
    return kept


def _named(contact: Contact) -> dict[str, Any]:
    data: dict[str, Any] = {"id": contact.id}
    if contact.external_id is not None:
        data["externalId"] = contact.external_id
    return data
