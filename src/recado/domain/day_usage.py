"""How much of its rolling day a number has used (C14.5, per day): counters of 1,440 minutes, summed as they move."""

from array import array
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

MINUTES = 1440
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class DayUsage:
    """Departures of the last 24 hours, by minute. A minute counts until all of it is a day old: never too few."""

    __slots__ = ("_counts", "_head", "_used")

    def __init__(self, now: datetime, stored: Iterable[tuple[datetime, int]] = ()) -> None:
        self._counts: array[int] | None = None  # allocated at the first departure: idle numbers stay small
        self._head = _minute(now)
        self._used = 0
        for minute, sent in stored:
            self._add(_minute(minute), sent)

    def used(self, now: datetime) -> int:
        """Departures that count now."""
        self._move(_minute(now))
        return self._used

    def add(self, at: datetime) -> None:
        """Count one departure."""
        minute = _minute(at)
        self._move(minute)
        self._add(minute, 1)

    def take_back(self, at: datetime) -> None:
        """The departure at this moment was none: the provider was never given the message."""
        minute = _minute(at)
        if self._counts is not None and minute > self._head - MINUTES - 1 and self._counts[minute % (MINUTES + 1)]:
            self._counts[minute % (MINUTES + 1)] -= 1
            self._used -= 1

    def frees_at(self, now: datetime, count: int) -> datetime:
        """When at least `count` of those used will have left the day."""
        self._move(_minute(now))
        if self._counts is not None:
            left = 0
            for minute in range(self._head - MINUTES, self._head + 1):
                left += self._counts[minute % (MINUTES + 1)]
                if left >= count:
                    return _EPOCH + _MINUTE * (minute + MINUTES + 1)
        return now

    def _move(self, minute: int) -> None:
        if minute <= self._head:
            return
        if self._counts is not None:
            for passed in range(self._head + 1, min(minute, self._head + MINUTES + 1) + 1):
                slot = passed % (MINUTES + 1)
                self._used -= self._counts[slot]
                self._counts[slot] = 0
        self._head = minute

    def _add(self, minute: int, count: int) -> None:
        if minute < self._head - MINUTES or minute > self._head:
            return
        if self._counts is None:
            self._counts = array("L", bytes(array("L").itemsize * (MINUTES + 1)))
        self._counts[minute % (MINUTES + 1)] += count
        self._used += count


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
