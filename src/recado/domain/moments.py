"""Wall-clock times that lie exactly as far apart as the monotonic clock measured.

Pacing is decided on the monotonic clock and shown by the wall clock. Two separate readings are some microseconds apart,
each time others: a second that is full on one clock would hold one departure too many on the other.
"""

from datetime import datetime, timedelta

from recado.domain.clock import Clock

LOOK_EVERY = 1.0  # seconds
TOLERANCE = timedelta(milliseconds=20)
"""When the machine's wall clock has moved by more than this, it is followed."""


class Moments:
    """The wall-clock time of monotonic readings of one clock."""

    __slots__ = ("_clock", "_look_at", "_monotonic", "_wall")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic()
        self._wall = clock.now()
        self._look_at = self._monotonic + LOOK_EVERY

    def at(self, monotonic: float) -> datetime:
        """The moment of this reading."""
        moment = self._wall + timedelta(seconds=monotonic - self._monotonic)
        if monotonic < self._look_at:
            return moment
        self._look_at = monotonic + LOOK_EVERY
        drift = self._clock.now() - moment
        if abs(drift) <= TOLERANCE:
            return moment
        self._monotonic, self._wall = monotonic, moment + drift
        return self._wall
