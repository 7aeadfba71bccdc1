"""Journeys that cannot go on pause themselves, and go on when their wallet has coins again (C9.7.5, C9.8.4).

A turn of executions knows what hindered one, and pauses the journey right after its commit: who moves a journey locks
it before its executions, and until then those are locked. Where a process dies in between, the journey runs on: the
next execution that is hindered pauses it, and one that lacked coins asks again at once.

The rest is looked for every second, in rows: so nothing is lost with a process. Messages that failed are left by the
commits in which they fail; and a wallet is compared with what was lacking, whoever filled it, and by what.
"""

from collections.abc import Callable, Mapping
from typing import Final

import structlog

from recado.domain.core.clock import Clock
from recado.domain.journeys.journey import AutomaticPause, Hindrance
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.engine.turns import turns
from recado.services.journeys.standing import Hindered
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.journeys import hindrances, states
from recado.storage.journeys.hindrances import FIRST
from recado.storage.journeys.states import JourneyKey

log = structlog.get_logger()

BLOCK: Final = 500  # failures, or journeys that wait for coins, in one look


class JourneyPauses:
    """Told after the commit: `paused`, of a journey that has paused itself; `resumed`, that executions go on."""

    def __init__(
        self, db: Database, *, clock: Clock, paused: Callable[[OwnerPauses], None], resumed: Callable[[], None]
    ) -> None:
        self._db = db
        self._clock = clock
        self._paused = paused
        self._resumed = resumed
        self._after = FIRST
        self._unpaused: dict[JourneyKey, AutomaticPause] = {}  # somebody had them in hand

    async def look(self) -> None:
        """Pause those of which a step fails again and again; let those go on whose wallet has what was lacking."""
        await self._failures()
        await self._credits()

    async def _failures(self) -> None:
        for journey, cause in list(self._unpaused.items()):
            del self._unpaused[journey]
            async with self._db.hot.transaction() as connection:
                stands = await self._pause_failing(connection, journey, cause)
            if stands is not None:
                _tell(stands, Hindrance.CONSECUTIVE_FAILURES, self._paused)
        if not await hindrances.any_failures(self._db.hot):
            return
        while await self._block_of_failures() == BLOCK:
            await turns.next()

    async def _block_of_failures(self) -> int:
        now = self._clock.now()
        paused = []
        async with self._db.hot.transaction() as connection:
            failed = await hindrances.take_failures(connection, BLOCK)
            found = await hindrances.failing(connection, failed) if failed else []
            for journey, step_id, message_id in found:
                cause = AutomaticPause(Hindrance.CONSECUTIVE_FAILURES, step_id, now, failed=message_id)
                if (stands := await self._pause_failing(connection, journey, cause)) is not None:
                    paused.append(stands)
        for stands in paused:
            _tell(stands, Hindrance.CONSECUTIVE_FAILURES, self._paused)
        return len(failed)

    async def _pause_failing(
        self, connection: Connection, journey: JourneyKey, cause: AutomaticPause
    ) -> OwnerPauses | None:
        """Pause it. Where somebody has it in hand, as entries have, it is tried again at the next look."""
        stands = await states.pause_itself(connection, journey, cause)
        if stands is None and await states.runs(connection, journey):
            self._unpaused[journey] = cause
        return stands

    async def _credits(self) -> None:
        """A block of them, and the next one at the next look: each costs a look at its wallet, whatever that has."""
        waiting = await hindrances.without_coins(self._db.hot, self._after, BLOCK)
        self._after = waiting[-1].key if len(waiting) == BLOCK else FIRST
        covered = [key for key, covered in waiting if covered]
        if covered and await states.go_on_credited(self._db.hot, covered, self._clock.now()):
            self._resumed()


async def pause_hindered(
    db: Database,
    clock: Clock,
    found: Mapping[JourneyKey, tuple[int, Hindered]],
    paused: Callable[[OwnerPauses], None],
) -> None:
    """Pause these journeys, if they are still at the revision at which an execution was hindered; tell of each.

    The executions of all organizations wait meanwhile: a journey that somebody else has in hand is left to the next
    execution that is hindered.
    """
    for journey, (revision, hindered) in sorted(found.items()):
        stands = await _pause(db, clock, journey, revision, hindered)
        if stands is not None:
            _tell(stands, hindered.hindrance, paused)


async def _pause(
    db: Database, clock: Clock, journey: JourneyKey, revision: int, hindered: Hindered
) -> OwnerPauses | None:
    organization_id, env, _ = journey
    async with db.hot.transaction() as connection:
        label = None
        if hindered.about is not None:
            label = await hindrances.label(connection, organization_id, env, hindered.about)
        cause = AutomaticPause(hindered.hindrance, hindered.step, clock.now(), label, lacked=hindered.coins)
        return await states.pause_itself(connection, journey, cause, revision=revision)


def _tell(stands: OwnerPauses, hindrance: Hindrance, paused: Callable[[OwnerPauses], None]) -> None:
    """What it has queued is held from here on."""
    paused(stands)
    log.info("journey_paused", organization_id=stands.organization_id, journey_id=stands.owner, reason=hindrance.value)
