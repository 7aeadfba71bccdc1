"""When the messages of a sender would leave, by its pace, its day and its tier, and what waits too long (C9.17.4).

Messages leave in the order in which they are made; times are exact for a few, and to ten minutes for many.
"""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from recado.domain.journeys.sends import QuietWindow, silent_until

DAY: Final = timedelta(hours=24)
PIECES: Final = 48
"""Into so many parts, of one moment each, the messages are cut that are made at one moment."""

LONGEST_PIECE: Final = timedelta(minutes=10)
"""Unless they leave so slowly that a part would take longer."""


@dataclass(frozen=True, slots=True)
class SenderLimits:
    """What a sender may do. None: no limit. `recipients`: distinct ones in a rolling day, by its tier.

    `held`: by its state nothing leaves but what is critical. `sent`, `addressed`: what counts of the day before.
    """

    per_second: float | None = None
    per_day: int | None = None
    recipients: int | None = None
    held: bool = False
    sent: Sequence[tuple[datetime, int]] = ()
    addressed: Sequence[tuple[datetime, int]] = ()


class Left(NamedTuple):
    """So many messages left at `at`; with `expired`, their time to live ran out then."""

    at: datetime
    messages: int
    expired: bool


class DepartureTimes:
    """The departures of one sender, asked for in the order of time."""

    def __init__(self, limits: SenderLimits) -> None:
        self._limits = limits
        self._day = _RollingDay(limits.per_day, limits.sent)
        self._tier = _RollingDay(limits.recipients, limits.addressed)
        self._free_at = datetime.min.replace(tzinfo=UTC)

    def leave(
        self,
        now: datetime,
        count: int,
        *,
        ttl: timedelta,
        critical: bool = False,
        quiet: Sequence[QuietWindow] = (),
        addressed_at: datetime | None = None,
    ) -> list[Left]:
        """When `count` messages of one kind leave that are made `now`.

        `quiet`: what they wait for in the queue, which their time to live does not count. `addressed_at`: when the
        sender wrote to these people last in this run.
        """
        limits, left = self._limits, []
        expires = now + ttl
        if limits.held and not critical:
            return [Left(expires, count, expired=True)]
        most = max(1, -(-count // PIECES))
        if limits.per_second is not None:
            most = min(most, max(1, int(limits.per_second * LONGEST_PIECE.total_seconds())))
        else:
            most = count
        moment = max(now, self._free_at)
        while count:
            until = silent_until(quiet, moment)
            if until is not None:
                expires += until - moment
                moment = until
                continue
            if moment > expires:
                left.append(Left(expires, count, expired=True))
                break
            counted = addressed_at is not None and addressed_at > moment - DAY
            room = min(self._day.room(moment), count if counted else self._tier.room(moment))
            if not room:
                moment = self._room_at(moment, counted=counted)
                continue
            some = min(count, most, room)
            self._day.add(moment, some)
            self._tier.add(moment, some, instead_of=addressed_at if counted else None)
            left.append(Left(moment, some, expired=False))
            count -= some
            if limits.per_second is not None:
                moment += timedelta(seconds=some / limits.per_second)
        self._free_at = max(self._free_at, moment) if limits.per_second is not None else self._free_at
        return left

    def _room_at(self, moment: datetime, *, counted: bool) -> datetime:
        """When there is room again, or a little later, so that not each place that becomes free is a part by itself."""
        free = self._day.frees_at(moment)
        if not counted:
            free = max(free, self._tier.frees_at(moment))
        return max(free, moment + LONGEST_PIECE)


class _RollingDay:
    """What was done in the last 24 hours, against a limit; None: there is none, and nothing is counted."""

    def __init__(self, limit: int | None, before: Iterable[tuple[datetime, int]]) -> None:
        self._limit = limit
        self._counts: OrderedDict[datetime, int] = OrderedDict()  # a plain dict is slow to begin once much is popped
        self._used = 0
        for at, count in sorted(before):
            self.add(at, count)

    def room(self, now: datetime) -> int:
        if self._limit is None:
            return 2**62
        while self._counts and (first := next(iter(self._counts))) <= now - DAY:
            self._used -= self._counts.pop(first)
        return max(0, self._limit - self._used)

    def add(self, at: datetime, count: int, *, instead_of: datetime | None = None) -> None:
        """`instead_of`: when they were counted before, which they are no more."""
        if self._limit is None:
            return
        if instead_of is not None and instead_of in self._counts:
            again = min(count, self._counts[instead_of])
            self._counts[instead_of] -= again
            self._used -= again
        self._counts[at] = self._counts.get(at, 0) + count
        self._used += count

    def frees_at(self, now: datetime) -> datetime:
        """When the next place becomes free; `now` where there is one."""
        return now if self.room(now) else next(iter(self._counts), now - DAY) + DAY
