"""Making batches: the row of a batch with its first messages in one statement, and the blocks that follow (C15.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import orjson

from recado.domain.batches.batch import BATCH_MACHINE, BatchEvent, BatchStatus
from recado.storage.batches.audiences import Audience
from recado.storage.batches.batch_rows import Block, Recipients
from recado.storage.batches.batches import SQL, BatchKey
from recado.storage.billing.holds import holding, store
from recado.storage.core.audit import AuditEntry
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.rows import (
    Executor,
    affected,
    array,
    columns,
    pack,
    pack_moments,
    pack_numbers,
    pack_some,
    reader,
)

MAKE = holding(SQL.make, wanted="$46", at="(select max(made_at) from heads)")
BLOCK_MADE = SQL.block_made.replace("{left_out}", SQL.left_out)
ALREADY_REPLACED = "ALREADY_REPLACED"  # why a recipient of a resend is left out when another was faster


@dataclass(slots=True, eq=False, kw_only=True)
class NewBatch:
    """A batch to be made. `payload`, `errors`, `skipped_reasons`: JSON texts; `recipients`: all that were accepted.

    `first` and `rest` are its blocks: the one made with it, and those kept for later. `estimate`: coins of all of them.
    `audience`: who is read into blocks later, in place of recipients; `regions`: how many of them live where. `lacks`:
    the channel of what may take the messages' place, where nobody sends that in its environment.
    """

    organization_id: str
    env: str
    id: str
    channel: str
    sender_id: str | None
    type: str
    klass: int
    ttl_ms: int
    held_base_ms: int
    accepted_at: datetime
    requested: int
    recipients: Recipients
    name: str | None = None
    template_id: str | None = None
    payload: str | None = None
    campaign_id: str | None = None
    scheduled_at: datetime | None = None
    skipped: int = 0
    skipped_reasons: str = "{}"
    errors: str = "[]"
    created_by_id: str | None = None
    key_hash: bytes | None = None
    fingerprint: bytes | None = None
    estimate: int = 0
    entry: AuditEntry | None = None
    first: Block | None = None
    rest: list[str] = field(default_factory=list)
    audience: Audience | None = None
    regions: Mapping[str, int] = field(default_factory=dict)
    lacks: str | None = None

    @property
    def key(self) -> BatchKey:
        return (self.organization_id, self.env, self.id)

    def leave_out(self, count: int, reason: str) -> None:
        """So many of its recipients get no message after all."""
        if count:
            reasons = orjson.loads(self.skipped_reasons)
            reasons[reason] = reasons.get(reason, 0) + count
            self.skipped += count
            self.skipped_reasons = orjson.dumps(reasons).decode()

    @property
    def blocks_left(self) -> int:
        """What is still to be made; an audience that is not read yet counts as one."""
        return len(self.rest) + (self.audience is not None)

    @property
    def due_at(self) -> datetime:
        """When its messages may leave."""
        return self.accepted_at if self.scheduled_at is None else self.scheduled_at

    @property
    def status(self) -> BatchStatus:
        """What it is once it is stored."""
        if self.blocks_left:
            return BatchStatus.BUILDING
        if not self.recipients:
            return BATCH_MACHINE.move(BatchStatus.BUILDING, BatchEvent.NOTHING_BUILT)
        return BATCH_MACHINE.move(BatchStatus.BUILDING, BatchEvent.BUILT)


@dataclass(frozen=True, slots=True)
class PendingBlock:
    """The next recipients of a batch, and what its messages share."""

    organization_id: str
    env: str
    id: str
    channel: str
    sender_id: str | None
    type: str
    template_id: str | None
    payload: str | None
    klass: int
    campaign_id: str | None
    scheduled_at: datetime | None
    ttl_ms: int
    held_base_ms: int
    number: int
    recipients: Recipients
    created_by_id: str | None = None

    @property
    def key(self) -> BatchKey:
        return (self.organization_id, self.env, self.id)


_read_block = reader(PendingBlock, recipients=Recipients.load)


async def insert(
    executor: Executor, batches: Sequence[NewBatch], *, hold: bool, months: Months = ALL_MONTHS
) -> set[str]:
    """Store batches with their first messages, in one statement; answers the ids of those that were left out.

    With `hold` their prices are held in the same statement, or HoldsRefused is raised.
    """
    blocks = [new.first for new in batches]
    columns = (*_columns(batches), hold, _contacts(blocks), _flags(blocks), *_units(blocks), *_ranges(blocks))
    ids = [message_id for block in blocks if block is not None for message_id in block.ids]
    return {row["id"] for row in await store(months.fetch(executor, MAKE, ids, *columns))}


def _columns(batches: Sequence[NewBatch]) -> list[Any]:
    blocks = [new.first or Block(Recipients([], [], [], []), [], [], [], []) for new in batches]
    keyed = any(new.key_hash is not None for new in batches)
    kept = [
        (new.organization_id, new.id, number, text) for new in batches for number, text in enumerate(new.rest, start=1)
    ]
    return [
        pack([new.organization_id for new in batches]),
        pack([new.env for new in batches]),
        pack([new.id for new in batches]),
        pack_numbers([1] * len(batches)),
        array([new.name for new in batches]),
        pack([new.channel for new in batches]),
        pack([new.sender_id for new in batches]),
        pack([new.type for new in batches]),
        pack([new.template_id for new in batches]),
        pack([new.payload for new in batches]),
        pack_numbers([new.klass for new in batches]),
        array([new.campaign_id for new in batches]),
        pack([new.status for new in batches]),
        pack_numbers([new.requested for new in batches]),
        pack_numbers([len(block.ids) for block in blocks]),
        pack_numbers([new.skipped for new in batches]),
        pack([new.skipped_reasons for new in batches]),
        pack([new.errors for new in batches]),
        pack_moments([new.scheduled_at for new in batches]),
        pack_numbers([new.ttl_ms for new in batches]),
        pack_numbers([new.held_base_ms for new in batches]),
        pack_numbers([new.blocks_left for new in batches]),
        pack_numbers([block.held for block in blocks]),
        pack_moments([new.accepted_at for new in batches]),
        pack([new.created_by_id for new in batches]),
        [new.key_hash for new in batches] if keyed else None,
        [new.fingerprint for new in batches] if keyed else None,
        *_rows([new.id for new in batches], blocks),
        *columns(kept, 4),
    ]


async def add(
    executor: Executor, pending: PendingBlock, block: Block, now: datetime, *, months: Months = ALL_MONTHS
) -> None:
    """Make the messages of one more block."""
    await months.fetch(
        executor,
        MAKE,
        block.ids,
        pending.organization_id,
        pending.env,
        pending.id,
        "0",
        None,
        pending.channel,
        pack([pending.sender_id]),
        pending.type,
        pack([pending.template_id]),
        pack([pending.payload]),
        str(pending.klass),
        None if pending.campaign_id is None else [pending.campaign_id],
        BatchStatus.BUILDING.value,
        "0",
        "0",
        "0",
        "{}",
        "[]",
        pack_moments([pending.scheduled_at]),
        str(pending.ttl_ms),
        str(pending.held_base_ms),
        "0",
        "0",
        pack_moments([now]),
        pack([pending.created_by_id]),
        None,
        None,
        *_rows([pending.id], [block]),
        [],
        [],
        [],
        [],
        False,
        _contacts([block]),
        _flags([block]),
        *_units([block]),
        *_ranges([block]),
    )


def _rows(ids: Sequence[str], blocks: Sequence[Block]) -> list[Any]:
    def join(columns: Sequence[Sequence[Any]]) -> list[Any]:
        return list(columns[0]) if len(columns) == 1 else [value for column in columns for value in column]

    def own(name: str) -> list[Any]:
        return join([getattr(block.recipients, name) or [None] * len(block.ids) for block in blocks])

    return [
        pack(join([[batch_id] * len(block.ids) for batch_id, block in zip(ids, blocks, strict=True)])),
        pack(join([block.ids for block in blocks])),
        pack(join([block.recipients.phones for block in blocks])),
        pack_numbers(join([block.recipients.hashes for block in blocks])),
        pack(join([block.recipients.template_vars for block in blocks])),
        pack(join([block.recipients.metadata for block in blocks])),
        pack([None if coins is None else str(coins) for coins in join([block.coins for block in blocks])]),
        pack(join([block.price_kinds for block in blocks])),
        pack(own("types")),
        pack(own("template_ids")),
        pack(own("payloads")),
        pack(own("sender_ids")),
        array(own("campaign_ids")),
        pack([None if held is None else str(held) for held in own("held_bases")]),
    ]


def _ranges(blocks: Sequence[Block | None]) -> tuple[str, str]:
    """Between which ids the messages of each block lie, and no other: they were made one after another."""
    ids = [None if block is None or not block.ids else (block.ids[0], block.ids[-1]) for block in blocks]
    return pack([each and each[0] for each in ids]), pack([each and each[1] for each in ids])


def _contacts(blocks: Sequence[Block | None]) -> str:
    """Whose the messages are: for each row of the blocks."""
    owners: list[str | None] = []
    for block in blocks:
        if block is not None:
            owners += block.recipients.contact_ids or [None] * len(block.ids)
    return pack(owners)


def _flags(blocks: Sequence[Block | None]) -> str:
    """What the messages obey: for each row of the blocks."""
    obeys = [kind.obeys for block in blocks if block is not None for kind in block.kinds]
    return pack_numbers([each.window + 2 * each.consent + 4 * each.quiet_hours for each in obeys])


def _units(blocks: Sequence[Block | None]) -> tuple[str | None, str | None]:
    """Units and details; nothing where each message has one unit, and none has details."""
    units: list[int] = []
    details: list[str | None] = []
    for block in blocks:
        if block is not None:
            units += block.recipients.units or [1] * len(block.ids)
            details += block.recipients.details or [None] * len(block.ids)
    return (None if units.count(1) == len(units) else pack_numbers(units), pack_some(details))


async def next_block(executor: Executor, key: BatchKey, now: datetime) -> PendingBlock | None:
    """The next block of a batch that is `building`; `now`: when its messages are made.

    Those that are due then note what held their numbers until that moment: it lengthens no time to live (C14.5).
    """
    row = await executor.fetchrow(SQL.next_block, *key)
    if row is None:
        return None
    pending = _read_block({**row, "klass": row["class"]})
    due_at = pending.scheduled_at or now
    return pending if due_at > now else await _held_until(executor, pending, due_at)


async def _held_until(executor: Executor, pending: PendingBlock, due_at: datetime) -> PendingBlock:
    recipients = pending.recipients
    numbers = [pending.sender_id] if recipients.sender_ids is None else sorted(set(recipients.sender_ids))
    rows = await executor.fetch(SQL.held_at, pending.organization_id, numbers, due_at)
    held = {row["sender_id"]: row["held_ms"] or 0 for row in rows}
    if recipients.sender_ids is None:
        return replace(pending, held_base_ms=max(pending.held_base_ms, held[pending.sender_id]))
    bases = recipients.held_bases or [pending.held_base_ms] * len(recipients)
    recipients.held_bases = [max(base, held[of]) for base, of in zip(bases, recipients.sender_ids, strict=True)]
    return pending


async def block_made(
    executor: Executor, pending: PendingBlock, now: datetime, left_out: Mapping[str, int]
) -> int | None:
    """In the transaction that made it: answers the blocks left. `left_out`: how many got no message, by reason.

    None, and the transaction is to be undone, when the batch is not `building` any more, or another process, which
    does not know yet that it was replaced, made the block first.
    """
    built = BATCH_MACHINE.move(BatchStatus.BUILDING, BatchEvent.BUILT)
    nothing = BATCH_MACHINE.move(BatchStatus.BUILDING, BatchEvent.NOTHING_BUILT)
    # The batch before its block, as a cancel does it: or each would wait for the other.
    blocks_left: int | None = await executor.fetchval(BLOCK_MADE, *pending.key, built, nothing, now, dict(left_out))
    dropped = affected(await executor.execute(SQL.drop_block, pending.organization_id, pending.id, pending.number))
    return blocks_left if dropped else None
