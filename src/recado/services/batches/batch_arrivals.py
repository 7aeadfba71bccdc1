"""What the lanes of senders are told of the messages that a batch has just made."""

from datetime import datetime, timedelta

import orjson

from recado.domain.messages.message import NORMAL
from recado.services.dispatch.row import WINDOW, Row
from recado.storage.batches.batch_making import NewBatch, PendingBlock
from recado.storage.batches.batch_rows import Block

MILLISECOND = timedelta(milliseconds=1)
MOST = WINDOW + 1  # one more than fits tells the lane that there are more in the table


def arrivals(batch: NewBatch | PendingBlock, block: Block, due_at: datetime) -> dict[str, list[Row]]:
    """The first rows of each sender, as many as its lane can use."""
    if batch.sender_id is not None:
        return {batch.sender_id: _rows(batch, block, due_at, MOST)}
    found: dict[str, list[Row]] = {}
    for row in _rows(batch, block, due_at, len(block.ids)):
        rows = found.setdefault(row.sender_id, [])
        if len(rows) < MOST:
            rows.append(row)
    return found


def _rows(batch: NewBatch | PendingBlock, block: Block, due_at: datetime, limit: int) -> list[Row]:
    recipients = block.recipients
    count = min(limit, len(block.ids))
    obeys = [kind.obeys for kind in block.kinds[:count]]
    types = recipients.types or [batch.type] * count
    templates = recipients.template_ids or [None] * count
    payloads = recipients.payloads or [None] * count
    numbers = recipients.sender_ids or [batch.sender_id or ""] * count
    held_bases = recipients.held_bases or [batch.held_base_ms] * count
    contacts = recipients.contact_ids or [None] * count
    details = recipients.details or [None] * count
    expires_at = due_at + batch.ttl_ms * MILLISECOND
    return [
        Row(
            batch.organization_id,
            batch.env,
            batch.channel,
            block.ids[place],
            numbers[place],
            min(batch.klass, NORMAL) if obeys[place].window else batch.klass,  # as their rows say (batches.sql)
            batch.id,
            due_at,
            batch.ttl_ms,
            expires_at,
            held_bases[place],
            0,
            False,
            recipients.phones[place],
            recipients.hashes[place],
            types[place],
            templates[place] or batch.template_id,
            payloads[place] or batch.payload,
            recipients.template_vars[place],
            contact_id=contacts[place],
            needs_window=obeys[place].window,
            subject_to_consent=obeys[place].consent,
            obeys_quiet_hours=obeys[place].quiet_hours,
            details=None if (text := details[place]) is None else orjson.loads(text),
        )
        for place in range(count)
    ]
