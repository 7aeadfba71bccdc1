"""Leases: how long a process may begin calls after it renewed its ownership, and when the next one may (C14.5.6).

A lease ends by the database's clock, which everyone reads who wants to take the place. Its holder goes by a clock of
its own machine, which nobody sets and which runs on while the machine is suspended, and it counts from before the
renewal was sent: so it stops first. Only spans of time pass between the two clocks.
"""

import math
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from typing import Final, TypeVar

TTL: Final = 5.0
"""Seconds that a renewal lasts, on the database's clock."""
RENEWED_EVERY: Final = 1.0  # seconds
MARGIN: Final = 0.25
"""Seconds by which its holder stops before the end: from the look at the clock until the bytes have left."""
MOST_OFFSET: Final = 0.050
"""Seconds that the clock of a machine that sends may be apart from the database's: else it takes nothing."""
MOST_OFFSET_OF_TWO: Final = 2 * MOST_OFFSET
"""Seconds that the clocks of two owners may be apart: one ahead of the database's, the other behind."""
TOLERANCE: Final = 0.050
"""Seconds that are waited in excess, for what clocks gain on each other meanwhile."""
WINDOW: Final = 1.0
"""Seconds of departures that a new owner does not know: those of a sliding second."""

Moment = TypeVar("Moment", float, datetime)


class Lease:
    """What a process knows of its own lease. `elapsed`: its machine's seconds, those of a suspension included."""

    __slots__ = ("_elapsed", "_until")

    def __init__(self, elapsed: Callable[[], float], until: float = -math.inf) -> None:
        """`until`: that it holds already; infinite for one that nobody else can take."""
        self._elapsed = elapsed
        self._until = until

    def asked(self) -> float:
        """The moment to remember before a renewal is sent."""
        return self._elapsed()

    @property
    def until(self) -> float:
        """When it ends, by the machine's seconds."""
        return self._until

    def extended(self, until: float) -> None:
        """It lasts until then, as whoever lends it says."""
        self._until = max(self._until, until)

    def renewed(self, asked_at: float) -> None:
        """A renewal that was sent after `asked_at` is committed."""
        self._until = max(self._until, asked_at + TTL - MARGIN)

    def lost(self) -> None:
        """Somebody else has the place."""
        self._until = -math.inf

    def holds(self) -> bool:
        """Whether a call may begin now."""
        return self._elapsed() < self._until


def endless() -> Lease:
    """The lease of a process beside which there is no other."""
    return Lease(lambda: 0.0, math.inf)


class LeaseVerdict(Enum):
    """What whoever wants the place does, seeing the lease of another."""

    TAKE = "take"
    WAIT = "wait"
    REFUSE = "refuse"


def look(*, left: float, renewed: bool, dead: bool, take_over: bool) -> LeaseVerdict:
    """What follows of a lease with so many seconds left.

    `renewed`: it was since the first look, so its holder lives. `dead`: its process is certainly no more.
    """
    if dead or take_over or left <= 0.0:
        return LeaseVerdict.TAKE
    return LeaseVerdict.REFUSE if renewed else LeaseVerdict.WAIT


def closed_at(lease_until: Moment, *, free_at: Moment | None, dead_at: Moment | None) -> Moment:
    """When an owner whose place is taken begins no call any more, by the database's clock.

    `free_at`: when it closed its gates itself. `dead_at`: when it was certainly dead. None: it did not, it is not.
    """
    if free_at is not None:
        return free_at
    return lease_until if dead_at is None else min(lease_until, dead_at)


def opens_in(busy_for: float | None, offset: float) -> float:
    """Seconds until a new owner lets messages depart; less than none: at once.

    `busy_for`: seconds until the owner before begins no call any more, less than none where that has passed; None:
    there was none. `offset`: seconds that this machine's clock is apart from the database's.
    """
    return 0.0 if busy_for is None else busy_for + WINDOW + TOLERANCE + offset


def may_send(offset: float) -> bool:
    """Whether messages may depart from a machine whose clock is so many seconds apart from the database's."""
    return offset <= MOST_OFFSET


def offset_of(readings: list[tuple[float, float, float]]) -> float:
    """How far two clocks are certainly apart, in seconds, by readings of (ours before, theirs, ours after)."""
    ahead = max(theirs - after for _, theirs, after in readings)
    behind = max(before - theirs for before, theirs, _ in readings)
    return max(ahead, behind, 0.0)
