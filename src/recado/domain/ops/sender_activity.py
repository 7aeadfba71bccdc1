"""What went through one sender in the last hour, by minute, and its last failures: rings of fixed size (C34.1).

Kept in memory only for senders that send: a restart forgets it. A minute is its number since 1970.
"""

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

MINUTES: Final = 60
"""Of the series."""
LATELY: Final = 5
"""Minutes of the error rate and of the counts of errors."""
FAILURES: Final = 20
MOST_CODES: Final = 50
OTHER: Final = "other"
"""Stands for codes beyond those of which a count is kept."""
BOUNDS: Final = (5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 15_000)
"""Milliseconds: a call is counted under the first of them that it does not exceed."""
_UNKNOWN: Final = 0xFFFF_FFFF
_WIDTH: Final = 6  # numbers of a minute that is over: minute, sent, failed, of those late, queued, p95
_NO_TIMES: Final = bytes(4 * (len(BOUNDS) + 1))


@dataclass(frozen=True, slots=True)
class SenderFailure:
    """One message that failed."""

    at: datetime
    message_id: str
    code: str


@dataclass(frozen=True, slots=True)
class MinuteFigures:
    """One minute. `queued`: when it was last counted in it, None: it was not. `p95_ms`: of its calls, None: none."""

    minute: int
    sent: int
    failed: int
    queued: int | None
    p95_ms: int | None

    def joined(self, other: "MinuteFigures") -> "MinuteFigures":
        """With what another process knows of the same minute; `p95_ms` of the one that sent more in it."""
        queued = other.queued if self.queued is None else self.queued
        busier, idler = (self, other) if self.sent >= other.sent else (other, self)
        p95_ms = idler.p95_ms if busier.p95_ms is None else busier.p95_ms
        return MinuteFigures(self.minute, self.sent + other.sent, self.failed + other.failed, queued, p95_ms)


@dataclass(frozen=True, slots=True)
class SenderHour:
    """What is known of a sender's last hour: minutes of which anything is known, and failures, the newest first."""

    minutes: tuple[MinuteFigures, ...] = ()
    failures: tuple[SenderFailure, ...] = ()

    def joined(self, other: "SenderHour") -> "SenderHour":
        """With what another process knows."""
        minutes = {each.minute: each for each in self.minutes}
        for each in other.minutes:
            known = minutes.get(each.minute)
            minutes[each.minute] = each if known is None else known.joined(each)
        failures = sorted((*self.failures, *other.failures), key=lambda each: each.at, reverse=True)
        return SenderHour(tuple(minutes[each] for each in sorted(minutes)), tuple(failures[:FAILURES]))

    def series(self, minute: int) -> list[MinuteFigures]:
        """The hour that ends with this minute, without a gap."""
        known = {each.minute: each for each in self.minutes}
        return [
            known.get(each) or MinuteFigures(each, 0, 0, None, None)
            for each in range(minute - MINUTES + 1, minute + 1)
        ]  # fmt: skip


Lately = tuple[int, int, int]
"""Of the last five minutes: messages that left, that failed, and that failed after they had left."""
NOTHING_LATELY: Final[Lately] = (0, 0, 0)


def joined_lately(one: Lately, other: Lately) -> Lately:
    """Of two processes."""
    return one[0] + other[0], one[1] + other[1], one[2] + other[2]


def every_and_failed(lately: Lately) -> tuple[int, int]:
    """Messages that left or failed, and those that failed. One that did both counts once if both lie in them."""
    sent, failed, late = lately
    return max(sent + failed - late, failed), failed


