"""Answers that cost the database something, kept for a while: for those who ask again, and who ask meanwhile."""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from itertools import islice
from math import inf
from typing import Final, Generic, TypeVar

from recado.domain.core.clock import Clock
from recado.storage.core.directory import failure_was_seen

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

AT_LEAST: Final = 1.0  # seconds
TIMES_ITS_COST: Final = 10.0
MOST: Final = 64  # answers
MOST_SCOPES: Final = 256  # of what the stream tells: more than it has viewers
TOGETHER: Final = 50  # keys that are read at once
REGULAR: Final = 3.0  # seconds: whose answer was asked for since then is asked for again
SLOW: Final = 0.3  # seconds of one reading, whose answers are kept for three seconds
APART_FOR: Final = 30.0
"""Seconds in which each key is read by itself, after several together were slow or failed: one of them costs much, and
the others shall not have older answers for that. The one that was slow by itself then stays apart."""


class Kept(Generic[K, V]):
    """An answer is good for a second, or for `times` as long as it took: so looking takes a tenth of a connection."""

    def __init__(
        self, read: Callable[[K], Awaitable[V]], *, clock: Clock, times: float = TIMES_ITS_COST, most: int = MOST
    ) -> None:
        """`most`: answers that are kept."""
        self._times = times
        self._most = most
        self._read = read
        self._clock = clock
        self._answers: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._reading: dict[K, asyncio.Task[Mapping[K, V]]] = {}

    async def get(self, key: K) -> V:
        """The answer; who asks while it is being read gets the same one. Raises what the reading raises."""
        while True:
            found = self._answers.get(key)
            if found is not None and found[0] > self._clock.monotonic():
                return found[1]
            reading = self._reading.get(key)
            if reading is None:
                keys = [key, *self._beside(key)]
                reading = asyncio.ensure_future(self._read_again(keys))
                self._reading.update(dict.fromkeys(keys, reading))
                reading.add_done_callback(failure_was_seen)
            answers = await asyncio.shield(reading)  # who leaves does not end it for the others
            if key in answers:
                return answers[key]

    def forget(self, key: K) -> None:
        """Read it anew for whoever asks next."""
        self._answers.pop(key, None)
        self._reading.pop(key, None)

    def _beside(self, key: K) -> list[K]:
        """Others that are read with this one."""
        return []

    async def _answered(self, keys: Sequence[K]) -> Mapping[K, V]:
        """What is read for these. Whoever gets no answer asks again."""
        return {keys[0]: await self._read(keys[0])}

    def _good_for(self, keys: Sequence[K], took: float) -> float:
        """Seconds for which answers are good that took so many."""
        return max(AT_LEAST, self._times * took)

    async def _read_again(self, keys: Sequence[K]) -> Mapping[K, V]:
        mine = asyncio.current_task()
        began = self._clock.monotonic()
        try:
            answers = await self._answered(keys)
            ended = self._clock.monotonic()
            until = ended + self._good_for(keys, ended - began)
            for key, answer in answers.items():
                if self._reading.get(key) is mine:
                    self._answers[key] = (until, answer)
                    self._answers.move_to_end(key)
            self._make_room(ended)
            return answers
        finally:
            for key in keys:
                if self._reading.get(key) is mine:
                    del self._reading[key]

    def _make_room(self, now: float) -> None:
        for key in [key for key, (until, _) in self._answers.items() if until <= now]:
            del self._answers[key]
        while len(self._answers) > self._most:
            self._answers.popitem(last=False)


class KeptTogether(Kept[K, V]):
    """The same where many keys are asked for again and again: who reads one reads the others that are due, too."""

    def __init__(
        self,
        read: Callable[[Sequence[K]], Awaitable[Mapping[K, V]]],
        *,
        clock: Clock,
        times: float = TIMES_ITS_COST,
        most: int = MOST,
        apart: Callable[[K], bool] = lambda _: False,
    ) -> None:
        """`read` answers for all keys that it is given; `apart`: whether a key is read by itself."""

        async def read_one(key: K) -> V:
            return (await read([key]))[key]

        super().__init__(read_one, clock=clock, times=times, most=most)
        self._read_all = read
        self._apart = apart
        self._asked: OrderedDict[K, float] = OrderedDict()  # when each was asked for last, in that order
        self._apart_until = -inf
        self._slow: set[K] = set()  # of those: by themselves

    async def get(self, key: K) -> V:
        """The answer; who asks while it is being read gets the same one. Raises what the reading raises."""
        now = self._clock.monotonic()
        self._asked[key] = now
        self._asked.move_to_end(key)
        while self._asked[first := next(iter(self._asked))] < now - REGULAR:
            del self._asked[first]
            self._slow.discard(first)
        return await super().get(key)

    def _beside(self, key: K) -> list[K]:
        now = self._clock.monotonic()
        if now < self._apart_until or self._stands_apart(key):
            return []
        return list(islice((other for other in self._asked if other != key and self._is_due(other, now)), TOGETHER - 1))

    def _is_due(self, key: K, now: float) -> bool:
        found = self._answers.get(key)
        return key not in self._reading and not self._stands_apart(key) and (found is None or found[0] <= now)

    def _stands_apart(self, key: K) -> bool:
        return key in self._slow or self._apart(key)

    def _good_for(self, keys: Sequence[K], took: float) -> float:
        # After several that were slow together each is read by itself, and what it costs is its own.
        return AT_LEAST if len(keys) > 1 and took > SLOW else super()._good_for(keys, took)

    async def _answered(self, keys: Sequence[K]) -> Mapping[K, V]:
        began = self._clock.monotonic()
        try:
            answers = await self._read_all(keys)
        except Exception:
            if len(keys) == 1:
                raise
            self._apart_until = self._clock.monotonic() + APART_FOR
            return {}  # the fault of one of them, maybe: each finds out by itself
        ended = self._clock.monotonic()
        slow = ended - began > SLOW
        if len(keys) > 1 and slow:
            self._apart_until = ended + APART_FOR
        elif slow:
            self._slow.add(keys[0])
        else:
            self._slow.discard(keys[0])
        return answers
