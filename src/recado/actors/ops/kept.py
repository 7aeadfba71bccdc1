"""Answers that cost the database something, kept for a while: for those who ask again, and who ask meanwhile."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

from recado.domain.core.clock import Clock
from recado.storage.core.directory import failure_was_seen

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

AT_LEAST: Final = 1.0  # seconds
TIMES_ITS_COST: Final = 10.0
MOST: Final = 64  # answers


class Kept(Generic[K, V]):
    """An answer is good for a second, or for `times` as long as it took: so looking takes a tenth of a connection."""

    def __init__(self, read: Callable[[K], Awaitable[V]], *, clock: Clock, times: float = TIMES_ITS_COST) -> None:
        self._times = times
        self._read = read
        self._clock = clock
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._reading: dict[K, asyncio.Task[V]] = {}

    async def get(self, key: K) -> V:
        """The answer; who asks while it is being read gets the same one. Raises what the reading raises."""
        found = self._answers.get(key)
        if found is not None and found[0] > self._clock.monotonic():
            return found[1]
        reading = self._reading.get(key)
        if reading is None:
            reading = self._reading[key] = asyncio.ensure_future(self._read_again(key))
            reading.add_done_callback(failure_was_seen)
        return await asyncio.shield(reading)  # who leaves does not end it for the others

    def forget(self, key: K) -> None:
        """Read it anew for whoever asks next."""
        self._answers.pop(key, None)
        self._reading.pop(key, None)

    async def _read_again(self, key: K) -> V:
        mine = asyncio.current_task()
        began = self._clock.monotonic()
        try:
            answer = await self._read(key)
            if self._reading.get(key) is mine:
                ended = self._clock.monotonic()
                self._answers[key] = (ended + max(AT_LEAST, self._times * (ended - began)), answer)
                self._answers.move_to_end(key)
                self._make_room(ended)
            return answer
        finally:
            if self._reading.get(key) is mine:
                del self._reading[key]

    def _make_room(self, now: float) -> None:
        for key in [key for key, (until, _) in self._answers.items() if until <= now]:
            del self._answers[key]
        while len(self._answers) > MOST:
            self._answers.popitem(last=False)
