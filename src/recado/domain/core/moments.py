"""Wall-clock times that lie exactly as far apart as the monotonic clock measured.

Pacing is decided on the monotonic clock and shown by the wall clock. Two separate readings are some microseconds apart,
each time others: a second that is full on one clock would hold one departure too many on the other.
"""

from datetime import datetime, timedelta

from recado.domain.core.clock import Clock

LOOK_EVERY = 1.0  # seconds
TOLERANCE = timedelta(milliseconds=20)
"""When the machine's wall clock has moved by more than this, it is followed."""
TOGETHER = 0.002
"""Seconds within which both clocks must be read: a process held up in between would see a clock that moved."""


class Moments:
    """The wall-clock time of monotonic readings of one clock."""

    __slots__ = ("_clock", "_look_at", "_monotonic", "_wall")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._monotonic = clock.monotonic()
        self._wall = clock.now()
        self._look_at = self._monotonic  # the first look corrects what came between the two

    def at(self, monotonic: float) -> datetime:
        """The moment of this reading."""
        if monotonic >= self._look_at:
            self._look()
        return self._wall + timedelta(seconds=monotonic - self._monotonic)

    def _look(self) -> None:
        """Follow the wall clock when it was set; where the clocks cannot be read together, at the next reading."""
        clock = self._clock
        before = clock.monotonic()
        wall = clock.now()
        if clock.monotonic() - before > TOGETHER:
            return
        self._look_at = before + LOOK_EVERY
        moment = self._wall + timedelta(seconds=before - self._monotonic)
        if abs(wall - moment) > TOLERANCE:
            self._monotonic, self._wall = before, wall
