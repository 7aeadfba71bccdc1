"""When a journey stood still: its messages were held, which does not count toward their time to live (C14.5)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

KEPT: Final = 20
"""Pauses of a journey that are known: a message that waited through more of them may expire early."""

_MILLISECOND: Final = timedelta(milliseconds=1)


@dataclass(frozen=True, slots=True)
class OwnerPauses:
    """How a journey, the owner of messages, stands. `revision`: of the journey; what has a higher one is newer.

    `paused_at`: None: it is not paused. `past`: begin and end of its last pauses, one after the other.
    """

    organization_id: str
    env: str
    owner: str
    revision: int
    paused_at: datetime | None
    past: tuple[datetime, ...] = ()

    def held_ms(self, due_at: datetime, now: datetime) -> int:
        """For how long a message that was due at `due_at` has been held."""
        held = timedelta()
        for begin, end in self.spans(now):
            held += max(timedelta(), min(end, now) - max(begin, due_at))
        return held // _MILLISECOND

    def spans(self, now: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Begin and end of each pause that is known, one after the other; of the present one, now."""
        yield from zip(self.past[::2], self.past[1::2], strict=True)
        if self.paused_at is not None:
            yield self.paused_at, now


def with_pause(past: tuple[datetime, ...], begin: datetime, end: datetime) -> tuple[datetime, ...]:
    """The pauses that are kept once another one is over."""
    return (*past, begin, end)[-2 * KEPT :]
