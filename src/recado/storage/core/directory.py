"""A read-through cache of records that the hot path asks for thousands of times a second.

A record is served for at most its time to live, because another process may change it; writers in this process call
`forget` after their commit, so that here a change holds at once. What does not exist is not remembered, unless said.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from recado.domain.core.clock import Clock

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Directory(Generic[K, V]):
    """Records by key. `ttl` in seconds. The least recently used go beyond `capacity` records, and when they expired.

    `weight`: of a record, where `most` is what all of them may weigh together; the last one stays, whatever it weighs.
    `gone`: seconds for which it is remembered that there is no such record; of as many keys as records.
    `owner`: of a key: one that has more than one part in `parts` of either loses its own records first, and nobody
    else's.
    """

    def __init__(
        self,
        load: Callable[[K], Awaitable[V | None]],
        *,
        clock: Clock,
        ttl: float = 5.0,
        capacity: int = 10_000,
        most: int = 0,
        weight: Callable[[V], int] | None = None,
        owner: Callable[[K], Hashable] | None = None,
        parts: int = 1,
        gone: float = 0.0,
    ) -> None:
        self._load = load
        self._monotonic = clock.monotonic
        self._ttl = ttl
        self._capacity = capacity
        self._most = most
        self._weight = weight
        self._owner = owner
        self._parts = parts
        self._gone_for = gone
        self._gone: OrderedDict[K, float] = OrderedDict()  # until when, in that order
        self._records: OrderedDict[K, tuple[float, V]] = OrderedDict()
        self._loading: dict[K, asyncio.Task[V | None]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def peek(self, key: K) -> V | None:
        """The record when a fresh one is at hand, without waiting; None says nothing about its existence."""
        found = self._records.get(key)
        if found is None:
            return None
        if found[0] <= self._monotonic():
            del self._records[key]
            return None
        self._records.move_to_end(key)
        return found[1]

    async def get(self, key: K) -> V | None:
        """The record, from the database when need be; None when there is none. Concurrent misses share one query."""
        found = self.peek(key)
        if found is not None:
            return found
        if self._gone.get(key, float("-inf")) > self._monotonic():
            return None
        loading = self._loading.get(key)
        if loading is None:
            loading = self._loading[key] = asyncio.ensure_future(self._read(key))
            loading.add_done_callback(failure_was_seen)
        return await asyncio.shield(loading)  # a caller that goes away must not end the query of the others

    def forget(self, key: K) -> None:
        """Serve this record no more. A query under way may still answer its callers, but is not remembered."""
        self._records.pop(key, None)
        self._gone.pop(key, None)
        self._loading.pop(key, None)

    def refresh(self, key: K, record: V) -> None:
        """Serve this newer record in the place of the one at hand, for as long as that one would have been served."""
        found = self._records.get(key)
        if found is not None:
            self._records[key] = (found[0], record)

    def forget_where(self, condition: Callable[[V], bool]) -> None:
        """Serve none of the records that meet the condition any more."""
        for key in [key for key, (_, record) in self._records.items() if condition(record)]:
            del self._records[key]
        self._gone.clear()
        self._loading.clear()  # what they will find is not known yet

    def clear(self) -> None:
        self._records.clear()
        self._gone.clear()
        self._loading.clear()

    def _keep_share(self, owner: Callable[[K], Hashable], key: K) -> None:
        """Drop what the owner of a new record has above its part, oldest use first; the new one stands last."""
        whose = owner(key)
        own = [each for each in self._records if owner(each) == whose]
        weights = [0 if self._weight is None else self._weight(self._records[each][1]) for each in own]
        count, total = len(own), sum(weights)
        for each, weight in zip(own[:-1], weights, strict=False):
            if count <= self._capacity // self._parts and total <= self._most // self._parts:
                return
            del self._records[each]
            count, total = count - 1, total - weight

    def _make_room(self) -> None:
        """Drop what nobody asked for lately: it stands first, and expired when its last user was here too long ago."""
        records, now = self._records, self._monotonic()
        while records and (len(records) > self._capacity or next(iter(records.values()))[0] <= now):
            records.popitem(last=False)
        if self._weight is None:
            return
        total = sum(self._weight(record) for _, record in records.values())
        while total > self._most and len(records) > 1:
            _, (_, dropped) = records.popitem(last=False)
            total -= self._weight(dropped)

    def _remember_gone(self, key: K, now: float) -> None:
        gone = self._gone
        gone[key] = now + self._gone_for
        gone.move_to_end(key)
        while len(gone) > self._capacity or next(iter(gone.values())) <= now:
            gone.popitem(last=False)

    async def _read(self, key: K) -> V | None:
        mine = asyncio.current_task()
        started = self._monotonic()
        try:
            record = await self._load(key)
            if record is not None and self._loading.get(key) is mine:
                self._records[key] = (started + self._ttl, record)
                self._records.move_to_end(key)
                if self._owner is not None:
                    self._keep_share(self._owner, key)
                self._make_room()
            elif record is None and self._gone_for and self._loading.get(key) is mine:
                self._remember_gone(key, started)
            return record
        finally:
            if self._loading.get(key) is mine:
                del self._loading[key]


def failure_was_seen(task: "asyncio.Task[object]") -> None:
    """A query whose every caller has gone may fail without a warning."""
    if not task.cancelled():
        task.exception()
