"""What codes stand for, looked up for many callers at once, and kept for a moment: also that there is no such code.

Whoever guesses codes asks one statement at a time, on one connection: those who send have all the others.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, Generic, TypeVar

from recado.domain.core.clock import Clock
from recado.storage.core.batch import Batcher

V = TypeVar("V")

KEPT: Final = 30.0  # seconds
CAPACITY: Final = 10_000  # codes
MOST_WAITING: Final = 5_000  # look-ups
LINGER: Final = 0.002  # seconds that a statement waits for more codes while many are asked for
ENOUGH: Final = 16  # codes that wait for no more: those who ask go on only when they are answered
ASKED_FOR: Final = 5.0  # seconds that a look-up waits for a database that is away


class CodeLookup(Generic[V]):
    """A service (`start`, `stop`). `read`: by code, of those that exist."""

    def __init__(self, name: str, read: Callable[[Sequence[str]], Awaitable[Mapping[str, V]]], *, clock: Clock) -> None:
        self._read = read
        self._monotonic = clock.monotonic
        self._known: OrderedDict[str, tuple[float, V | None]] = OrderedDict()
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
            self._known.move_to_end(code)
            return known[1]
        return self._look_ups.put(code)

    def forget(self, code: str) -> None:
        """It stands for something else now, or for nothing."""
        self._known.pop(code, None)

    async def _look_up(self, codes: Sequence[str]) -> list[V | None]:
        until = self._monotonic() + KEPT  # of before it was read: a change meanwhile is seen no later than any other
        found = await self._read(list(dict.fromkeys(codes)))
        for code in codes:
            self._known[code] = (until, found.get(code))
        while len(self._known) > CAPACITY:
            self._known.popitem(last=False)
        return [found.get(code) for code in codes]
