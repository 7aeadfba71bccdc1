"""Exact pacing of one number: when the next message may leave (C14.5, per second).

Two rules, both kept as instants, so that nothing refills on a timer. The token bucket (GCRA) is one instant, the moment
when the next token is due; it spreads departures and lets a late wake-up catch up by 200 ms of rate. The ring of past
departures guards it: a departure waits until the `limit`-th last one is a second old, so no sliding second, closed at
its start and open at its end, ever holds more than `limit` of them.
"""

from array import array
from math import ceil, inf, nextafter
from typing import Final

CATCH_UP: Final = 0.2
"""Seconds of rate that may be caught up at once after a late wake-up."""

_COUNTED: Final = 64
"""Whole seconds of departures that are counted, for display: above a minute."""


class Pacer:
    """Departures of one number. All times are monotonic seconds of one clock and never go back.

    `per_second` is the rate in force, also a fraction (0.25: one in four seconds). `limit` bounds a sliding second and
    is the rate, rounded up, when not given. The bucket starts empty at `start`, or at the first time that it is asked:
    a new owner of a number gives the present plus one second, because the departures of the former owner are unknown.
    `guard` (seconds) lengthens the second of the ring where departures are stamped with another clock than the pacer's.
    `anchor`: the last departure, or the start; infinite before both.
    """

    __slots__ = (
        "_catch_up",
        "_counts",
        "_guard",
        "_head",
        "_interval",
        "_last_second",
        "_limit",
        "_opens",
        "_ready",
        "_ring",
        "_size",
        "anchor",
        "per_second",
    )

    def __init__(
        self, per_second: float, *, limit: int | None = None, start: float | None = None, guard: float = 0.0
    ) -> None:
        self._guard = guard
        self._head = 0  # where the next departure is written
        self._size = 1
        self._ring = array(
            "d", [-inf]
        )  # as large as a second has needed so far: most numbers send far below their rate
        self._opens = -inf  # the limit-th last departure plus one second
        self._ready = inf  # the moment when the next token is due
        self.anchor = inf
        self._counts = array("I")  # pairs: a whole second, and the departures in it
        self._last_second = -1
        self._set(per_second, limit)
        if start is not None:
            self._begin(start)

    def ready_at(self, now: float) -> float:
        """The earliest moment, `now` or later, at which a message may leave."""
        if self.anchor == inf:
            self._begin(now)
        return max(now, self._ready, self._opens)

    def take(self, now: float, *, forced: bool = False) -> None:
        """Record a departure at `now`. ValueError when it is not forced and `ready_at` lies in the future.

        A forced one leaves at once; it takes a token all the same, below zero if need be, down to a second's worth, and
        stands in the ring, so that the next ones pay for it.
        """
        if self.anchor == inf:
            self._begin(now)
        if forced:
            floor = now + max(self._interval, 1.0) + self._interval
            self._ready = min(max(self._ready, now - self._catch_up) + self._interval, max(floor, self._ready))
        elif now < self._ready or now < self._opens:
            raise ValueError("no message may leave yet")
        else:
            late = now - self._catch_up
            self._ready = max(late, self._ready) + self._interval
        if self._size < self._limit and _a_second_after(self._ring[self._head]) + self._guard > now:
            self._grow()
        head = self._head
        self._ring[head] = self.anchor = now
        head = head + 1 if head + 1 < self._size else 0
        self._head = head
        # The limit-th last departure; the ring may be larger than the limit, after the limit was lowered. In a smaller
        # one that departure is not known any more, because it is older than a second.
        if self._size >= self._limit:
            index = head - self._limit
            self._opens = _a_second_after(self._ring[index if index >= 0 else index + self._size]) + self._guard
        second = int(now)
        if second != self._last_second:
            self._enter(second)
        self._counts[-1] += 1

    def set_rate(self, per_second: float, *, limit: int | None = None) -> None:
        """Change the rate. What left already still counts: the new bound holds at once, and a debt stays."""
        waiting = (self._ready - self.anchor) * self.per_second  # in tokens, as of the last departure
        self._set(per_second, limit)
        if self.anchor != inf:
            least, most = self._interval - self._catch_up, self._interval + max(self._interval, 1.0)
            self._ready = self.anchor + min(max(waiting * self._interval, least), most)

    def tokens(self, now: float) -> float:
        """What the bucket holds: messages that may leave at once; below zero, what forced ones still owe."""
        if self.anchor == inf:
            self._begin(now)
        spare = now - self._ready
        if spare > self._catch_up:
            spare = self._catch_up
        return spare / self._interval + 1.0

    def sent_within(self, now: float, seconds: float) -> int:
        """Departures in (now - seconds, now].

        Exact up to one second and `limit` departures, beyond counted by whole seconds of the clock; at most a minute.
        """
        if seconds > 1.0:
            first, last = int(now - seconds) + 1, int(now)
            pairs = zip(self._counts[::2], self._counts[1::2], strict=True)
            return sum(count for second, count in pairs if first <= second <= last)
        count = 0
        index = self._head
        while count < self._size:
            index = (index or self._size) - 1
            if self._ring[index] <= now - seconds:
                break
            count += 1
        return count

    def steady_until(self, now: float) -> float:
        """Until when `tokens` and the counts of the last second and the last minute stay the same while nothing leaves.

        `now` where they move.
        """
        if now < self._ready + self._catch_up or now <= _a_second_after(self.anchor):
            return now
        counted = self._counts
        for place in range(0, len(counted), 2):
            if counted[place] > now - 60.0:
                return counted[place] + 60.0
        return inf

    def _begin(self, start: float) -> None:
        self.anchor = start
        self._ready = start + self._interval

    def _set(self, per_second: float, limit: int | None) -> None:
        if per_second <= 0:
            raise ValueError("a rate is above zero")
        self.per_second = per_second
        self._interval = 1.0 / per_second
        # Slow numbers lose nothing worth catching up, and keep their distance exactly.
        self._catch_up = CATCH_UP if per_second > 1.0 else 0.0
        self._limit = max(1, ceil(per_second)) if limit is None else limit
        self._opens = -inf
        if self._size >= self._limit:
            self._opens = _a_second_after(self._ring[(self._head - self._limit) % self._size]) + self._guard

    def _grow(self) -> None:
        """The ring would lose a departure that is not a second old."""
        size = min(2 * self._size, self._limit)
        # Oldest first; the new places stand for departures before all that are known.
        known = self._ring[self._head :] + self._ring[: self._head]
        self._ring = array("d", [-inf]) * (size - self._size) + known
        self._size = size
        self._head = 0

    def _enter(self, second: int) -> None:
        self._last_second = second
        self._counts.extend((second, 0))
        if len(self._counts) > 4 * _COUNTED:
            del self._counts[: -2 * _COUNTED]


def _a_second_after(departure: float) -> float:
    """The first float that is not before `departure` plus one second, exactly."""
    at = departure + 1.0
    # The sum is rounded; this difference never is (from 1 s up), so it shows whether it was rounded down.
    return at if at - 1.0 >= departure else nextafter(at, inf)
