"""What codes stand for, looked up for many callers at once, and kept for a moment: also that there is no such code.

Whoever guesses codes asks one statement at a time, on one connection: those who send have all the others. Nor does one
organization, or who guesses, take the place of what is kept of another.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from itertools import islice
from typing import Final, Generic, TypeVar

from recado.domain.core.clock import Clock
from recado.storage.core.connections.batch import Batcher

V = TypeVar("V")

KEPT: Final = 30.0  # seconds
CAPACITY: Final = 10_000  # codes, of all organizations
AT_ONCE: Final = 64  # codes that go together where another one needs room
MOST_WAITING: Final = 5_000  # look-ups
LINGER: Final = 0.002  # seconds that a statement waits for more codes while many are asked for
ENOUGH: Final = 56  # codes that wait for no more: those who ask go on only when they are answered
ASKED_FOR: Final = 5.0  # seconds that a look-up waits for a database that is away


class CodeLookup(Generic[V]):
    """A service (`start`, `stop`). `read`: by code, of those that exist. `owner`: whose one is."""

    def __init__(
        self,
        name: str,
        read: Callable[[Sequence[str]], Awaitable[Mapping[str, V]]],
        *,
        owner: Callable[[V], Hashable],
        clock: Clock,
    ) -> None:
        self._read = read
        self._owner = owner
        self._monotonic = clock.monotonic
        self._known: dict[str, tuple[float, V | None]] = {}  # until when, and what
        # Of each owner, the oldest first; None has those that do not exist.
        self._codes: dict[Hashable, OrderedDict[str, None]] = {}
        self._look_ups: Batcher[str, V | None] = Batcher(
            name, self._look_up, clock=clock, concurrency=1, max_queue=MOST_WAITING, deadline=ASKED_FOR, linger=LINGER,
            enough=ENOUGH,
        )  # fmt: skip

    async def start(self) -> None:
        await self._look_ups.start()

    async def stop(self) -> None:
        await self._look_ups.stop()

    async def get(self, code: str) -> V | None:
        """What the code stands for; None: nothing. Raises `Unavailable` under overload."""
        found = self.find(code)
        return await found if isinstance(found, asyncio.Future) else found

    def find(self, code: str) -> "V | asyncio.Future[V | None] | None":
        """As `get`, at once where it is known; else the look-up, which is under way."""
        known = self._known.get(code)
        if known is not None and known[0] > self._monotonic():
            return known[1]
        return self._look_ups.put(code)

    def forget(self, code: str) -> None:
        """It stands for something else now, or for nothing."""
        known = self._known.pop(code, None)
        if known is not None:
            owner = self._owner_of(known[1])
            of_owner = self._codes[owner]
            del of_owner[code]
            if not of_owner:
                del self._codes[owner]

    async def _look_up(self, codes: Sequence[str]) -> list[V | None]:
        until = self._monotonic() + KEPT  # of before it was read: a change meanwhile is seen no later than any other
        asked = list(dict.fromkeys(codes))
        read = await self._read(asked)
        for code in asked:
            self.forget(code)  # it may be another's now
            value = read.get(code)
            owner = self._owner_of(value)
            self._known[code] = (until, value)
            self._codes.setdefault(owner, OrderedDict())[code] = None
            if len(self._known) > CAPACITY:
                self._make_room(owner)
        return [read.get(code) for code in codes]

    def _owner_of(self, value: V | None) -> Hashable:
        return None if value is None else self._owner(value)

    def _make_room(self, owner: Hashable) -> None:
        """Drop the oldest of an owner who has a new one, or some of the owner with most where that one has too few.

        Where there are more owners than there is room, those go that came first.
        """
        share = max(1, CAPACITY // len(self._codes))
        if len(self._codes[owner]) > share:
            oldest = list(islice(self._codes[owner], 1))
        else:
            most = max(self._codes.values(), key=len)
            if len(most) > share:
                oldest = list(islice(most, min(AT_ONCE, len(most) - share)))
            else:
                first = islice(self._codes.values(), min(AT_ONCE, len(self._codes) - 1))
                oldest = [next(iter(of_owner)) for of_owner in first]
        for code in oldest:
            self.forget(code)
