"""What makes a message of any channel acceptable, as pure rules over its draft and who it names (C12.5, C15.2).

What only one channel asks is in its own rules (`chatapp_rules.py`).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.billing.prices import Price
from recado.domain.channels.address import AddressKind, canonical
from recado.domain.channels.policies import address_kind, recipient_key
from recado.domain.channels.policy import Obeys
from recado.domain.contacts.consent import CONSENT_REQUIRED, OPTED_OUT, refusal_to_send
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import CONTACT
from recado.domain.core.json_text import json_or_none
from recado.domain.core.phones import recipient_hash
from recado.domain.core.references import reference_not_found
from recado.domain.messages.message import CLASS_OF
from recado.services.messages.draft import MessageDraft
from recado.storage.access.organizations import Organization
from recado.storage.messages.messages import ConsentCheck, NewMessage
from recado.storage.messages.recipients import Recipient

LONGEST_SCHEDULE: Final = timedelta(days=90)

REFUSED: Final = {
    OPTED_OUT: "The contact opted out: leave it out until it has consented anew.",
    CONSENT_REQUIRED: "The contact has not granted consent, which the organization requires for marketing.",
}
_REASONS: Final = {OPTED_OUT: "opt_out", CONSENT_REQUIRED: "sem_consentimento"}


def check_contact(draft: MessageDraft, known: Recipient) -> None:
    """The contact exists here, and the recipient is its phone, which is taken where none was given (C15.2).

    Or its user id, on the chat app (C28.6). On a channel without phones the recipient is the caller's to say.
    """
    if known.contact_id is None or known.phone is None:
        raise reference_not_found("contactId", CONTACT, draft.contact_id or "", draft.env)
    if address_kind(draft.channel) is not AddressKind.PHONE:
        return
    if not draft.to:
        draft.to = known.phone
    elif draft.to not in (known.phone, known.user_id):
        message = "`to` is not the phone of the contact `contactId`: leave one of them out."
        raise field_refused("RECIPIENT_MISMATCH", "/to", message)


def is_own_address(new: NewMessage, known: Recipient) -> bool:
    """Whether it goes to an address of the contact that it names."""
    kind = address_kind(new.channel)
    own = {AddressKind.PHONE: known.phone, AddressKind.EMAIL: known.email}.get(kind)
    return own is not None and canonical(kind, own) == canonical(kind, new.recipient)


def check_consent(known: Recipient, *, granted_only: bool, field: str) -> None:
    """The person whom the field names may be sent what is subject to consent; Problem 422 (C12.5.5, C12.5.6)."""
    code = refusal_to_send(known.status, registered=known.registered, granted_only=granted_only)
    if code is not None:
        raise no_consent(code, field)


def no_channel(channel: str, known: Iterable[str]) -> Problem:
    """422: nothing is sent on this channel."""
    detail = f"Sending on channel {channel} is not available yet: use {' or '.join(known)}."
    return field_refused("ROUTE_NOT_AVAILABLE", "/channel", detail)


def no_consent(code: str, field: str = "to", **meta: Any) -> Problem:
    """422, by the code of the refusal (C12.5.5). `field`: what named the person; `meta`: of the message, if stored."""
    return field_refused(code, f"/{field}", REFUSED[code], motivo=_REASONS[code], **meta)


def _consent_check(draft: MessageDraft, organization: Organization, asks_grant: bool) -> ConsentCheck:
    """What is asked in the commit that stores a message which is subject to consent (C12.5.5).

    It was asked before for a contact that is looked up anyway, for what the audit tells of before the commit, and for
    what takes the place of another.
    """
    if draft.contact_id is not None or draft.forced_by is not None or draft.again is not None:
        return ConsentCheck.DONE
    wanted = asks_grant and organization.require_granted_for_marketing
    return ConsentCheck.GRANTED if wanted else ConsentCheck.NOT_REFUSED


def due_time(draft: MessageDraft, now: datetime) -> datetime:
    """When the message may leave; a schedule in the past means now (C15.2)."""
    scheduled = draft.scheduled_at
    if scheduled is None or scheduled <= now:
        return now
    if scheduled - now > LONGEST_SCHEDULE:
        detail = f"`scheduledAt` must be at most {LONGEST_SCHEDULE.days} days ahead."
        raise field_refused("SCHEDULE_TOO_FAR", "/scheduledAt", detail)
    return scheduled


def new_message(
    draft: MessageDraft,
    organization: Organization,
    sender_id: str,
    obeys: Obeys,
    *,
    message_id: str,
    due_at: datetime,
    now: datetime,
    ttl: timedelta,
    held_ms: int,
    price: Price | None = None,
    asks_grant: bool = True,
) -> NewMessage:
    """The row of an acceptable draft.

    `ttl`: how long it may wait when the draft names no time itself. `held_ms`: time that its sender's queue stood still
    until now: what comes on top later does not count towards it. `price`: of a unit; None: nothing is billed.
    `asks_grant`: where it is subject to consent, a grant is asked for if the organization wants that (C12.5.5).
    """
    seconds = draft.ttl_seconds
    return NewMessage(
        draft.organization_id,
        draft.env,
        draft.channel,
        message_id,
        sender_id,
        draft.type,
        draft.to,
        recipient_hash(draft.organization_id, recipient_key(draft.channel, draft.to)),
        CLASS_OF[draft.priority],
        draft.forced_by is not None,
        draft.template_id,
        json_or_none(draft.payload),
        json_or_none(draft.template_vars),
        json_or_none(draft.metadata),
        draft.campaign_id,
        due_at if draft.scheduled_at is not None else None,
        due_at,
        ttl if seconds is None else timedelta(seconds=seconds),
        held_ms,
        now,
        draft.key_hash,
        draft.fingerprint,
        None,
        None if price is None else price.coins * draft.units,
        None if price is None else price.kind,
        draft.sent_by,
        draft.contact_id,
        _consent_check(draft, organization, asks_grant) if obeys.consent else ConsentCheck.EXEMPT,
        asks_grant=asks_grant,
        needs_window=obeys.window,
        obeys_quiet_hours=obeys.quiet_hours,
        units=draft.units,
        details=json_or_none(draft.details),
    )
