"""A message as a caller gave it, and what it takes the place of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.links.tracked import TrackedLink
from recado.domain.messages.message import Priority
from recado.storage.core.audit import AuditPrincipal
from recado.storage.messages.message_reads import Message


@dataclass(slots=True, kw_only=True)
class MessageDraft:
    """A well-formed message as a caller gave it; `to` is canonical, and empty where only the contact is named.

    `forced_by`: who, when it is to jump the queue.
    """

    organization_id: str
    env: str
    channel: str
    sender_id: str
    to: str
    type: str
    priority: Priority
    template_id: str | None = None
    template_vars: Sequence[str] | None = None
    payload: Mapping[str, Any] | None = None
    contact_id: str | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    scheduled_at: datetime | None = None
    ttl_seconds: int | None = None
    forced_by: AuditPrincipal | None = None
    key_hash: bytes | None = None
    fingerprint: bytes | None = None
    again: "Again | None" = None
    sent_by: tuple[str, str] | None = None  # the person who sends it: account and name
    units: int = 1  # segments, as its channel counts them
    details: Mapping[str, Any] | None = None  # what its channel alone knows of it
    content: object | None = None  # what only the rules of its channel read, and is not stored


@dataclass(frozen=True, slots=True)
class Again:
    """The message is sent in the place of `old`, by whom, and also when `old` may have left (C15.4).

    `links`: those of `old` that are tracked, which the acceptance reads.
    """

    old: Message
    by: AuditPrincipal
    include_uncertain: bool
    links: Sequence[TrackedLink] = ()
