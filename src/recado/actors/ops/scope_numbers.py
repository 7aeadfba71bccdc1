"""The numbers of a scope as they were looked at last: a look costs what moves, and not what rests (C34.1).

Of ten thousand numbers most do nothing for minutes. Each knows until when what is shown of it stays the same, and
actors note that they stir. What is stored of numbers is read again where it was changed.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from math import inf
from operator import attrgetter
from typing import Any, Final

from recado.actors.ops.number_state import NO_QUEUE, Counts, NumberReader, NumberState, key_of, steady_until
from recado.domain.core.clock import Clock
from recado.engine.turns import in_pieces, turns
from recado.storage.core.statements.rows import Executor
from recado.storage.ops import ops
from recado.storage.ops.ops import ChangedNumbers, SenderId, SenderQueue
from recado.storage.ops.scope import Scope

AT_ONCE: Final = 250  # numbers in a turn of the event loop
PASSED_AT_ONCE: Final = 2_500  # of which is only found that they rest no more
DAY: Final = timedelta(days=1)
REST: Final = 60.0
"""Seconds, at most: then a number in memory is looked at again, for what leaves its day, and what is stored of the days
of the others is read again.
"""
LONG_REST: Final = 300.0
"""Seconds, at most, that one without an actor rests while that is what it was."""
COMMITS_WITHIN: Final = timedelta(seconds=60)
"""Of the moment with which a change is stamped."""
LATELY: Final = timedelta(seconds=4)
ALL_AGAIN: Final = 300.0  # seconds, after which all rows are read, whatever was changed by hand
_PLACE: Final = attrgetter("place")

Sums = tuple[int, int, int, int, int, int]
"""Numbers; messages that left in the last second and the last minute; due, scheduled and in flight."""
NO_SUMS: Final[Sums] = (0, 0, 0, 0, 0, 0)


class _Known:
    """A number, its state at the last look, and what it was made of."""

    __slots__ = (
        "id", "key", "listed_at", "place", "row", "state", "steady_until", "usage", "usage_until",
    )  # fmt: skip

    def __init__(self, row: Mapping[str, Any]) -> None:
        self.row = row
        self.key = key_of(row)
        self.id = self.key.sender_id
        self.state: NumberState | None = None
        self.place = (1, 0, self.id)  # of none that was looked at
        self.steady_until = 0.0  # but for its usage, which is read again
        self.listed_at = inf  # when it is looked for in the list of those that rest
        self.usage = (0, 0)
        self.usage_until = 0.0

    @property
    def rests_until(self) -> float:
        return min(self.steady_until, self.usage_until or inf)

    @property
    def part(self) -> float:
        """The part of the longest rest that it takes: each another one, so that they do not all end at once."""
        return 0.5 + (hash(self.id) & 1023) / 2048


@dataclass(frozen=True, slots=True)
class ScopeLook:
    """Numbers of a scope, the most troubled first, then those with the longest queue; and the sums of all (C34.1)."""

    states: Sequence[NumberState]
    sums: Sums


class ScopeNumbers:
    """Looks at the numbers of one scope, again and again."""

    def __init__(
        self,
        scope: Scope,
        executor: Executor,
        *,
        clock: Clock,
        live: NumberReader,
        lately: Callable[[Scope], Awaitable[ChangedNumbers]],
    ) -> None:
        """`lately`: what was changed of a scope that was looked at `LATELY`: others are read with it."""
        self._scope = scope
        self._executor = executor
        self._lately = lately
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
        self._counts: Counts = (0, 0, 0)
        self._restless: dict[_Known, None] = {}  # those that move by the second
        self._resting: list[tuple[float, int, _Known]] = []  # the others, those first that rest least long
        self._numbered = count()
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
        if since is not None and now - since <= LATELY:
            changes = await self._lately(self._scope)
        else:
            found = await ops.changes(self._executor, [self._scope], (since or now) - COMMITS_WITHIN)
            changes = found[self._scope]
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
        """Those of which something waits since then, whose actor did anything, or of which a message failed."""
        former, self._queues = self._queues, queues
        since, self._counts = self._counts, self._live.note_from_now()
        touched = self._live.touched(since)
        if touched is None:
            return list(self._order)
        if former is not queues:
            touched += queues
        return [known for key in touched if (known := self._known.get(key)) is not None]

    async def _stirring(self) -> dict[_Known, None]:
        """Those that move by the second, and those whose rest is over."""
        moved, self._restless = self._restless, {}
        aged: list[_Known] = []
        resting, monotonic, passed = self._resting, self._clock.monotonic(), 0
        while resting and resting[0][0] <= monotonic:
            listed_at, _, known = heappop(resting)
            if listed_at == known.listed_at:
                known.listed_at = inf
                if known.steady_until <= monotonic:
                    moved[known] = None
                elif known.rests_until <= monotonic:
                    aged.append(known)
                else:  # it was looked at meanwhile
                    self._list(known)
            if not (passed := passed + 1) % PASSED_AT_ONCE:
                await turns.next()
        moved.update(dict.fromkeys(await self._other_usage([each for each in aged if self._knows(each)])))
        return {each: None for each in moved if self._knows(each)}

    async def _other_usage(self, aged: Sequence[_Known]) -> list[_Known]:
        """Of those whose usage is to be read again, and nothing else, those where it is another."""
        other = []
        for start in range(0, len(aged), ops.NUMBERS_AT_ONCE):
            some = aged[start : start + ops.NUMBERS_AT_ONCE]
            before = [each.usage for each in some]
            await self._read_usage(some)
            for each, usage in zip(some, before, strict=True):
                if each.usage == usage and each.usage_until:
                    self._list(each)
                else:
                    other.append(each)
        return other

    def _knows(self, known: _Known) -> bool:
        return self._known.get((known.key.organization_id, known.id)) is known

    def _list(self, known: _Known) -> None:
        """Look for it when its rest is over, unless one does so before."""
        if known.rests_until < known.listed_at:
            known.listed_at = known.rests_until
            heappush(self._resting, (known.listed_at, next(self._numbered), known))

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
            known.usage, known.usage_until = used, monotonic + REST * known.part

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
        known.steady_until = self._steady_until(known, state, now, monotonic)
        if known.rests_until <= monotonic:
            self._restless[known] = None
        else:
            self._list(known)
        place = (-state.trouble, -state.due, known.id)
        if place == known.place:
            return False
        known.place = place
        return True

    def _steady_until(self, known: _Known, state: NumberState, now: datetime, monotonic: float) -> float:
        """Until when nothing of it moves by itself, but for what is stored of its usage; `monotonic` where it may."""
        live = self._live
        if not live.rests(known.key):
            return monotonic
        longest = LONG_REST if known.usage_until else REST  # what leaves a day in memory is seen by looking again
        return min(steady_until(state, live.gateway(known.id), now, monotonic), monotonic + longest * known.part)

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
