"""Looks every second for executions that are due, and takes them along in turns until none is left (C9.15, C32).

One that waits has nothing in memory: a million of them cost this no more than a thousand.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import structlog

from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.engine.turns import turns
from recado.services.journeys.arrivals import JourneyArrivals
from recado.services.journeys.event_entries import EventEntries
from recado.services.journeys.execution_turns import ExecutionTurns, Turn
from recado.storage.journeys.executions import HeardSignals

log = structlog.get_logger()

T = TypeVar("T")

EVERY = 1.0  # seconds: timers run within two of their time
PARTS = 5  # of a look
NO_TURN: Final = Turn(0)

Round = tuple[HeardSignals, int, Turn, Turn, Turn]
"""What came of one: of signals, pauses, events, arrivals and executions."""


class ExecutionPoller:
    """A service (`start`, `stop`); `hint` says that something is due."""

    def __init__(
        self, taking: ExecutionTurns, events: EventEntries, arrivals: JourneyArrivals, *, clock: Clock
    ) -> None:
        self._taking = taking
        self._events = events
        self._arrivals = arrivals
        self._stopping = False
        self._failed: dict[str, Exception] = {}  # parts of this look
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
        one keeps the others waiting. Nor does one that fails: it is left until the next look. After a full turn two of
        its kind are taken at once: one decides while the server has the other's rows.
        """
        self._failed.clear()
        signals, events, arrived, turn = HeardSignals(0), Turn(0), Turn(0), Turn(0)
        busy = await self._taking.waiting()
        while busy and not self._stopping:
            # Of organizations that this round may come to.
            rest = signals.after or events.after or arrived.after or turn.after
            lanes = [self._lane(signals, events, arrived, turn)]
            if arrived.after or turn.after:
                lanes.append(self._second_lane(arrived, turn))
            (signals, roused, events, arrived, turn), *others = await asyncio.gather(*lanes)
            for _, _, _, its_arrived, its_turn in others:
                arrived, turn = _both(arrived, its_arrived), _both(turn, its_turn)
            busy = bool(signals.count or roused or events.count or arrived.count or turn.count or rest)
            await turns.next()
        if len(self._failed) == PARTS:
            raise next(iter(self._failed.values()))  # the database is away, say

    async def _lane(self, signals: HeardSignals, events: Turn, arrived: Turn, turn: Turn) -> Round:
        return (
            await self._safely("signals", self._taking.hear(signals.after), HeardSignals(0)),
            await self._safely("pauses", self._taking.rouse(), 0),
            await self._safely("events", self._events.take(events.after), NO_TURN),
            await self._safely("arrivals", self._arrivals.take(arrived.after), NO_TURN),
            await self._safely("executions", self._taking.take(turn.after), NO_TURN),
        )

    async def _second_lane(self, arrived: Turn, turn: Turn) -> Round:
        """Further turns of those that had a full one."""
        further = await self._safely("executions", self._taking.take(turn.after), NO_TURN) if turn.after else NO_TURN
        entering = (
            await self._safely("arrivals", self._arrivals.take(arrived.after), NO_TURN) if arrived.after else NO_TURN
        )
        return HeardSignals(0), 0, NO_TURN, entering, further

    async def _safely(self, part: str, work: Coroutine[Any, Any, T], nothing: T) -> T:
        """What came of a part of the work; nothing where it fails, or has failed in this look."""
        if part in self._failed:
            work.close()
            return nothing
        try:
            return await work
        except Exception as error:  # noqa: BLE001 - the other parts do not wait for it
            self._failed[part] = error
            log.warning("executions_part_failed", part=part, error=type(error).__name__)
            return nothing


def _both(one: Turn, other: Turn) -> Turn:
    """What two turns at once did: where either came to the end, the next one begins with the first organization."""
    return Turn(one.count + other.count, min(one.after, other.after))
