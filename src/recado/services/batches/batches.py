"""The life of batches after their acceptance: building, pauses, cancels, completion (C15.5).

The rows are the truth. What a caller's move leaves to be done in blocks (holding back, letting go, withdrawing) is
taken up again after a crash: a batch stays open until nothing of it is left to happen.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence, Set
from contextlib import asynccontextmanager, suppress

import structlog

from recado.domain.batches.batch import NO_BALANCE, BatchEvent, BatchStatus
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.senders.sender import SenderKey
from recado.engine.periodic import Periodic
from recado.services.batches.audience_reader import AudienceReader
from recado.services.batches.batch_audience import Audiences
from recado.services.batches.batch_maker import BatchMaker
from recado.services.batches.batch_queue import BatchQueue
from recado.services.batches.tariff import NotCovered
from recado.services.dispatch.hints import OwnerMoved
from recado.services.dispatch.owners import Owners
from recado.services.dispatch.sending import Tell
from recado.services.effects.consequences import Consequences
from recado.storage.batches import batches
from recado.storage.batches.batches import Batch, BatchKey, OpenBatch
from recado.storage.batches.totals import BATCH, TotalsKey
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.fair_places import FairPlaces

log = structlog.get_logger()

LOOK_EVERY = 1.0  # seconds
LOOK_AT_ALL_EVERY = 60  # looks: a minute (C32)
MOST_WAITING = 500  # moves of one batch


class Batches:
    """A service; and the moves that callers make.

    `claims_settled` comes back when every claim begun before is committed, or has failed.
    """

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        maker: BatchMaker,
        audiences: Audiences,
        owners: Owners,
        consequences: Consequences,
        tell: Tell,
        claims_settled: Callable[[], Awaitable[None]],
    ) -> None:
        self._db = db
        self._clock = clock
        self._maker = maker
        self._owners = owners
        self._tell = tell
        self._claims_settled = claims_settled
        self._emptied: set[BatchKey] = set()
        self._reader = AudienceReader(db, audiences, clock=clock, read=self._audience_read)
        self.queue = BatchQueue(db, clock=clock, consequences=consequences, through=self._withdrawn)
        self._turns = FairPlaces(sys.maxsize, most_waiting=MOST_WAITING)  # of each batch one move at a time
        self._moving: set[BatchKey] = set()
        self._closing: set[BatchKey] = set()
        self._moved: set[BatchKey] = set()  # since the last look at all began, or while it did
        self._looks = 0
        self._stopping = False
        self._worker = Periodic("batches", LOOK_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        """Before any number starts: what is paused must not leave."""
        self._stopping = False
        self._owners.load(await batches.open_batches(self._db))
        await self.queue.start()
        await self._reader.start()
        await self._worker.start()

    async def stop(self) -> None:
        """Ends after the block under way; the next start goes on."""
        self._stopping = True
        await self._reader.stop()
        await self._worker.stop()
        await self.queue.stop()

    def hint(self) -> None:
        """A batch has rows left to make, or an audience to be read."""
        self._worker.hint()
        self._reader.hint()

    def emptied(self, keys: Sequence[TotalsKey]) -> None:
        """Nothing of these is queued or sending any more."""
        found = {(organization_id, env, key) for organization_id, env, kind, key in keys if kind == BATCH}
        if found:
            self._emptied |= found
            self._worker.hint()

    # What callers do ------------------------------------------------------------------------------------------------

    async def pause(self, batch: Batch) -> bool:
        """Hold its queued messages back; False when its state does not allow it."""
        key = (batch.organization_id, batch.env, batch.id)
        await self._close_own(key)  # what has left as a whole is completed, though nobody looked yet
        return await self._pause(key, BatchEvent.PAUSE)

    async def resume(self, batch: Batch) -> bool:
        """Let it go on; False when it is not paused."""
        key = (batch.organization_id, batch.env, batch.id)
        async with self._move(key):
            stood = await batches.resume(self._db, key, self._clock.now())
            if stood is None:
                return False
            self._owners.resumed(batch.id, stood.held_ms, early_ms=stood.early_ms, scheduled_at=stood.scheduled_at)
        await self._owner_moved(batch)
        self._emptied.add(key)  # its last message may have left while it was paused
        self.hint()
        return True

    async def cancel(self, batch: Batch) -> bool:
        """Make no more of it and withdraw its queued messages; False when it is over already.

        No message of it is claimed after the commit. Of a large one most are archived after the answer.
        """
        key, owners = (batch.organization_id, batch.env, batch.id), self._owners
        await self._close_own(key)
        async with self._move(key):
            now, held = self._clock.now(), owners.holds(batch.id)
            owners.canceled(batch.id, now)
            await self._claims_settled()
            if not await batches.cancel(self._db, key, now):
                if not held:
                    owners.gone(batch.id)
                return False
        self._reader.let_go(key)
        await self.queue.withdraw(key)
        with suppress(Unavailable):  # it is canceled all the same
            await self._close_own(key)
        return True

    @asynccontextmanager
    async def _move(self, key: BatchKey) -> AsyncIterator[None]:
        """Move a batch and tell the owners, before another moves it: the answers of two moves may come in any order.

        Moves of other batches wait for nothing: a caller's move may wait long for its share of the database.
        """
        async with self._turns.place(key[2]), self._read_again_if_lost():
            self._moving.add(key)
            self._moved.add(key)
            try:
                yield
            finally:
                self._moving.discard(key)

    @asynccontextmanager
    async def _read_again_if_lost(self) -> AsyncIterator[None]:
        """An answer that is lost hides whether a row was moved: then the rows are read again, at once."""
        try:
            yield
        except BaseException:
            self._looks = 0
            self._worker.hint()
            raise

    async def _pause(self, key: BatchKey, event: BatchEvent, reason: str | None = None) -> bool:
        async with self._move(key):
            now = self._clock.now()
            if not await batches.pause(self._db, key, now, event, reason):
                return False
            self._owners.paused(key[2], now)  # from here on no lane lets a message of it go
        self._reader.let_go(key)
        await self.queue.hold(key)
        return True

    def _withdrawn(self, key: BatchKey) -> None:
        """Nothing of a canceled batch is left to be archived."""
        self._emptied.add(key)
        self._worker.hint()

    def _audience_read(self, key: BatchKey, blocks_left: int) -> None:
        """More of its audience is in blocks, or nothing more was found."""
        if not blocks_left:
            self._emptied.add(key)  # all that was made before may have left
        self._worker.hint()

    # What happens by itself -----------------------------------------------------------------------------------------

    async def work(self) -> None:
        """One look."""
        looks, self._looks = self._looks, self._looks + 1
        if looks % LOOK_AT_ALL_EVERY == 0:
            try:
                await self._look_at_all()
            except BaseException:
                self._looks = 0
                raise
        await self._build()
        await self._close()

    async def _build(self) -> None:
        """A block of one batch of each organization, again and again: large ones keep no others waiting, nor do many.

        A batch that could not be made waits for the next look.
        """
        failed: set[str] = set()
        last: dict[str, str] = {}
        while keys := await batches.next_in_turn(self._db.hot, in_blocks=True, last=last, without=failed):
            for key in keys:
                if self._stopping:
                    return
                last[key[0]] = key[2]
                if not await self._make_next(key):
                    failed.add(key[2])
                await self._close()

    async def _make_next(self, key: BatchKey) -> bool:
        try:
            blocks_left = await self._maker.make_next(key)
        except NotCovered:
            if key in self._moving:  # by its caller, for whose place at the database nobody else waits
                return False
            log.info("batch_paused", batch_id=key[2], reason=NO_BALANCE)
            await self._pause(key, BatchEvent.NOT_COVERED, NO_BALANCE)
            return False
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - one batch that cannot be made must not keep the others waiting
            log.error("batch_not_made", batch_id=key[2], error=type(error).__name__)
            return False
        if blocks_left == 0:
            self._emptied.add(key)  # all that was made before may have left
        elif blocks_left == 1:
            self._reader.hint()  # it may be more of an audience
        return blocks_left is not None

    async def _close(self) -> None:
        await self._close_these(self._emptied)

    async def _close_own(self, key: BatchKey) -> None:
        """For a caller: those of others are no work for its share of the database. One under way may be too late."""
        await self._close_these({key} & (self._emptied | self._closing))

    async def _close_these(self, emptied: Set[BatchKey]) -> None:
        """Bring to rest what nothing is left of. Waits for no move: none of a batch at rest comes after it."""
        keys = sorted(emptied)
        if not keys:
            return
        self._emptied.difference_update(keys)
        self._closing.update(keys)
        try:
            async with self._read_again_if_lost():
                for key in await batches.close(self._db, keys, self._clock.now()):
                    self._moved.add(key)
                    self._owners.gone(key[2])
        except BaseException:
            self._emptied.update(keys)
            raise
        finally:
            self._closing.difference_update(keys)

    async def _look_at_all(self) -> None:
        """Take up what a crash, a lost answer or a lost hint left undone."""
        self._moved = set(self._moving)
        found = await batches.open_batches(self._db)
        self._owners.load(found, moved={key[2] for key in self._moved})
        for batch in found:
            match batch.status:
                case BatchStatus.CANCELED:
                    self.queue.take_up(batch.key)  # in turns: a thousand of one organization delay nobody's batch
                    self._emptied.add(batch.key)
                case BatchStatus.RUNNING | BatchStatus.BUILDING:
                    self._emptied.add(batch.key)
                    if batch.held_ms:
                        await self._owner_moved(batch)

    async def _owner_moved(self, batch: Batch | OpenBatch) -> None:
        for sender_id in await batches.senders_of(self._db, batch):
            self._tell(SenderKey(batch.organization_id, batch.env, batch.channel, sender_id), OwnerMoved(batch.id))
