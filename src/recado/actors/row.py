"""One ready message in a number's memory: what its gates, its claim and its call need, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from recado.domain.message import NORMAL
from recado.storage.messages import NewMessage

TEMPLATE = "template"
MILLISECOND = timedelta(milliseconds=1)


@dataclass(slots=True, eq=False, repr=False)
class Row:
    """A ready row of `dispatch` with its content, so without a `repr`. `payload` and `template_vars` are JSON texts."""

    organization_id: str
    env: str
    channel: str
    id: str
    number_id: str
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
    claimed_at: datetime | None = None
    """The moment that tells its claim from every other; None before it is claimed."""
    repeat_of: datetime | None = None
    """When its last call began whose outcome is unknown (C29.2); None: it was never called for, or did not leave."""

    @property
    def free_form(self) -> bool:
        """Leaves only inside the 24 h window; everything else is a template (C15.2.2)."""
        return self.type != TEMPLATE


def row_of(new: NewMessage) -> Row:
    """The row of a message that was just accepted."""
    return Row(
        new.organization_id,
        new.env,
        new.channel,
        new.id,
        new.number_id,
        new.klass if new.type == TEMPLATE else min(new.klass, NORMAL),  # as its row says (messages.sql)
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
    )


def row_from(record: Mapping[str, Any]) -> Row:
    """The row that `refill` or `forced` read."""
    return Row(
        record["organization_id"],
        record["env"],
        record["channel"],
        record["id"],
        record["number_id"],
        record["class"],
        record["owner"],
        record["due_at"],
        record["ttl_ms"],
        record["expires_at"],
        record["held_base_ms"],
        record["attempts"],
        record["force"],
        record["recipient"],
        record["recipient_hash"],
        record["type"],
        record["template_id"],
        record["payload"],
        record["template_vars"],
        repeat_of=record["repeat_of"],
    )
