"""A batch as a caller gave it (C15.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.messages.message import Priority
from recado.services.messages.draft import MessageDraft


@dataclass(slots=True, kw_only=True)
class BatchDraft:
    """A well-formed batch as a caller gave it, to recipients, a list or a segment.

    `template_vars`, `metadata`: of recipients without any of their own. `details`: what its channel alone knows of it.
    """

    organization_id: str
    env: str
    channel: str
    sender_id: str
    type: str
    priority: Priority
    recipients: Sequence[Mapping[str, Any]] = ()
    list_id: str | None = None
    segment_id: str | None = None
    name: str | None = None
    template_id: str | None = None
    template_vars: Sequence[str] | None = None
    payload: Mapping[str, Any] | None = None
    details: Mapping[str, Any] | None = None
    campaign_id: str | None = None
    metadata: Mapping[str, Any] | None = None
    scheduled_at: datetime | None = None
    ttl_seconds: int | None = None
    created_by_id: str | None = None
    key_hash: bytes | None = None
    fingerprint: bytes | None = None

    @property
    def has_audience(self) -> bool:
        """Whether its recipients are a list's or a segment's."""
        return self.list_id is not None or self.segment_id is not None

    def message(self) -> MessageDraft:
        """What its messages share, as the rules of one message take it."""
        return MessageDraft(
            organization_id=self.organization_id,
            env=self.env,
            channel=self.channel,
            sender_id=self.sender_id,
            to="",
            type=self.type,
            priority=self.priority,
            template_id=self.template_id,
            payload=self.payload,
            scheduled_at=self.scheduled_at,
        )
