"""The queued rows of a batch follow it: held back while it is paused, archived once it is canceled (C15.5).

The batch is moved before, in one small commit, and is a gate from then on (`owners.py`); its rows may take a minute. A
few blocks are done before the caller is answered, so that a small batch is done by then; the others in turns of their
organizations, however many batches one has.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass

import structlog

from recado.domain.batches.batch import BLOCK
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.services.effects.consequences import Consequences
from recado.storage.batches import batches
from recado.storage.batches.batches import BatchKey
from recado.storage.core.connections.postgres import Database

log = structlog.get_logger()

BLOCKS_AT_ONCE = 4  # before a caller is answered
LOOK_EVERY = 1.0  # seconds

_Step = Callable[[BatchKey, str], Awaitable[list[str]]]
"""Moves one block of a batch's rows after an id, in the order of ids; answers theirs."""


@dataclass(frozen=True, slots=True)
class _Work:
    """What is to be done with the rows of one batch."""

    key: BatchKey
    step: _Step


class BatchQueue:
    """A service. `through` is told of each canceled batch of which nothing is left to be archived."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        consequences: Consequences,
        through: Callable[[BatchKey], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._consequences = consequences
        self._through = through
        # By organization: up to which id each work of its batches is done. Of both, the next one first.
        self._left: dict[str, dict[_Work, str]] = {}
        self._stopping = False
        self._worker = Periodic("queues of batches", LOOK_EVERY, self.work, clock)

    async def start(self) -> None:
        self._stopping = False
        await self._worker.start()

    async def stop(self) -> None:
        """Ends after the block under way; what is canceled is taken up again by the next start (`Batches`)."""
        self._stopping = True
        await self._worker.stop()

    async def hold(self, key: BatchKey) -> None:
        """Take the ready rows of a paused batch out of the ready index: nobody has to look at each of them then."""
        await self._begin(_Work(key, self._hold))

    async def withdraw(self, key: BatchKey) -> None:
        """Archive the queued rows of a canceled batch, with what follows from it."""
        await self._begin(_Work(key, self._withdraw))

    def take_up(self, key: BatchKey) -> None:
        """As `withdraw`, of what a crash left undone: nobody is answered, and so nobody waits for its first blocks."""
        self._left.setdefault(key[0], {}).setdefault(_Work(key, self._withdraw), "")
        self._worker.hint()

    async def work(self) -> None:
        """Whatever is left, one block of each organization in turn: neither many nor large ones delay any.

        A batch whose block fails waits for the next look.
        """
        failed: set[_Work] = set()
        while not self._stopping and (work := self._next(failed)):
            works = self._left[work.key[0]]
            after_id = works[work]
            try:
                after = await self._advance(work, after_id)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 - one batch must not keep the others waiting
                _not_followed(work, error)
                failed.add(work)
                continue
            if after is not None:
                works[work] = after
                continue
            del works[work]
            if not works:
                del self._left[work.key[0]]

    def _next(self, failed: Collection[_Work]) -> _Work | None:
        """What has its turn: it is the last one of its organization then, and that the last of all."""
        for organization_id, works in self._left.items():
            work = next((each for each in works if each not in failed), None)
            if work is not None:
                works[work] = works.pop(work)
                self._left[organization_id] = self._left.pop(organization_id)
                return work
        return None

    async def _begin(self, work: _Work) -> None:
        if work in self._left.get(work.key[0], ()):
            return
        at, through = "", False
        try:
            for _ in range(BLOCKS_AT_ONCE):
                after = await self._advance(work, at)
                if after is None:
                    through = True
                    return
                at = after
        except Unavailable:
            pass  # the batch is moved: its rows will follow
        except Exception as error:  # noqa: BLE001 - as above
            _not_followed(work, error)
        finally:
            if not through:
                self._left.setdefault(work.key[0], {}).setdefault(work, at)
                self._worker.hint()

    async def _advance(self, work: _Work, after_id: str) -> str | None:
        """One block; answers where the next one begins, None when there is none."""
        moved = await work.step(work.key, after_id)
        if len(moved) == BLOCK:
            return max(moved)
        if after_id:
            return ""  # once more from the start: rows that another had locked, and those that came back
        if work.step == self._withdraw:
            self._through(work.key)
        return None

    async def _hold(self, key: BatchKey, after_id: str) -> list[str]:
        return await batches.hold(self._db, key, BLOCK, after_id)

    async def _withdraw(self, key: BatchKey, after_id: str) -> list[str]:
        async with self._db.hot.transaction() as connection:
            moved = await batches.withdraw(connection, key, self._clock.now(), BLOCK, after_id)
            committed = await self._consequences.write(connection, moved)
        committed()
        return [each.id for each in moved]


def _not_followed(work: _Work, error: Exception) -> None:
    log.error("batch_not_followed", batch_id=work.key[2], error=type(error).__name__)
