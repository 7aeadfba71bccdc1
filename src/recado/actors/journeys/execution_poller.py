"""Looks every second for executions that are due, and takes them along in turns until none is left (C9.15, C32).

One that waits has nothing in memory: a million of them cost this no more than a thousand.
"""

from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.engine.turns import turns
from recado.services.journeys.arrivals import JourneyArrivals
from recado.services.journeys.entry_turns import EntryTurn
from recado.services.journeys.event_entries import EventEntries
from recado.services.journeys.execution_turns import ExecutionTurns, Turn

EVERY = 1.0  # seconds: timers run within two of their time


class ExecutionPoller:
    """A service (`start`, `stop`); `hint` says that something is due."""

    def __init__(
        self, taking: ExecutionTurns, events: EventEntries, arrivals: JourneyArrivals, *, clock: Clock
    ) -> None:
        self._taking = taking
        self._events = events
        self._arrivals = arrivals
        self._stopping = False
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
        one keeps the others waiting.
        """
        events, arrived, turn = EntryTurn(0), EntryTurn(0), Turn(0)
        busy = await self._taking.waiting()
        while busy and not self._stopping:
            rest = events.after or arrived.after or turn.after  # of organizations that this round may come to
            heard, roused = await self._taking.hear(), await self._taking.rouse()
            events = await self._events.take(events.after)
            arrived = await self._arrivals.take(arrived.after)
            turn = await self._taking.take(turn.after)
            busy = bool(heard or roused or events.count or arrived.count or turn.count or rest)
            await turns.next()