def joined_errors(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Failures by code, of two processes; codes beyond the bound count together."""
    found = dict(one)
    for code, count in other.items():
        kept = code if code in found or len(found) < MOST_CODES else OTHER
        found[kept] = found.get(kept, 0) + count
    return found


class SenderActivity:
    """One sender. Times are whole minutes that never go back."""

    __slots__ = ("_busy", "_codes", "_failed", "_failures", "_late", "_minute", "_past", "_queued", "_sent", "_times")

    def __init__(self, minute: int) -> None:
        self._minute = self._busy = minute  # `_busy`: the last one in which anything left, failed or was queued
        self._sent = self._failed = self._late = 0
        self._queued = _UNKNOWN
        self._times = array("I", _NO_TIMES)
        self._past = array("I")
        self._failures: deque[SenderFailure] | None = None  # most senders have none
        self._codes: dict[tuple[int, str], int] | None = None  # (minute, code) → count

    # What is noted ----------------------------------------------------------------------------------------------------

    def left(self, minute: int, milliseconds: int) -> None:
        """A message left; its call took so long."""
        if minute != self._minute:
            self._turn_to(minute)
        self._sent += 1
        self._times[bisect_left(BOUNDS, milliseconds)] += 1

    def fell(self, minute: int, failure: SenderFailure, *, late: bool = False) -> None:
        """A message failed; `late`: after it had left."""
        if minute != self._minute:
            self._turn_to(minute)
        self._failed += 1
        self._late += late
        if self._failures is None:
            self._failures = deque(maxlen=FAILURES)
        self._failures.append(failure)
        if self._codes is None:
            self._codes = {}
        key = (minute, failure.code)
        if key not in self._codes and len(self._codes) >= MOST_CODES:
            key = (minute, OTHER)
        self._codes[key] = self._codes.get(key, 0) + 1

    def waits(self, minute: int, queued: int) -> None:
        """So many of its messages are queued now."""
        if minute != self._minute:
            self._turn_to(minute)
        self._queued = queued
        if queued:
            self._busy = minute

    # What is shown ----------------------------------------------------------------------------------------------------

    @property
    def hour(self) -> SenderHour:
        """All that is known of minutes, and the last failures."""
        return SenderHour(tuple(self._known()), () if self._failures is None else tuple(reversed(self._failures)))

    def lately(self, minute: int) -> Lately:
        """Of the five minutes of which this one is the last."""
        past, place, first = self._past, len(self._past), minute - LATELY
        sent, failed, late = (self._sent, self._failed, self._late) if self._minute > first else (0, 0, 0)
        while place and past[place - _WIDTH] > first:
            place -= _WIDTH
            sent += past[place + 1]
            failed += past[place + 2]
            late += past[place + 3]
        return sent, failed, late

    def errors(self, minute: int) -> dict[str, int]:
        """Failures of those minutes, by code."""
        found: dict[str, int] = {}
        if self._codes is None:
            return found
        for (at, code), count in self._codes.items():
            if minute - LATELY < at <= minute:
                found[code] = found.get(code, 0) + count
        return found

    def idle(self, minute: int) -> bool:
        """Whether nothing of the last hour would be missing without it."""
        return self._busy <= minute - MINUTES

    def _known(self) -> Iterator[MinuteFigures]:
        past = self._past
        for start in range(0, len(past), _WIDTH):
            minute, sent, failed, _, queued, p95 = past[start : start + _WIDTH]
            yield MinuteFigures(minute, sent, failed, _or_none(queued), _or_none(p95))
        yield MinuteFigures(self._minute, self._sent, self._failed, _or_none(self._queued), _or_none(self._p95()))

    def _turn_to(self, minute: int) -> None:
        """A minute begins."""
        if self._sent or self._failed:
            self._busy = self._minute
        if self._sent or self._failed or self._queued != _UNKNOWN:
            past = self._past
            past.extend((self._minute, self._sent, self._failed, self._late, self._queued, self._p95()))
            while past and (past[0] <= minute - MINUTES or len(past) > MINUTES * _WIDTH):
                del past[:_WIDTH]
        self._minute = minute
        self._sent = self._failed = self._late = 0
        self._queued = _UNKNOWN
        self._times = array("I", _NO_TIMES)
        if self._codes is not None:
            self._codes = {key: count for key, count in self._codes.items() if key[0] > minute - LATELY} or None

    def _p95(self) -> int:
        """Between the bounds, as if the calls lay evenly there."""
        wanted = 0.95 * sum(self._times)
        if not wanted:
            return _UNKNOWN
        before = 0
        for place, count in enumerate(self._times):
            if before + count >= wanted:
                low = BOUNDS[place - 1] if place else 0
                high = BOUNDS[place] if place < len(BOUNDS) else BOUNDS[-1]
                return round(low + (high - low) * (wanted - before) / count)
            before += count
        return BOUNDS[-1]


def _or_none(number: int) -> int | None:
    return None if number == _UNKNOWN else number
