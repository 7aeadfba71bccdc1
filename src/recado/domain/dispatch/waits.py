"""How long a message waited, and for what: pure sums over the times at which something held it (C34.4)."""

from collections import deque
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final

from recado.domain.messages.message import WaitReason

REMEMBERED: Final = 64
"""Closings of one thing. Of a sender that opens and closes all the time, older ones are told as waits for a turn."""
LEAST: Final = timedelta(seconds=1)
"""Waits for one reason that are shorter in all are not told."""
_MILLISECOND = timedelta(milliseconds=1)
_NONE = timedelta()

Held = tuple[datetime, datetime, WaitReason | None]
"""From when, until when, and for what; None: its call was under way, which is no wait."""


class Closings:
    """When one thing that holds many messages was closed, and for what: a sender, a class of it, a template."""

    __slots__ = ("_past", "_since", "_sums", "reason")

    def __init__(self) -> None:
        self._past: deque[Held] = deque(maxlen=REMEMBERED)
        self._sums: dict[WaitReason, timedelta] | None = None  # of what is past, since somebody asked
        self.reason: WaitReason | None = None
        """For what it is closed now; None: it is open."""
        self._since: datetime | None = None

    def note(self, reason: WaitReason | None, now: datetime, since: datetime | None = None) -> None:
        """It is closed for this, or open. `since`: when it was closed, where that is known to be earlier."""
        if reason is self.reason:
            return
        if self.reason is not None and self._since is not None and self._since < now:
            self._past.append((self._since, now, self.reason))
            self._sums = None
        self.reason = reason
        self._since = None if reason is None else now
        if reason is not None and since is not None and since < now:
            self._since = max(since, self._past[-1][1]) if self._past else since

    def until(self, now: datetime) -> Iterator[Held]:
        """All that is remembered, in order."""
        yield from self._past
        if self.reason is not None and self._since is not None:
            yield (self._since, now, self.reason)

    def sums(self, start: datetime, now: datetime) -> dict[WaitReason, timedelta] | None:
        """All of it by reason; None where some was not from `start` until now. A backlog waited through all of it."""
        first, last = (self._past[0][0], self._past[-1][1]) if self._past else (self._since, None)
        if (first is not None and first < start) or (last is not None and last > now):
            return None
        if self._sums is None:
            self._sums = {}
            for since, until, reason in self._past:
                assert reason is not None  # noqa: S101 - only calls have none
                self._sums[reason] = self._sums.get(reason, _NONE) + (until - since)
        if self.reason is None or self._since is None:
            return self._sums
        return {**self._sums, self.reason: self._sums.get(self.reason, _NONE) + max(_NONE, now - self._since)}


def sum_up_one(start: datetime, end: datetime, closings: Closings | None) -> dict[str, int] | None:
    """As `sum_up` with one layer at most, however often it was closed; None where each closing must be looked at."""
    sums = {} if closings is None else closings.sums(start, end)
    if sums is None:
        return None
    turn = end - start - sum(sums.values(), _NONE) + sums.get(WaitReason.RATE, _NONE)
    return _in_milliseconds({**sums, WaitReason.RATE: turn}.items())


def sum_up(start: datetime, end: datetime, layers: Iterable[Iterable[Held]]) -> dict[str, int]:
    """Milliseconds by reason of what a message waited in [start, end): never more in all than there were.

    What comes first among the `layers` has the time that several of them hold; the times of each are in order. What is
    left is the wait for its turn: the pace, and the messages before it.
    """
    told: dict[WaitReason | None, timedelta] = {}
    free = [(start, end)] if start < end else []
    for layer in layers:
        free = _take(free, layer, told)
    told.pop(None, None)
    told[WaitReason.RATE] = sum((until - since for since, until in free), told.get(WaitReason.RATE, _NONE))
    return _in_milliseconds(told.items())


def _in_milliseconds(told: Iterable[tuple[WaitReason | None, timedelta]]) -> dict[str, int]:
    return {reason.value: took // _MILLISECOND for reason, took in told if reason is not None and took >= LEAST}


def _take(
    free: list[tuple[datetime, datetime]], layer: Iterable[Held], told: dict[WaitReason | None, timedelta]
) -> list[tuple[datetime, datetime]]:
    """Add up what the layer held of the time that is free; answers what is left of that."""
    left = []
    times = iter(layer)
    held = next(times, None)
    for start, end in free:
        at = start
        while held is not None and held[0] < end:
            since, until, reason = held
            if until > at:
                first, last = max(since, at), min(until, end)
                if first > at:
                    left.append((at, first))
                told[reason] = told.get(reason, _NONE) + (last - first)
                at = last
            if until > end:
                break  # it holds some of the next piece too
            held = next(times, None)
        if at < end:
            left.append((at, end))
    return left
