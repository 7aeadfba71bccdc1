"""Accepting a batch: the rules once for what its messages share, one pass over its recipients, one durable commit.

A batch of up to a block is made whole in that commit; of a larger one its first block, and the builder does the rest.
Batches that come at the same time share a commit.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable, no_provider
from recado.domain.core.ids import BATCH, IdSource
from recado.domain.core.json_text import json_or_none
from recado.domain.messages.message import CLASS_OF
from recado.engine.steps import in_steps
from recado.services.batches.batch_audience import Audiences
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.batch_maker import BatchMaker
from recado.services.batches.batch_people import addresses_by_contact, ask_for_consent, leave_out_suppressed
from recado.services.batches.batch_rules import AcceptedRecipients, accept_recipients, only_in_window
from recado.services.batches.channel_batches import BatchTerms, ChannelBatches
from recado.services.batches.tariff import NotCovered
from recado.services.messages.acceptance_rules import no_channel
from recado.services.messages.request_keys import still_bound
from recado.storage.batches import batches
from recado.storage.batches.batch_making import NewBatch
from recado.storage.batches.batches import Batch
from recado.storage.billing.holds import HoldsRefused
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import partition_repair
from recado.storage.links.tracked_links import CodeTaken
from recado.storage.messages import messages
from recado.storage.messages.chat_windows import WINDOW
from recado.storage.messages.messages import Bound

IN_A_COMMIT = 8  # batches
COMMITS_IN_FLIGHT = 3
MOST_WAITING = 200  # batches: each may hold ten thousand recipients in memory
_REBINDS = 3

Store = Callable[[Sequence[NewBatch]], Awaitable[Sequence[bool | Exception]]]
"""Commits batches; for each whether it was stored, or why not."""


class Keyed(Protocol):
    """A request that may have an idempotency key."""

    @property
    def organization_id(self) -> str: ...

    @property
    def env(self) -> str: ...

    @property
    def key_hash(self) -> bytes | None: ...

    @property
    def fingerprint(self) -> bytes | None: ...


@dataclass(frozen=True, slots=True)
class AcceptedBatch:
    """Committed by this request."""

    batch: NewBatch


@dataclass(frozen=True, slots=True)
class ReplayedBatch:
    """The key had made this batch before; it is shown as it is now."""

    batch: Batch


class BatchAcceptance:
    """`channels`: those that have batches. `unfinished`: a batch has blocks left to make."""

    def __init__(
        self,
        db: Database,
        *,
        channels: Mapping[str, ChannelBatches],
        maker: BatchMaker,
        audiences: Audiences,
        ids: IdSource,
        clock: Clock,
        unfinished: Callable[[], None],
    ) -> None:
        self._db = db
        self._channels = channels
        self._maker = maker
        self._audiences = audiences
        self._ids = ids
        self._clock = clock
        self._unfinished = unfinished

        def storing(name: str, run: Store) -> Batcher[NewBatch, bool]:
            return Batcher(
                name,
                run,
                clock=clock,
                max_rows=IN_A_COMMIT,
                max_queue=MOST_WAITING,
                concurrency=COMMITS_IN_FLIGHT,
                repair=partition_repair(db, clock),
            )

        self._plain = storing("batches", self._store_plain)
        self._others = storing("batches with more", self._store_others)

    async def start(self) -> None:
        await self._plain.start()
        await self._others.start()

    async def stop(self) -> None:
        """Flushes what was given."""
        await self._others.stop()
        await self._plain.stop()

    async def accept(self, draft: BatchDraft) -> AcceptedBatch | ReplayedBatch:
        """Store the batch, or find the one that its key made. Raises `Problem` for whatever forbids it as a whole."""
        try:
            return await self.store(await self._checked(draft))
        except Problem as refusal:
            # A repeat gets the answer of its first request, whatever has changed since (C2.6: replay before rules).
            replayed = None if isinstance(refusal, Unavailable) else await self.replay(draft)
            if replayed is None:
                raise refusal from None
            return replayed

    async def examine(self, draft: BatchDraft) -> None:
        """Raise what `accept` refuses in the batch itself; nothing is stored."""
        await self._checked(draft)

    async def store(self, new: NewBatch) -> AcceptedBatch | ReplayedBatch:
        """Commit a batch as it is, or find the one that its key made: also for batches that no body described."""
        await self._maker.prepare(new)
        lacks = new.lacks if new.env in self._channels[new.channel].sends_in else new.channel
        if lacks is not None:
            raise await self._maker.refusal(new) or no_provider(lacks)
        batcher = self._plain if self._maker.is_plain(new) else self._others
        for _ in range(_REBINDS):
            try:
                stored = await batcher.put(new)
            except CodeTaken:  # another message has the code of a link: others are drawn
                await self._maker.prepare(new)
                continue
            if stored:
                if new.blocks_left:
                    self._unfinished()
                return AcceptedBatch(new)
            replayed = await self._made_by(new, await self._bound(new))
            if isinstance(replayed, Batch):
                return AcceptedBatch(new) if replayed.id == new.id else ReplayedBatch(replayed)
        raise Unavailable("The batch could not be stored now: send it again.")

    # The rules ------------------------------------------------------------------------------------------------------

    async def _checked(self, draft: BatchDraft) -> NewBatch:
        rules = self._channels.get(draft.channel)
        if rules is None:
            raise no_channel(draft.channel, self._channels)
        batch_id = self._ids.new(BATCH)
        now = self._ids.moment_of(batch_id)
        terms = await rules.terms(draft, now)
        addressed = await self._audiences.of(draft, terms) if draft.has_audience else None
        accepted = await self._accepted(draft, terms, now)
        if terms.obeys.consent:
            await ask_for_consent(self._db.hot, draft, accepted, granted_only=terms.granted_only)
        await leave_out_suppressed(draft, accepted, rules)
        seconds = draft.ttl_seconds or int(terms.ttl.total_seconds())
        return NewBatch(
            organization_id=draft.organization_id,
            env=draft.env,
            id=batch_id,
            name=draft.name,
            channel=draft.channel,
            sender_id=terms.sender_id,
            type=draft.type,
            template_id=draft.template_id,
            payload=json_or_none(draft.payload),
            klass=CLASS_OF[draft.priority],
            campaign_id=draft.campaign_id,
            scheduled_at=terms.due_at if draft.scheduled_at is not None else None,
            ttl_ms=seconds * 1000,
            held_base_ms=terms.held_ms,
            accepted_at=now,
            requested=len(draft.recipients) if addressed is None else addressed.count,
            recipients=accepted.recipients,
            **accepted.left_out.columns(),
            created_by_id=draft.created_by_id,
            key_hash=draft.key_hash,
            fingerprint=draft.fingerprint,
            audience=None if addressed is None else addressed.audience,
            regions={} if addressed is None else addressed.regions,
            lacks=terms.lacks,
        )

    async def _accepted(self, draft: BatchDraft, terms: BatchTerms, now: datetime) -> AcceptedRecipients:
        contacts = await addresses_by_contact(self._db.hot, draft)
        accepted = await in_steps(accept_recipients(draft, terms, contacts))
        if terms.obeys.window and accepted.places:
            inside = await batches.with_open_window(
                self._db.hot, draft.organization_id, terms.sender_id, accepted.recipients.hashes, now - WINDOW
            )
            only_in_window(accepted, inside)
        return accepted

    # The commit -----------------------------------------------------------------------------------------------------

    async def _store_plain(self, made: Sequence[NewBatch]) -> list[bool | Exception]:
        try:
            left_out = await self._maker.create_plain(made)
        except HoldsRefused:
            return await self._store_others(made)
        for new in made:
            if new.id not in left_out:
                self._maker.told(new)
        return [new.id not in left_out for new in made]

    async def _store_others(self, made: Sequence[NewBatch]) -> list[bool | Exception]:
        """Each in a transaction of its own: one that is not covered is undone alone, in the order of arrival."""
        return [await self._store_other(new) for new in made]

    async def _store_other(self, new: NewBatch) -> bool | Exception:
        try:
            async with self._db.hot.transaction() as connection:
                committed = await self._maker.create_batch(connection, new)
        except NotCovered as refused:
            return refused.problem
        except CodeTaken as error:  # which hardly ever happens
            return error
        if committed is None:
            return False
        committed()
        return True

    # Repeats --------------------------------------------------------------------------------------------------------

    async def _bound(self, new: Keyed) -> Bound | None:
        if new.key_hash is None:
            return None
        return await messages.binding(self._db, new.organization_id, new.env, new.key_hash)

    async def replay(self, draft: Keyed) -> ReplayedBatch | None:
        """What the key of a request had made before; None when it is free, or there is none."""
        bound = await self._bound(draft)
        if bound is None or not still_bound(bound, draft.fingerprint, self._clock.now()):
            return None
        found = await batches.get(self._db, (draft.organization_id, draft.env, bound.message_id))
        return None if found is None else ReplayedBatch(found)

    async def _made_by(self, new: NewBatch, bound: Bound | None) -> Batch | None:
        """The batch that holds the key; None when the key is free."""
        if bound is None:
            # Without a key, only an earlier run of the same commit can have left it out.
            return await batches.get(self._db, new.key)
        if not still_bound(bound, new.fingerprint, self._clock.now()):
            await batches.unbind(self._db, new.organization_id, new.env, new.key_hash, bound.message_id)
            return None
        return await batches.get(self._db, (new.organization_id, new.env, bound.message_id))
