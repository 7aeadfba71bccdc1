"""The net under the hints: whatever is due or ready in the table reaches its number's actor within a second (C32)."""

from collections.abc import Callable

from recado.actors.number_messages import Look
from recado.actors.sending import Tell
from recado.domain.clock import Clock
from recado.engine.periodic import Periodic
from recado.storage import dispatch
from recado.storage.dispatch import BLOCK
from recado.storage.numbers import NumberKey
from recado.storage.postgres import Database

EVERY = 1.0  # seconds
EVERY_NUMBER_EVERY = 10  # runs: an actor in memory has been told, and is reminded less often


class DuePoller:
    """Makes due rows ready, and starts the actors of numbers that have ready rows."""

    def __init__(self, db: Database, *, clock: Clock, tell: Tell, in_memory: Callable[[NumberKey], bool]) -> None:
        self._db = db
        self._clock = clock
        self._tell = tell
        self._in_memory = in_memory
        self._runs = 0
        self._worker = Periodic("due messages", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """One look."""
        told: set[NumberKey] = set()
        while True:
            released = await dispatch.release_due(self._db, self._clock.now())
            told.update(released)
            for number in set(released):
                self._tell(number, Look())
            if len(released) < BLOCK:
                break
        remind = self._runs % EVERY_NUMBER_EVERY == 0
        self._runs += 1
        for number in await dispatch.ready_numbers(self._db):
            if number not in told and (remind or not self._in_memory(number)):
                self._tell(number, Look())
