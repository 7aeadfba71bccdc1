"""How much of its rolling day a number has used (C14.5, per day): counters of its minutes, summed as they move.

Only minutes with departures are kept, eight bytes each: most numbers are idle most of the day, and thousands are in
memory.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

MINUTES = 1440
_MINUTE = timedelta(minutes=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DROPPED_AT_ONCE = 64  # minutes: what has left the day is cleared away in bulk


class DayUsage:
    """Departures of the last 24 hours, by minute. A minute counts until all of it is a day old: never too few."""

    __slots__ = ("_counts", "_first", "_head", "_head_begins", "_head_ends", "_minutes", "_used")

    def __init__(self, now: datetime, stored: Iterable[tuple[datetime, int]] = ()) -> None:
        self._minutes = array("I")  # ascending, since 1970
        self._counts = array("I")
        self._first = 0  # the entries before it have left the day
        self._head = _minute(now)
        # Asked for each message: a comparison of moments costs a fifth of what their minute does.
        self._head_begins, self._head_ends = _span(self._head)
        self._used = 0
        for minute, sent in stored:
            self._add(_minute(minute), sent)

    def used(self, now: datetime) -> int:
        """Departures that count now."""
        if now >= self._head_ends:
            self._move(_minute(now))
        return self._used

    def add(self, at: datetime) -> None:
        """Count one departure."""
        if self._head_begins <= at < self._head_ends:
            self._add(self._head, 1)
            return
        minute = _minute(at)
        self._move(minute)
        self._add(minute, 1)

    def take_back(self, at: datetime) -> None:
        """The departure at this moment was none: the provider was never given the message."""
        minute = _minute(at)
        index = bisect_left(self._minutes, minute, self._first)
        if index < len(self._minutes) and self._minutes[index] == minute and self._counts[index]:
            self._counts[index] -= 1
            self._used -= 1

    def frees_at(self, now: datetime, count: int) -> datetime:
        """When at least `count` of those used will have left the day."""
        self._move(_minute(now))
        left = 0
        for index in range(self._first, len(self._minutes)):
            left += self._counts[index]
            if left >= count:
                return _EPOCH + _MINUTE * (self._minutes[index] + MINUTES + 1)
        return now

    def _move(self, minute: int) -> None:
        if minute <= self._head:
            return
        self._head = minute
        self._head_begins, self._head_ends = _span(minute)
        first, minutes = self._first, self._minutes
        while first < len(minutes) and minutes[first] < minute - MINUTES:
            self._used -= self._counts[first]
            first += 1
        if first >= _DROPPED_AT_ONCE:
            del self._minutes[:first], self._counts[:first]
            first = 0
        self._first = first

    def _add(self, minute: int, count: int) -> None:
        if minute < self._head - MINUTES or minute > self._head:
            return
        minutes = self._minutes
        index = len(minutes) - 1
        if index < self._first or minutes[index] != minute:  # the last one it is as a rule
            index = bisect_left(minutes, minute, self._first)
            if index == len(minutes) or minutes[index] != minute:
                minutes.insert(index, minute)
                self._counts.insert(index, 0)
        self._counts[index] += count
        self._used += count


def _span(minute: int) -> tuple[datetime, datetime]:
    begins = _EPOCH + _MINUTE * minute
    return begins, begins + _MINUTE


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
