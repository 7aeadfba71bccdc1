"""Messages as rows: accepting them in batches, and the guarded moves that a caller asks for (archive, force).

What happens to a message on its way out is in `dispatch.py`; lists and reads for callers are in `message_reads.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recado.domain.message import MESSAGE_MACHINE, MessageEvent
from recado.storage.postgres import Database
from recado.storage.sql import load

SQL = load("messages")

SINGLE_OWNER = "single"


@dataclass(frozen=True, slots=True)
class NewMessage:
    """One outbound message to accept. `payload`, `template_vars` and `metadata` are JSON texts."""

    organization_id: str
    env: str
    channel: str
    id: str
    number_id: str
    type: str
    recipient: str
    recipient_hash: int
    klass: int  # 0 critical, 1 normal, 2 bulk
    force: bool
    template_id: str | None
    payload: str | None
    template_vars: str | None
    metadata: str | None
    campaign_id: str | None
    scheduled_at: datetime | None
    due_at: datetime
    ttl: timedelta
    held_base_ms: int
    accepted_at: datetime
    key_hash: bytes | None = None
    fingerprint: bytes | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """The message is committed."""


@dataclass(frozen=True, slots=True)
class Bound:
    """The idempotency key belongs to an earlier message already (C6.2); nothing was stored."""

    message_id: str
    fingerprint: bytes
    created_at: datetime


AcceptResult = Stored | Bound
STORED = Stored()
