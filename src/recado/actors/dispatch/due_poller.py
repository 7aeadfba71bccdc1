"""The net under the hints: whatever is due or ready in the table reaches its sender's lane within a second (C32)."""

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta

from recado.actors.dispatch.lane_messages import Heads, Look
from recado.domain.core.clock import Clock
from recado.domain.senders.sender import SenderKey
from recado.engine.periodic import Periodic
from recado.services.dispatch.sending import Tell
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch
from recado.storage.dispatch.dispatch import BLOCK

EVERY = 1.0  # seconds
EVERY_NUMBER_EVERY = 10  # runs: an actor in memory has been told, and is reminded less often
HINTED_WITHIN = timedelta(milliseconds=250)  # of younger rows the hint may be under way
STARTING_AT_MOST = 1_000  # actors: after a restart many numbers have work, and each that starts holds much memory


class DuePoller:
    """Makes due rows ready, and starts the lanes of senders that have ready rows."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        tell: Tell,
        in_memory: Callable[[SenderKey], bool],
        starting: Callable[[], int],
    ) -> None:
        """`starting`: how many lanes have not begun to work yet."""
        self._db = db
        self._clock = clock
        self._tell = tell
        self._in_memory = in_memory
        self._starting = starting
        self._runs = 0
        self._worker = Periodic("due messages", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """One look."""
        told = await self._release()
        remind = self._runs % EVERY_NUMBER_EVERY == 0
        self._runs += 1
        room = self._room()
        at_work: list[SenderKey] = []
        for sender in await dispatch.ready_senders(self._db):
            if sender in told:
                continue
            if not self._in_memory(sender):
                if room <= 0:
                    continue
                room -= 1
            else:
                at_work.append(sender)
                if not remind:
                    continue
            self._tell(sender, Look())
        await self._compare(at_work)

    async def _compare(self, senders: Sequence[SenderKey]) -> None:
        """Tell lanes in memory where the table begins: rows of another process, whose hint was lost, are found so."""
        due_until = self._clock.now() - HINTED_WITHIN
        for sender, heads in (await dispatch.heads(self._db, senders, due_until)).items():
            self._tell(sender, Heads(tuple(heads)))

    async def _release(self) -> set[SenderKey]:
        """Make ready what is due, block by block, and tell each block's senders at once; answers those told.

        More than a block may be due of one sender before the first row of another: so each sender gets some between.
        """
        told: set[SenderKey] = set()
        while True:
            now = self._clock.now()
            released = await dispatch.release_due(self._db, now)
            self._wake(released, told)
            if len(released) < BLOCK:
                return told
            self._wake(await dispatch.release_of_each(self._db, now), told)

    def _wake(self, released: Iterable[SenderKey], told: set[SenderKey]) -> None:
        room = self._room()
        for sender in set(released):
            if not self._in_memory(sender):
                if room <= 0:
                    continue
                room -= 1
            told.add(sender)
            self._tell(sender, Look())

    def _room(self) -> int:
        return STARTING_AT_MOST - self._starting()
