"""Looks twice a second for executions that are due, and takes them along in turns until none is left (C9.15, C32).

One that waits has nothing in memory: a million of them cost this no more than a thousand.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

import structlog

from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.engine.turns import turns
from recado.services.journeys.arrivals import JourneyArrivals
from recado.services.journeys.event_entries import EventEntries
from recado.services.journeys.execution_turns import ExecutionTurns, Turn
from recado.storage.journeys.executions import HeardSignals, WaitingWork

log = structlog.get_logger()

T = TypeVar("T")

EVERY: Final = 0.5  # seconds: a signal moves its execution within one, a timer runs within two of its time
AGAIN_AFTER: Final = 1.0  # seconds: a part that failed
NO_TURN: Final = Turn(0)
UNHEARD: Final = HeardSignals(0)


class ExecutionPoller:
    """A service (`start`, `stop`); `hint` says that something is due."""

    def __init__(
        self, taking: ExecutionTurns, events: EventEntries, arrivals: JourneyArrivals, *, clock: Clock
    ) -> None:
        self._taking = taking
        self._events = events
        self._arrivals = arrivals
        self._stopping = False
        self._clock = clock
        self._asked: set[str] = set()  # parts of this look
        self._failed: dict[str, tuple[Exception, float]] = {}  # of those; and when, in monotonic seconds
        self._worker = Periodic("executions", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        self._stopping = False
        await self._worker.start()

    async def stop(self) -> None:
        """Ends after the turn under way; what is due stays due."""
        self._stopping = True
        await self._worker.stop()

    def hint(self) -> None:
        """An execution is due that was not."""
        self._worker.hint()

    async def work(self) -> None:
        """Every turn that there is work for; organizations take theirs one after the other.

        What was heard of, what goes on after a pause, who is brought in and what is due alternate, so that no crowd of
        one keeps the others waiting. Nor does one that fails: it is left for a second, as a look may last for minutes.
        After a full turn two of its kind are taken at once: one decides while the server has the other's rows.
        """
        self._failed.clear()
        self._asked.clear()
        signals, events, arrived, turn = HeardSignals(0), NO_TURN, NO_TURN, NO_TURN
        taking, busy = self._taking, True
        while busy and not self._stopping and any(waiting := await taking.waiting()):
            # Of organizations that this round may come to.
            rest = signals.after or events.after or arrived.after or turn.after
            # Signals while no turn is under way: what it has read may be older, and what it will wait for nobody knows.
            signals = await self._safely("signals", waiting.signals, partial(taking.hear, signals.after), UNHEARD)
            roused = await self._safely("pauses", waiting.pauses, taking.rouse, 0)
            events = await self._safely("events", waiting.events, partial(self._events.take, events.after), NO_TURN)
            arrived, turn = await self._take(waiting, arrived.after, turn.after)
            busy = bool(signals.count or roused or events.count or arrived.count or turn.count or rest)
            await turns.next()
        if self._failed and self._failed.keys() == self._asked:
            raise next(iter(self._failed.values()))[0]  # the database is away, say

    async def _take(self, waiting: WaitingWork, arrived_after: str, turn_after: str) -> tuple[Turn, Turn]:
        """A turn of those who arrive and one of what is due; beside them a further one of each that had a full one."""

        async def arrive(wanted: object) -> Turn:
            take = partial(self._arrivals.take, arrived_after)
            return await self._safely("arrivals", waiting.arrivals and bool(wanted), take, NO_TURN)

        async def execute(wanted: object) -> Turn:
            take = partial(self._taking.take, turn_after)
            return await self._safely("executions", waiting.executions and bool(wanted), take, NO_TURN)

        async def further() -> tuple[Turn, Turn]:
            executed = await execute(turn_after)
            return await arrive(arrived_after), executed

        async def first() -> tuple[Turn, Turn]:
            return await arrive(True), await execute(True)

        (arrived, executed), (also_arrived, also_executed) = await asyncio.gather(first(), further())
        return (
            _both(arrived, also_arrived) if arrived_after else arrived,
            _both(executed, also_executed) if turn_after else executed,
        )

    async def _safely(self, part: str, wanted: bool, work: Callable[[], Awaitable[T]], nothing: T) -> T:
        """What came of a part of the work; nothing where it is not wanted, fails, or has failed a moment ago."""
        _, failed_at = self._failed.get(part, (None, float("-inf")))
        if not wanted or self._clock.monotonic() - failed_at < AGAIN_AFTER:
            return nothing
        self._asked.add(part)
        try:
            found = await work()
        except Exception as error:  # noqa: BLE001 - the other parts do not wait for it
            self._failed[part] = error, self._clock.monotonic()
            log.warning("executions_part_failed", part=part, error=type(error).__name__)
            return nothing
        self._failed.pop(part, None)
        return found


def _both(one: Turn, other: Turn) -> Turn:
    """What two turns at once did: where either came to the end, the next one begins with the first organization."""
    return Turn(one.count + other.count, min(one.after, other.after))
