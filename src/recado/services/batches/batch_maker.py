"""Makes the messages of batches: the first block in the commit of the batch, the others a block a commit (C15.5).

What a commit made is told to the sender's lane at once, so that a batch starts to leave while it is being made.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from recado.domain.batches.batch import BLOCK
from recado.domain.channels.policies import TRACKED
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.messages.message import CLASSES, MessageStatus
from recado.domain.senders.sender import SenderKey
from recado.engine.steps import in_steps
from recado.engine.turns import turns
from recado.services.batches.batch_arrivals import arrivals
from recado.services.batches.batch_audience import Audiences, BatchMoved
from recado.services.batches.batch_rules import SUPPRESSED
from recado.services.batches.channel_batches import ChannelBatches, Replaced, Sort
from recado.services.batches.tariff import NotCovered, Tariff
from recado.services.dispatch.hints import Arrived
from recado.services.dispatch.sending import Tell
from recado.services.effects.consequences import Consequences
from recado.storage.batches import audiences, batch_making, totals
from recado.storage.batches.batch_making import NewBatch, PendingBlock
from recado.storage.batches.batch_rows import Block, MessageKind, Recipients
from recado.storage.batches.batches import BatchKey
from recado.storage.core.audit import append
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.links import tracked_links
from recado.storage.messages import replacements
from recado.storage.messages.replacements import Replacement

_FAILED = (MessageStatus.FAILED.value,)


class BatchMaker:
    """Writes in the caller's transaction, and tells what it wrote after the commit."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        ids: IdSource,
        tell: Tell,
        consequences: Consequences,
        tariff: Tariff,
        audiences: Audiences,
        channels: Mapping[str, ChannelBatches],
        accepted: Counter[str] | None = None,
    ) -> None:
        """`channels`: the rules of those that have batches. `accepted`: where messages are counted, by channel."""
        self._accepted: Counter[str] = Counter() if accepted is None else accepted
        self._db = db
        self._clock = clock
        self._ids = ids
        self._tell = tell
        self._consequences = consequences
        self._tariff = tariff
        self._audiences = audiences
        self._channels = channels

    @property
    def charges(self) -> bool:
        """Whether messages cost anything here."""
        return self._tariff.charges

    def is_plain(self, batch: NewBatch) -> bool:
        """Whether one statement is all that its commit takes: no campaign, no links, one block, nothing replaced."""
        if batch.first is not None and batch.first.links:
            return False
        return batch.campaign_id is None and batch.recipients.replaces is None and not batch.blocks_left

    async def prepare(self, batch: NewBatch) -> None:
        """Cut the recipients into blocks, and price the first one."""
        recipients = batch.recipients
        batch.first = await self._block(batch, recipients if len(recipients) <= BLOCK else recipients.part(0, BLOCK))
        batch.rest = []
        for start in range(BLOCK, len(recipients), BLOCK):
            await turns.next()  # a block may hold megabytes of texts
            batch.rest.append(recipients.part(start, start + BLOCK).dump())
        if self._tariff.charges:
            await self._tariff.price(batch, batch.first, batch.accepted_at)
            batch.estimate = batch.first.held
            if batch.rest:
                rest = recipients.part(BLOCK, len(recipients))
                others = Block(rest, [], await self._kinds(batch, rest), [None] * len(rest), [None] * len(rest))
                await self._tariff.price(batch, others, batch.accepted_at)
                batch.estimate += others.held
            if (audience := batch.audience) is not None:
                sort = Sort(batch.type, batch.template_id, batch.sender_id, audience.details)
                kind = await self._kind(batch, sort)
                regions = {each: count for each, count in batch.regions.items() if kind.region in (None, each)}
                batch.estimate = await self._tariff.estimate(
                    batch, kind.price_kind, audience, regions, batch.accepted_at
                )

    async def refusal(self, batch: NewBatch) -> Problem | None:
        """The 402 when the wallet does not cover a prepared batch; nothing is held."""
        return await self._tariff.covers(self._db.hot, batch.organization_id, batch.env, batch.estimate)

    async def create_plain(self, made: Sequence[NewBatch]) -> set[str]:
        """Store prepared batches for which `is_plain` holds, in one statement; answers the ids of those left out.

        Raises `HoldsRefused`: then `create_batch` stores what is covered, one by one.
        """
        return await batch_making.insert(self._db.hot, made, hold=self._tariff.charges, months=self._db.months)

    async def create_batch(self, connection: Executor, batch: NewBatch) -> AfterCommit | None:
        """Store a prepared batch with its first messages, in a transaction; answers what to do after the commit.

        None: its idempotency key is bound already, or an earlier run of the same commit had stored it. Raises
        `NotCovered` when the wallet does not hold its price: the transaction must then be undone. Recipients whose
        message was replaced meanwhile are left out.
        """
        first = batch.first
        assert first is not None  # noqa: S101 - `prepare` comes first
        locked = await self._lock(connection, batch, first)
        if locked is not first:
            batch.leave_out(len(first.ids) - len(locked.ids), batch_making.ALREADY_REPLACED)
            batch.estimate -= first.held - locked.held
            batch.first = locked
            if not locked.ids and not batch.rest:
                batch.recipients = locked.recipients
        if batch.id in await batch_making.insert(connection, [batch], hold=False, months=self._db.months):
            return None
        await self._store_links(connection, batch, locked)
        if batch.audience is not None:
            await audiences.begin(connection, batch.organization_id, batch.id, batch.audience)
            refusal = await self._tariff.covers(connection, batch.organization_id, batch.env, batch.estimate)
            if refusal is not None:
                raise NotCovered(refusal)
        await self._replace(connection, batch, locked)
        if batch.entry is not None:
            await append(connection, batch.entry)
        after = await self._follow(connection, batch, locked, batch.accepted_at, estimate=batch.estimate)

        def committed() -> None:
            after()
            self.told(batch)

        return committed

    async def make_next(self, key: BatchKey) -> int | None:
        """Make the next block of a batch that is `building`; answers the blocks left, None when there was none to make.

        An audience that is left to be read counts as one. Raises `NotCovered`; the block is still there then.
        """
        now = self._clock.now()
        waiting = await batch_making.next_block(self._db.hot, key, now)
        if waiting is None:
            return None
        pending, left_out = await self._allowed(waiting)
        block = await self._block(pending, pending.recipients)
        left_out = dict(Counter(left_out) + Counter(block.left_out))
        fitting = len(block.ids)
        if self._tariff.charges:
            await self._tariff.price(pending, block, now)
        try:
            async with self._db.hot.transaction() as connection:
                block = await self._lock(connection, pending, block)
                await batch_making.add(connection, pending, block, now, months=self._db.months)
                await self._store_links(connection, pending, block)
                await self._replace(connection, pending, block)
                after = await self._follow(connection, pending, block, now)
                if gone := fitting - len(block.ids):
                    left_out[batch_making.ALREADY_REPLACED] = gone
                blocks_left = await batch_making.block_made(connection, pending, now, left_out)
                if blocks_left is None:
                    raise BatchMoved
        except BatchMoved:
            return None
        after()
        self._arrived(pending, block, pending.scheduled_at or now, now)
        return blocks_left

    def told(self, batch: NewBatch) -> None:
        """A batch was committed: its sender's lane knows its first messages."""
        if batch.first is not None:
            self._arrived(batch, batch.first, batch.due_at, batch.accepted_at)

    # The parts ------------------------------------------------------------------------------------------------------

    async def _block(self, batch: NewBatch | PendingBlock, recipients: Recipients) -> Block:
        replaced: Replaced = {}
        if recipients.replaces and batch.channel in TRACKED:
            replaced = await tracked_links.of_messages(self._db.hot, recipients.replaces)
        tracked = await in_steps(self._channels[batch.channel].tracked(batch.payload, recipients, replaced))
        if tracked is not None:
            recipients = tracked.recipients
        new, count = self._ids.new, len(recipients)
        ids, kinds = [new(MESSAGE) for _ in range(count)], await self._kinds(batch, recipients)
        links = {} if tracked is None else {id_: each for id_, each in zip(ids, tracked.links, strict=True) if each}
        left_out = {} if tracked is None else tracked.left_out
        return Block(recipients, ids, kinds, [None] * count, [None] * count, links, left_out)

    async def _allowed(self, waiting: PendingBlock) -> tuple[PendingBlock, Mapping[str, int]]:
        """Without contacts that get nothing by now, and how many were left out for which reason."""
        kinds = await self._kinds(waiting, waiting.recipients)
        pending, left_out = await self._audiences.allowed(waiting, kinds)
        addresses = pending.recipients.phones
        if not addresses or pending.recipients.contact_ids is None:
            return pending, left_out
        where = (pending.organization_id, pending.env)
        suppressed = await self._channels[pending.channel].suppressed(where, addresses)
        if not suppressed:
            return pending, left_out
        places = [place for place, address in enumerate(addresses) if address not in suppressed]
        left_out |= {SUPPRESSED: len(addresses) - len(places)}
        return replace(pending, recipients=pending.recipients.only(places)), left_out

    async def _kinds(self, batch: NewBatch | PendingBlock, recipients: Recipients) -> list[MessageKind]:
        """As what the message of each recipient leaves, by what it is now."""
        count = len(recipients)
        own = (recipients.types, recipients.template_ids, recipients.sender_ids, recipients.details)
        if own == (None, None, None, None):
            return [await self._kind(batch, Sort(batch.type, batch.template_id, batch.sender_id, None))] * count
        usual = (batch.type, batch.template_id, batch.sender_id, None)
        sorts = [
            Sort(message_type, template_id or batch.template_id, sender_id, details)
            for message_type, template_id, sender_id, details in zip(
                *(column or [value] * count for column, value in zip(own, usual, strict=True)), strict=True
            )
        ]
        known = {sort: await self._kind(batch, sort) for sort in set(sorts)}
        return [known[sort] for sort in sorts]

    async def _kind(self, batch: NewBatch | PendingBlock, sort: Sort) -> MessageKind:
        where = (batch.organization_id, batch.env)
        return await self._channels[batch.channel].kind(where, CLASSES[batch.klass], sort)

    async def _lock(self, connection: Executor, batch: NewBatch | PendingBlock, block: Block) -> Block:
        """Without the recipients whose old message has a replacement already; the others are locked."""
        old_ids = block.recipients.replaces
        if not old_ids:
            return block
        free = await replacements.lock(connection, _replacements(batch, block), _FAILED)
        if len(free) == len(old_ids):
            return block
        places = [place for place, old_id in enumerate(old_ids) if old_id in free]
        return Block(
            block.recipients.only(places),
            [block.ids[place] for place in places],
            [block.kinds[place] for place in places],
            [block.coins[place] for place in places],
            [block.price_kinds[place] for place in places],
            {id_: links for place in places if (links := block.links.get(id_ := block.ids[place]))},
        )

    async def _store_links(self, connection: Executor, batch: NewBatch | PendingBlock, block: Block) -> None:
        if block.links:
            await tracked_links.insert(connection, batch.organization_id, batch.env, batch.channel, block.links)

    async def _replace(self, connection: Executor, batch: NewBatch | PendingBlock, block: Block) -> None:
        """The old messages, locked before, point to those that were made now."""
        if block.recipients.replaces:
            await replacements.replace(connection, _replacements(batch, block), self._clock.now())

    async def _follow(
        self,
        connection: Executor,
        batch: NewBatch | PendingBlock,
        block: Block,
        now: datetime,
        *,
        estimate: int | None = None,
    ) -> AfterCommit:
        """The hold, the totals and whatever else follows from new messages.

        `estimate`: of the whole batch when it is new; its own total counts them already then.
        """
        organization_id, env, _ = batch.key
        held = block.held
        if held or estimate:  # a batch that begins with what is free has to be covered as a whole too (C25.2.3)
            refusal = await self._tariff.hold(connection, organization_id, env, held, estimate or held)
            if refusal is not None:
                raise NotCovered(refusal)
        if estimate is None:
            delta = [len(block.ids), len(block.ids), 0, 0, 0, 0, 0, held, 0]
            await totals.add(connection, {(organization_id, env, totals.BATCH, batch.id): delta}, now)
        own = block.recipients.campaign_ids
        if (batch.campaign_id is None and own is None) or not block.ids:
            return _nothing
        return await self._consequences.write(
            connection,
            [
                Moved(
                    organization_id,
                    env,
                    batch.channel,
                    message_id,
                    None,
                    MessageStatus.QUEUED.value,
                    coins or 0,
                    campaign_id=batch.campaign_id if own is None else own[place],
                )
                for place, (message_id, coins) in enumerate(zip(block.ids, block.coins, strict=True))
            ],
        )

    def _arrived(self, batch: NewBatch | PendingBlock, block: Block, due_at: datetime, now: datetime) -> None:
        self._accepted[batch.channel] += len(block.ids)
        if due_at > now or not block.ids:
            return
        for sender_id, rows in arrivals(batch, block, due_at).items():
            self._tell(SenderKey(batch.organization_id, batch.env, batch.channel, sender_id), Arrived(tuple(rows)))


def _replacements(batch: NewBatch | PendingBlock, block: Block) -> list[Replacement]:
    return [
        Replacement(batch.organization_id, batch.env, batch.channel, old_id, new_id, include_uncertain=True)
        for old_id, new_id in zip(block.recipients.replaces or (), block.ids, strict=True)
    ]


def _nothing() -> None:
    """Nothing is left to do."""
