"""Batches as rows: their states and their reads; how they are made is in `batch_making.py`.

Every move is guarded by the states that it may leave (C15.5); no row moved is a normal outcome.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.batches.batch import BATCH_MACHINE, BatchEvent
from recado.domain.channels.policies import states_before, withdrawn_as
from recado.domain.core.ids import Identified
from recado.domain.messages.message import Cause, FailureCode, MessageEvent
from recado.storage.core.statements.moves import Moved, withdrawn
from recado.storage.core.statements.rows import COUNTED_TO, Executor, Page, page, reader
from recado.storage.core.statements.sql import load
from recado.storage.messages import messages

SQL = load("batches")

BatchKey = tuple[str, str, str]
"""Organization, environment, id."""

_WITHDRAWN = Cause(FailureCode.WITHDRAWN, "its batch was canceled before it was sent")
_WITHDRAWABLE = states_before(MessageEvent.WITHDRAWN)


@dataclass(frozen=True, slots=True)
class Batch(Identified):
    """One batch with its totals."""

    organization_id: str
    env: str
    id: str
    name: str | None
    channel: str
    sender_id: str | None
    template_id: str | None
    campaign_id: str | None
    status: str
    requested: int
    skipped: int
    skipped_reasons: Mapping[str, int]
    errors: Sequence[Mapping[str, Any]]
    pause_reason: str | None
    created_by_id: str | None
    scheduled_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    accepted: int
    queued: int
    sent: int
    delivered: int
    read: int
    failed: int
    archived: int
    held_coins: int
    charged_coins: int


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch of which something may happen by itself."""

    organization_id: str
    env: str
    id: str
    channel: str
    sender_id: str | None
    status: str
    held_ms: int
    paused_at: datetime | None
    early_ms: int
    scheduled_at: datetime | None

    @property
    def key(self) -> BatchKey:
        return (self.organization_id, self.env, self.id)


@dataclass(frozen=True, slots=True)
class StoodStill:
    """How long a batch was paused: in all, and before `scheduled_at`, when its messages fall due (ms)."""

    held_ms: int
    early_ms: int
    scheduled_at: datetime | None


read = reader(Batch)
_read_open = reader(OpenBatch)
_read_stood_still = reader(StoodStill)


async def next_in_turn(
    executor: Executor, *, in_blocks: bool, last: Mapping[str, str], without: Collection[str] = ()
) -> list[BatchKey]:
    """One batch that is being made of each organization, the next one after its `last`, by organization.

    `in_blocks`: of those whose next messages can be made, else of those whose audience has to be read first.
    """
    rows = await executor.fetch(SQL.next_in_turn, in_blocks, list(last), list(last.values()), list(without))
    return [(row["organization_id"], row["env"], row["id"]) for row in rows]


async def senders_of(executor: Executor, batch: Batch | OpenBatch) -> list[str]:
    """The senders that its messages wait for."""
    if batch.sender_id is not None:
        return [batch.sender_id]
    return [row["sender_id"] for row in await executor.fetch(SQL.senders_of, batch.organization_id, batch.id)]


async def open_batches(executor: Executor) -> list[OpenBatch]:
    """Every batch that is not at rest."""
    return [_read_open(row) for row in await executor.fetch(SQL.open)]


# Moves --------------------------------------------------------------------------------------------------------------


async def pause(
    executor: Executor, key: BatchKey, now: datetime, event: BatchEvent = BatchEvent.PAUSE, reason: str | None = None
) -> bool:
    """→ paused; False when it is in no state that allows it."""
    return await executor.fetchval(SQL.pause, *key, now, _sources(event), reason) is not None


async def resume(executor: Executor, key: BatchKey, now: datetime) -> StoodStill | None:
    """paused → building or running; answers how long it has been paused, None when it was not."""
    row = await executor.fetchrow(SQL.resume, *key, now, _sources(BatchEvent.RESUME))
    return None if row is None else _read_stood_still(row)


async def cancel(executor: Executor, key: BatchKey, now: datetime) -> bool:
    """→ canceled: what is not made yet is not made any more; False when it is over already."""
    return await executor.fetchval(SQL.cancel, *key, now, _sources(BatchEvent.CANCEL)) is not None


async def close(executor: Executor, keys: Sequence[BatchKey], now: datetime) -> list[BatchKey]:
    """Of these, bring to rest those that have nothing queued or sending: running ones are completed."""
    organizations, environments, ids = [list(column) for column in zip(*keys, strict=True)]
    (running,) = _sources(BatchEvent.EMPTIED)
    rows = await executor.fetch(SQL.close, organizations, environments, ids, running, now)
    return [(row["organization_id"], row["env"], row["id"]) for row in rows]


async def hold(executor: Executor, key: BatchKey, limit: int, after_id: str = "") -> list[str]:
    """Take one block of the ready rows of a paused batch out of the ready index; answers which."""
    return [row["id"] for row in await executor.fetch(SQL.hold, key[0], key[2], limit, key[1], after_id)]


async def withdraw(executor: Executor, key: BatchKey, now: datetime, limit: int, after_id: str = "") -> list[Moved]:
    """Archive one block of the queued messages of a canceled batch, in the order of their ids."""
    block = (key[0], key[2], limit, now, _WITHDRAWN.last_error, _WITHDRAWABLE, after_id)
    rows = await executor.fetch(SQL.withdraw, *block, _WITHDRAWN.code, withdrawn_as())
    return [withdrawn(row, row["env"]) for row in rows]


# Reads --------------------------------------------------------------------------------------------------------------


async def get(executor: Executor, key: BatchKey) -> Batch | None:
    """The batch, when it exists in this environment."""
    row = await executor.fetchrow(SQL.by_id, *key)
    return None if row is None else read(row)


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    status: str | None,
    campaign_id: str | None,
    first_id: str,
    before_id: str,
    limit: int,
    skip: int,
) -> Page[Batch]:
    """Newest first, ids in [first_id, before_id)."""
    wanted = (organization_id, env, status, campaign_id, first_id, before_id)
    rows = await executor.fetch(SQL.page, *wanted, limit, skip)
    return page([read(row) for row in rows], await executor.fetchval(SQL.count, *wanted, COUNTED_TO + 1))


async def unbind(executor: Executor, organization_id: str, env: str, key_hash: bytes | None, batch_id: str) -> None:
    """Free an idempotency key from the batch that it made more than a day ago."""
    await executor.execute(messages.SQL.unbind, organization_id, env, key_hash, batch_id)


async def with_open_window(
    executor: Executor, organization_id: str, sender_id: str, hashes: Sequence[int], since: datetime
) -> set[int]:
    """Of these recipients, those who wrote to the number after `since`."""
    rows = await executor.fetch(SQL.windows, organization_id, sender_id, list(hashes), since)
    return {row["recipient_hash"] for row in rows}


def _sources(event: BatchEvent) -> list[str]:
    return [status.value for status in BATCH_MACHINE.sources(event)]
