"""The present, from a clock that may be set: it never runs back, and no jump forward is followed unconfirmed (C32).

What the machine shows is compared with the seconds since it was started, which nobody can set. As long as both go on
alike, the clock is believed; small corrections forward are followed. When it is set back, or forward by more than a
minute, the present goes on from where it was.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from math import inf

SET = timedelta(minutes=1)
"""Less is how clocks are kept right."""
FRESH = 0.0005
"""Seconds for which a reading stands. Half a dozen are asked for each message. Records show milliseconds, and
what has a pace or a time limit goes by the monotonic clock."""
BELIEVED_AFTER = 86_400.0
"""Seconds in which nobody set it again: then it is believed."""
Moment = tuple[datetime, float]
"""The present, and the machine's seconds then."""
_LOOK_EVERY = timedelta(seconds=30)
_ZERO = timedelta()


class SteadyTime:
    """`set_by`: how far the machine's clock lies ahead of the present, as of the last reading."""

    __slots__ = ("_base", "_base_at", "_believed_after", "_elapsed", "_last", "_look_at", "_set_at", "_wall", "set_by")

    def __init__(self, wall: Callable[[], datetime], elapsed: Callable[[], float], since: Moment | None = None) -> None:
        """`since`: of another process that goes on here: a jump is believed when it says so, and not after a day."""
        self._wall = wall
        self._elapsed = elapsed
        self.set_by = _ZERO
        self._set_at = 0.0
        self._believed_after = BELIEVED_AFTER if since is None else inf
        self._believe(*(since or (wall(), elapsed())))

    def reader(self) -> Callable[[], datetime]:
        """What answers the present, as it was half a millisecond ago at most."""
        wall, elapsed, look = self._wall, self._elapsed, self._look
        last, limit = self._last, self._look_at
        fresh_until = 0.0

        def now() -> datetime:
            nonlocal last, limit, fresh_until
            at = elapsed()  # a fifth of what the machine's clock costs
            if at < fresh_until:
                return last
            shown = wall()
            if last <= shown < limit:
                last, fresh_until = shown, at + FRESH
                return shown
            last, limit = look(shown, last)
            fresh_until = 0.0
            return last

        return now

    def follow(self) -> None:
        """Believe what the machine shows, if that is later."""
        shown = self._wall()
        if self.set_by > _ZERO and shown > self._last:
            self._believe(shown, self._elapsed())

    def _believe(self, shown: datetime, at: float) -> None:
        self._base = self._last = shown
        self._base_at = at
        self._look_at = shown + _LOOK_EVERY
        self.set_by = _ZERO

    def _look(self, shown: datetime, last: datetime) -> tuple[datetime, datetime]:
        """The present, and up to which moment the machine's clock needs no look."""
        at = self._elapsed()
        present = max(last, self._base + timedelta(seconds=at - self._base_at))
        self._last = present
        ahead = shown - present
        if _ZERO <= ahead <= SET:
            self._believe(shown, at)
            return shown, self._look_at
        if abs(ahead - self.set_by) > SET or (self.set_by < _ZERO) != (ahead < _ZERO):
            self._set_at = at
        self.set_by = ahead
        if ahead > SET and at - self._set_at >= self._believed_after:
            self._believe(shown, at)
            return shown, self._look_at
        return present, present  # every reading is a look, until the two agree again
