"""A new message in the place of one that failed or was archived (C15.4): both written in one commit, each at most once.

The old row is the lock: anyone who has it decides, and a second attempt finds it replaced.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.batches.batch import BatchStatus
from recado.domain.messages.message import MessageStatus
from recado.storage.core.audit import AuditEntry, append
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("replacements")

REPLACEABLE = (MessageStatus.FAILED, MessageStatus.ARCHIVED)


@dataclass(frozen=True, slots=True)
class Replacement:
    """One new message and the one whose place it takes. `entry`: of a reprocess; a resend has one for its batch."""

    organization_id: str
    env: str
    channel: str
    old_id: str
    new_id: str
    include_uncertain: bool
    entry: AuditEntry | None = None
    batch_id: str | None = None
    contact_id: str | None = None


async def lock(executor: Executor, wanted: Sequence[Replacement], states: Sequence[str] = REPLACEABLE) -> set[str]:
    """Lock the old messages, in a transaction; answers the ids of those that may be replaced."""
    rows = [(w.organization_id, w.env, w.channel, w.old_id, w.new_id, w.include_uncertain) for w in wanted]
    return {row["id"] for row in await executor.fetch(SQL.lock, *columns(rows, 6), list(states))}


async def replace(executor: Executor, done: Sequence[Replacement], now: datetime) -> None:
    """Let the old messages, locked before, point to the new ones; with the entries of the audit."""
    await executor.execute(
        SQL.replace,
        sorted({each.organization_id for each in done}),
        sorted({each.env for each in done}),
        sorted({each.channel for each in done}),
        sorted(each.old_id for each in done),
        {each.old_id: each.new_id for each in done},
        [each.old_id for each in done if each.entry is not None],
        now,
    )
    for entry in (d.entry for d in done if d.entry is not None):
        await append(executor, entry)


async def inherit(executor: Executor, done: Replacement) -> str | None:
    """Give the new message, stored before in this transaction, what it has of the old one beside its content.

    Answers whose row it is in the queue, when it belongs to a batch.
    """
    if done.batch_id is None and done.contact_id is None:
        return None
    batch = (done.batch_id, BatchStatus.CANCELED)
    owner: str | None = await executor.fetchval(
        SQL.inherit, done.organization_id, done.env, done.channel, done.new_id, done.contact_id, *batch
    )
    return owner
