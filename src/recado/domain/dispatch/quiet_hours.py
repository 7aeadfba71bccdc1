"""Quiet hours: a daily window on the recipients' side of the clock in which nothing promotional leaves (C14.5).

The local wall clock decides, also across its changes: where the clock jumps over the end of the window, quiet ends with
the jump; where it is set back, a stretch of the window that comes twice is quiet twice.
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` up to, not including, `end`, every day; across midnight when `end` is the earlier one.

    Equal ends hold no time at all: such a window is never quiet.
    """

    start: time
    end: time

    def holds(self, at: time) -> bool:
        """Whether the window holds this time of day."""
        if self.start <= self.end:
            return self.start <= at < self.end
        return at >= self.start or at < self.end


def quiet_until(quiet: QuietHours, zone: ZoneInfo, at: datetime) -> datetime | None:
    """The first moment (UTC) after `at` that is not quiet; None when `at` (aware) itself is not."""
    at = at.astimezone(UTC)
    if not _is_quiet(quiet, zone, at):
        return None
    until = at
    while True:
        # Two days reach over any change of the clock; only a zone that drops a date needs a second round.
        for boundary in _boundaries(zone, until, quiet.end):
            if not _is_quiet(quiet, zone, boundary):
                return boundary
            until = boundary


def quiet_overlap(quiet: QuietHours, zone: ZoneInfo, start: datetime, end: datetime) -> timedelta:
    """How much of [start, end) is quiet."""
    total = timedelta(0)
    at, end = start.astimezone(UTC), end.astimezone(UTC)
    while at < end:
        until = quiet_until(quiet, zone, at)
        if until is not None:
            until = min(until, end)
            total += until - at
            at = until
        else:
            at = next(
                (moment for moment in _boundaries(zone, at, quiet.start) if _is_quiet(quiet, zone, moment)), at + _DAY
            )
    return total


def _is_quiet(quiet: QuietHours, zone: ZoneInfo, at: datetime) -> bool:
    return quiet.holds(at.astimezone(zone).time())


def _boundaries(zone: ZoneInfo, after: datetime, local: time) -> list[datetime]:
    """In order, the moments in the two days after `after` when the clock shows `local` or is changed."""
    last = after + 2 * _DAY
    day = after.toordinal()
    # A local date begins up to a day before and ends up to a day after the date of UTC.
    moments = {moment for near in range(day - 1, day + 4) for moment in _moments_of_day(zone, near, local)}
    return sorted(moment for moment in moments if after < moment <= last)


@lru_cache(maxsize=4096)
def _moments_of_day(zone: ZoneInfo, day: int, local: time) -> tuple[datetime, ...]:
    moments = list(_clock_changes(zone, day))
    for fold in (0, 1):
        moment = datetime.combine(date.fromordinal(day), local, zone).replace(fold=fold).astimezone(UTC)
        # A time that a jump of the clock leaves out comes back as another one; the jump itself is in the list.
        if moment.astimezone(zone).time() == local:
            moments.append(moment)
    return tuple(moments)


@lru_cache(maxsize=1024)
def _clock_changes(zone: ZoneInfo, day: int) -> tuple[datetime, ...]:
    """The moments of a UTC day (its ordinal) at which the zone's offset from UTC changes, to the second."""
    found = []
    low = datetime.fromordinal(day).replace(tzinfo=UTC)
    for _ in range(24):
        high = low + _HOUR
        before, changed = low, high
        offset = _offset(zone, low)
        if _offset(zone, high) != offset:
            while changed - before > _SECOND:
                middle = (before + (changed - before) / 2).replace(microsecond=0)
                if _offset(zone, middle) == offset:
                    before = middle
                else:
                    changed = middle
            found.append(changed)
        low = high
    return tuple(found)


def _offset(zone: ZoneInfo, at: datetime) -> timedelta | None:
    return at.astimezone(zone).utcoffset()
