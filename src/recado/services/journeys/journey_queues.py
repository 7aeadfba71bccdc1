"""Queued messages follow their journey (C9.12): held while it is paused, and let go when it is activated again.

The rows of `journeys` are the truth. A move is a gate from its commit on (`owners.py`): whoever moved the journey tells
it here at once, and what nobody told is found by a look every second. The rows of the queue follow in blocks.
"""

from datetime import datetime, timedelta
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.engine.periodic import Periodic
from recado.engine.turns import turns
from recado.services.dispatch.hints import OwnerMoved
from recado.services.dispatch.owners import Owners
from recado.services.dispatch.sending import Tell
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import journey_queues
from recado.storage.journeys.journey_queues import FIRST, Position
from recado.storage.journeys.states import JourneyKey

LOOK_EVERY: Final = 1.0  # seconds
LOOK_AT_ALL_EVERY: Final = 60  # looks: a minute (C32)
LATE: Final = timedelta(seconds=30)
"""How much later than the moment of a move its commit may be, and be found by the next look; else by a look at all."""

BLOCK: Final = 500  # messages that are held in one statement


class JourneyQueues:
    """A service (`start`, `stop`). `tell`: the lanes, of journeys that go on."""

    def __init__(self, db: Database, *, clock: Clock, owners: Owners, tell: Tell) -> None:
        self._db = db
        self._clock = clock
        self._owners = owners
        self._tell = tell
        self._to_hold: dict[JourneyKey, Position] = {}  # up to which row it is done
        self._to_let_go: set[JourneyKey] = set()
        self._moved: set[str] = set()  # since the last look at all began
        self._looks = 0
        self._looked_at: datetime | None = None
        self._stopping = False
        self._worker = Periodic("queues of journeys", LOOK_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        """Before any lane starts: what is paused must not leave. What was to be let go, the rescuer finds."""
        self._stopping = False
        self._looked_at = self._clock.now()
        for stands in await journey_queues.stood_still(self._db, self._looked_at):
            self._owners.journey(stands)
        await self._worker.start()

    async def stop(self) -> None:
        """Ends after the block under way: what is held by its gate alone is held row by row."""
        self._stopping = True
        await self._worker.stop()

    def moved(self, stands: OwnerPauses) -> None:
        """A journey was moved, and that is committed; or it may be, when its answer was lost."""
        self._know(stands)
        self._worker.hint()

    async def work(self) -> None:
        """One look, and whatever is to be done with the rows then."""
        looks, self._looks = self._looks, self._looks + 1
        if looks % LOOK_AT_ALL_EVERY == 0:
            try:
                await self._look_at_all()
            except BaseException:
                self._looks = 0
                raise
        else:
            await self._look()
        while not self._stopping and (self._to_let_go or self._to_hold):
            await turns.next()
            await self._let_go()
            await self._hold()

    async def _look(self) -> None:
        now, since = self._clock.now(), self._looked_at
        for stands in await journey_queues.stood_still(self._db, now, *[] if since is None else [since - LATE]):
            self._know(stands)
        self._looked_at = now

    async def _look_at_all(self) -> None:
        self._moved.clear()
        now = self._clock.now()
        found = await journey_queues.stood_still(self._db, now)
        for stands in found:
            self._know(stands)
        self._owners.keep_journeys({stands.owner for stands in found} | self._moved)
        self._looked_at = now

    def _know(self, stands: OwnerPauses) -> None:
        if not self._owners.journey(stands):
            return
        self._moved.add(stands.owner)
        key = (stands.organization_id, stands.env, stands.owner)
        self._to_hold.pop(key, None)
        self._to_let_go.discard(key)
        if stands.paused_at is not None:
            self._to_hold[key] = FIRST
        elif stands.past:  # else it is archived
            self._to_let_go.add(key)

    async def _let_go(self) -> None:
        while self._to_let_go:
            key = next(iter(self._to_let_go))
            senders = await journey_queues.senders(self._db, key)
            if key in self._to_let_go:  # it was not paused again meanwhile
                self._to_let_go.discard(key)
                for sender in senders:
                    self._tell(sender, OwnerMoved(key[2]))

    async def _hold(self) -> None:
        """One block of one journey; then it is the last in the line."""
        if not self._to_hold:
            return
        key = next(iter(self._to_hold))
        after = self._to_hold[key]
        held = await journey_queues.hold(self._db, key, after, limit=BLOCK)
        if self._to_hold.get(key) is not after:  # it went on, or was paused once more
            return
        del self._to_hold[key]
        if len(held) == BLOCK:
            self._to_hold[key] = held[-1]
