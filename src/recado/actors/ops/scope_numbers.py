"""The numbers of a scope as they were looked at last: a look costs what moves, and not what rests (C34.1).

Of ten thousand numbers most do nothing for minutes. Each knows until when what is shown of it stays the same, and a few
figures tell whether anything happened to it meanwhile. What is stored of numbers is read again where it was changed.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from operator import attrgetter
from typing import Any, Final

from recado.actors.ops.number_state import NO_QUEUE, Counts, NumberReader, NumberState, key_of, steady_until
from recado.domain.core.clock import Clock
from recado.domain.dispatch.pacing import Pacer
from recado.engine.actor_cell import ActorCell
from recado.engine.child import State
from recado.engine.turns import in_pieces, turns
from recado.storage.core.statements.rows import Executor
from recado.storage.ops import ops
from recado.storage.ops.ops import SenderId, SenderQueue
from recado.storage.ops.scope import Scope

AT_ONCE: Final = 250  # numbers in a turn of the event loop
PASSED_AT_ONCE: Final = 2_500  # of which is only found whether they rest
DAY: Final = timedelta(days=1)
REST: Final = 60.0
"""Seconds, at most: then a number at rest is looked at again, for what leaves its day, and what is stored of that."""
COMMITS_WITHIN: Final = timedelta(seconds=60)
"""Of the moment with which a change is stamped."""
ALL_AGAIN: Final = 300.0  # seconds, after which all rows are read, whatever was changed by hand
NO_PACER: Final = Pacer(1.0)
_PLACE: Final = attrgetter("place")

Sums = tuple[int, int, int, int, int, int]
"""Numbers; messages that left in the last second and the last minute; due, scheduled and in flight."""
NO_SUMS: Final[Sums] = (0, 0, 0, 0, 0, 0)


class _Known:
    """A number, its state at the last look, and what it was made of."""

    __slots__ = (
        "anchor", "cell", "cell_state", "id", "key", "pacer", "place", "restarts", "rests_until", "row", "state",
        "usage", "usage_until",
    )  # fmt: skip

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = row
        self.key = key_of(row)
        self.id = self.key.sender_id
        self.state: NumberState | None = None
        self.place = (1, 0, self.id)  # of none that was looked at
        self.rests_until = 0.0
        self.pacer = NO_PACER
        self.anchor = NO_PACER.anchor
        self.cell: ActorCell | None = None
        self.cell_state = State.STOPPED
        self.restarts = 0
        self.usage = (0, 0)
        self.usage_until = 0.0

    @property
    def rest(self) -> float:
        """How long it rests at most, in seconds: each for another time, so that they do not all end at once."""
        return REST * (0.5 + (hash(self.id) & 1023) / 2048)


@dataclass(frozen=True, slots=True)
class ScopeLook:
    """Numbers of a scope, the most troubled first, then those with the longest queue; and the sums of all (C34.1)."""

    states: Sequence[NumberState]
    sums: Sums


class ScopeNumbers:
    """Looks at the numbers of one scope, again and again."""

    def __init__(self, scope: Scope, executor: Executor, *, clock: Clock, live: NumberReader) -> None:
        self._scope = scope
        self._executor = executor
        self._clock = clock
        self._live = live
        self._turn = asyncio.Lock()
        self._begin()

    def _begin(self) -> None:
        """Nothing is known."""
        self._known: dict[SenderId, _Known] = {}
        self._order: list[_Known] = []
        self._sums: list[int] = list(NO_SUMS)
        self._queues: Mapping[SenderId, SenderQueue] = {}
        self._suspended: frozenset[str] = frozenset()
        self._counts: Counts = (0, 0)
        self._read_at: datetime | None = None  # None: nothing is known
        self._all_again_at = 0.0

    def __len__(self) -> int:
        return len(self._known)

    async def look(self, queues: Mapping[SenderId, SenderQueue], most: int | None = None) -> ScopeLook:
        """All numbers as they are now, or the first so many. `queues`: what waits of each that has something."""
        async with self._turn:
            try:
                moved = await self._read()
                moved.update(dict.fromkeys(self._touched(queues)))
                moved.update(await self._stirring())
                await self._look_at(list(moved))
            except BaseException:
                self._begin()  # nobody remembers what was found to have moved
                raise
            shown = self._order[:most]
            return ScopeLook([each.state for each in shown if each.state is not None], self._summed())

    # What is stored ---------------------------------------------------------------------------------------------------

    async def _read(self) -> dict[_Known, None]:
        """Read what was changed; those that are another than before."""
        now, since = self._clock.now(), self._read_at
        if since is None:
            self._all_again_at = 0.0
        changes = await ops.changes(self._executor, self._scope, (since or now) - COMMITS_WITHIN)
        moved: dict[_Known, None] = {}
        if since is None or changes.changed is None or self._clock.monotonic() >= self._all_again_at:
            moved = await self._read_all()
        elif changes.changed:
            rows = await ops.numbers_of(self._executor, changes.changed)
            there = {(row["organization_id"], row["id"]) for row in rows}
            self._forget([key for key in changes.changed if key not in there])
            moved = self._take(rows, known_to_move=True)
            if len(self._known) != changes.numbers:
                moved |= await self._read_all()
        elif len(self._known) != changes.numbers:
            moved = await self._read_all()
        self._read_at = now
        turned, self._suspended = self._suspended ^ changes.suspended, changes.suspended
        if turned:
            moved.update((each, None) for each in self._order if each.key.organization_id in turned)
        return moved

    async def _read_all(self) -> dict[_Known, None]:
        moved: dict[_Known, None] = {}
        gone = dict.fromkeys(self._known)
        after: SenderId = ("", "")
        while True:
            rows = await ops.numbers(self._executor, self._scope, after)
            async for some in in_pieces(rows, AT_ONCE):
                moved |= self._take(some)
                for row in some:
                    gone.pop((row["organization_id"], row["id"]), None)
            if len(rows) < ops.NUMBERS_AT_ONCE:
                break
            after = (rows[-1]["organization_id"], rows[-1]["id"])
        self._forget(gone)
        self._all_again_at = self._clock.monotonic() + ALL_AGAIN
        return moved

    def _take(self, rows: Iterable[Mapping[str, Any]], *, known_to_move: bool = False) -> dict[_Known, None]:
        """`known_to_move`: also where the row is as it was, because the actor may have heard of it later."""
        moved: dict[_Known, None] = {}
        for row in rows:
            key = (row["organization_id"], row["id"])
            known = self._known.get(key)
            if known is None:
                known = self._known[key] = _Known(row)
                self._order.append(known)
                moved[known] = None
            elif known_to_move or known.row != row:
                known.row = row
                moved[known] = None
        return moved

    def _forget(self, gone: Iterable[SenderId]) -> None:
        left = {known for key in gone if (known := self._known.pop(key, None)) is not None}
        if left:
            self._order = [each for each in self._order if each not in left]
            for known in left:
                if known.state is not None:
                    self._add(known.state, -1)

    # What moves -------------------------------------------------------------------------------------------------------

    def _touched(self, queues: Mapping[SenderId, SenderQueue]) -> list[_Known]:
        """Those of which something waits since then, that came into memory, or of which a message failed."""
        former, self._queues = self._queues, queues
        since, self._counts = self._counts, self._live.counts
        touched = self._live.touched(since)
        if touched is None:
            return list(self._order)
        if former is not queues:
            touched += queues
        return [known for key in touched if (known := self._known.get(key)) is not None]

    async def _stirring(self) -> dict[_Known, None]:
        """Those that rest no more: their time is over, something left, or their actor failed or is gone."""
        moved: dict[_Known, None] = {}
        async for some in in_pieces(self._order, PASSED_AT_ONCE):
            monotonic = self._clock.monotonic()
            for each in some:
                if each.rests_until <= monotonic or (
                    (cell := each.cell) is not None
                    and (
                        each.pacer.anchor != each.anchor
                        or cell.state is not each.cell_state
                        or cell.restarts != each.restarts
                    )
                ):
                    moved[each] = None
        return moved

    # Looks ------------------------------------------------------------------------------------------------------------

    async def _look_at(self, moved: Sequence[_Known]) -> None:
        moves_place = False
        for start in range(0, len(moved), ops.NUMBERS_AT_ONCE):
            some = moved[start : start + ops.NUMBERS_AT_ONCE]
            await self._read_usage(some)
            async for few in in_pieces(some, AT_ONCE):
                now, monotonic = self._clock.now(), self._clock.monotonic()
                for known in few:
                    moves_place |= self._look_at_one(known, now, monotonic)
        if moves_place:
            await turns.next()
            self._order.sort(key=_PLACE)

    async def _read_usage(self, some: Sequence[_Known]) -> None:
        """What is stored of those whose day or whose actor is not in memory: at most a minute old."""
        monotonic = self._clock.monotonic()
        wanted: dict[str, _Known] = {}
        for each in some:
            if self._live.knows_usage(each.key):
                each.usage_until = 0.0  # it is read when they leave memory
            elif each.usage_until <= monotonic:
                wanted[each.id] = each
        if not wanted:
            return
        senders = [(each.key.organization_id, each.id) for each in wanted.values()]
        read = await ops.usage(self._executor, senders, self._clock.now() - DAY)
        for number_id, used in read.items():
            known = wanted[number_id]
            known.usage, known.usage_until = used, monotonic + known.rest

    def _look_at_one(self, known: _Known, now: datetime, monotonic: float) -> bool:
        """Whether its place among all is another now."""
        key, row = known.key, known.row
        queue = self._queues.get((key.organization_id, known.id))
        suspended = key.organization_id in self._suspended
        state = self._live.state(row, queue, known.usage, now, monotonic, suspended=suspended)
        if known.state is not None:
            self._add(known.state, -1)
        self._add(state, 1)
        known.state = state
        gateway = self._live.gateway(known.id)
        known.pacer = NO_PACER if gateway is None else gateway.pacer
        known.anchor = known.pacer.anchor
        known.cell = cell = self._live.cell(key)
        known.cell_state, known.restarts = (State.STOPPED, 0) if cell is None else (cell.state, cell.restarts)
        known.rests_until = min(
            known.usage_until or inf, monotonic + known.rest, steady_until(state, gateway, now, monotonic)
        )
        place = (-state.trouble, -state.due, known.id)
        if place == known.place:
            return False
        known.place = place
        return True

    def _add(self, state: NumberState, times: int) -> None:
        sums = self._sums
        sums[0] += times
        sums[1] += times * state.sent_last_second
        sums[2] += times * state.sent_last_minute
        sums[5] += times * state.in_flight
        if state.queue is not NO_QUEUE:
            sums[3] += times * state.due
            sums[4] += times * state.queue.scheduled

    def _summed(self) -> Sums:
        numbers, second, minute, due, scheduled, in_flight = self._sums
        return numbers, second, minute, due, scheduled, in_flight
