"""One ready message in a lane's memory: what its gates, its claim and its call need, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from operator import itemgetter
from typing import Any

import orjson

from recado.domain.messages.message import NORMAL
from recado.storage.messages.messages import NewMessage

OWNERS = 16  # of a class of a sender, whose rows are in memory (C14.5.2)
ROWS_PER_OWNER = 20
WINDOW = OWNERS * ROWS_PER_OWNER

MILLISECOND = timedelta(milliseconds=1)
CONTENT = "content"
"""In the details of what is sent directly: what its adapter sends."""


@dataclass(frozen=True, slots=True)
class NewPayload:
    """What a message says in the place of its row's payload, for its one call."""

    payload: Mapping[str, Any] | None = field(repr=False)


@dataclass(slots=True, eq=False, repr=False)
class Row:
    """A ready row of `dispatch` with its content, so without a `repr`. `payload` and `template_vars` are JSON texts."""

    organization_id: str
    env: str
    channel: str
    id: str
    sender_id: str
    klass: int
    owner: str
    due_at: datetime
    ttl_ms: int
    expires_at: datetime
    held_base_ms: int
    attempts: int
    force: bool
    recipient: str
    recipient_hash: int
    type: str
    template_id: str | None
    payload: str | None
    template_vars: str | None
    repeat_of: datetime | None = None
    """When its last call began whose outcome is unknown (C29.2); None: it was never called for, or did not leave."""
    contact_id: str | None = None
    needs_window: bool = False
    """It leaves only inside the window of 24 hours (C15.2.2). This and the next two were decided when it was made."""
    subject_to_consent: bool = False
    """A refusal keeps it from leaving (C12.5.4)."""
    obeys_quiet_hours: bool = False
    details: Mapping[str, Any] | None = None
    """What its channel alone knows of it."""
    totaled: bool = True
    """It may belong to a batch or a campaign, whose totals change when it leaves (C15.6)."""
    contact_hash: int | None = None
    """By the phone of its contact, where it goes to another address: a refusal of the contact's stops it as well."""
    claimed_at: datetime | None = None
    """The moment that tells its claim from every other; None before it is claimed."""


_read = itemgetter(
    "organization_id", "env", "channel", "id", "sender_id", "class", "owner", "due_at", "ttl_ms", "expires_at",
    "held_base_ms", "attempts", "force", "recipient", "recipient_hash", "type", "template_id", "payload",
    "template_vars", "repeat_of", "contact_id", "needs_window", "subject_to_consent", "obeys_quiet_hours",
    "details", "totaled",
)  # fmt: skip
"""The columns of a record in the order of the row's fields: each message in the queue is read so."""


def row_of(new: NewMessage) -> Row:
    """The row of a message that was just accepted."""
    return Row(
        new.organization_id,
        new.env,
        new.channel,
        new.id,
        new.sender_id,
        min(new.klass, NORMAL) if new.needs_window else new.klass,  # as its row says (messages.sql)
        new.owner,
        new.due_at,
        new.ttl // MILLISECOND,
        new.due_at + new.ttl,
        new.held_base_ms,
        0,
        new.force,
        new.recipient,
        new.recipient_hash,
        new.type,
        new.template_id,
        new.payload,
        new.template_vars,
        contact_id=new.contact_id,
        needs_window=new.needs_window,
        subject_to_consent=bool(new.consent),
        obeys_quiet_hours=new.obeys_quiet_hours,
        details=_details(new),
        totaled=new.campaign_id is not None or (new.replaces is not None and new.replaces.batch_id is not None),
        contact_hash=new.contact_hash,
        claimed_at=None if new.claim is None else new.claim.at,
    )


def _details(new: NewMessage) -> Mapping[str, Any] | None:
    """What its channel alone knows, with the content of what is sent directly, which is in no row (C10.2)."""
    details = None if new.details is None else orjson.loads(new.details)
    return details if new.content is None else {**(details or {}), CONTENT: new.content}


def row_from(record: Mapping[str, Any]) -> Row:
    """The row that `refill` or `forced` read."""
    return Row(*_read(record))
