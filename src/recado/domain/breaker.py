"""When a number must not call its provider: asked to slow down, no connection, or answers that say nothing (C29.2).

Times are monotonic seconds. A slow-down and a failure to connect spend no attempt of a message (C14.5.4).
"""

from enum import StrEnum

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
IN_A_ROW = 5
"""Calls in a row that failed to connect, or whose outcome is unknown: they open the circuit."""
LAST_CALLS, UNKNOWN_OF_THEM = 20, 10
"""So many unknown outcomes among the last calls open it as well."""
_LAST = (1 << LAST_CALLS) - 1


class BreakerState(StrEnum):
    """closed: calls run; open: none does; half_open: one probe is under way (C34.2)."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Pauses after "slow down", and the circuit after calls that did not get through, both doubling to 5 minutes."""

    __slots__ = ("_failed", "_next_open", "_next_pause", "_unknown", "open_until", "paused_until", "state")

    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self.paused_until = 0.0
        self.open_until = 0.0
        self._failed = 0  # calls in a row that failed to connect, or whose outcome is unknown
        self._unknown = 0  # of the last calls, a bit each, the newest lowest: whose outcome is unknown
        self._next_pause = FIRST_PAUSE
        self._next_open = FIRST_PAUSE

    @property
    def untroubled(self) -> bool:
        """Nothing to remember but a few outcomes: no pause was asked for since the last answer, no circuit is open."""
        return self.state is BreakerState.CLOSED and self._next_pause == FIRST_PAUSE

    def ready_at(self) -> float:
        """No call may begin before this moment."""
        return max(self.paused_until, self.open_until if self.state is BreakerState.OPEN else 0.0)

    def calls_allowed(self, now: float, in_flight: int) -> int | None:
        """How many calls may begin now; None: as many as one likes."""
        if now < self.paused_until:
            return 0
        if self.state is BreakerState.CLOSED:
            return None
        return 1 if in_flight == 0 and now >= self.ready_at() else 0

    def began(self) -> None:
        """A call began: in an open circuit it is the probe."""
        if self.state is BreakerState.OPEN:
            self.state = BreakerState.HALF_OPEN

    def answered(self) -> None:
        """The provider answered a call on its merits."""
        self._next_pause = FIRST_PAUSE
        if self._failed or self._unknown or self.state is not BreakerState.CLOSED:
            self._gets_through()

    def slow_down(self, now: float, after: float | None) -> None:
        """The provider asked to slow down, for `after` seconds where it said so."""
        self._gets_through()
        if now < self.paused_until and after is None:
            return  # calls that were under way when the pause began say nothing new
        self.paused_until = max(self.paused_until, now + (self._next_pause if after is None else after))
        self._next_pause = min(self._next_pause * 2, LONGEST_PAUSE)

    def down(self, now: float) -> None:
        """No connection was made, or the account is not let in."""
        self._fails(now, self._unknown << 1 & _LAST)

    def unknown(self, now: float) -> None:
        """The provider may have processed the message: its answer says nothing, or never came."""
        self._fails(now, (self._unknown << 1 | 1) & _LAST)

    def _fails(self, now: float, unknown: int) -> None:
        if self.state is BreakerState.OPEN:
            return  # a call that began before the circuit opened
        self._failed += 1
        self._unknown = unknown
        if (
            self.state is BreakerState.HALF_OPEN
            or self._failed >= IN_A_ROW
            or self._unknown.bit_count() >= UNKNOWN_OF_THEM
        ):
            self.state = BreakerState.OPEN
            self.open_until = now + self._next_open
            self._next_open = min(self._next_open * 2, LONGEST_PAUSE)

    def _gets_through(self) -> None:
        if self.state is BreakerState.OPEN:
            return  # a call that began before the circuit opened: only the probe closes it
        self._failed = 0
        self._unknown = self._unknown << 1 & _LAST
        if self.state is BreakerState.HALF_OPEN:
            self.state = BreakerState.CLOSED
            self._unknown = 0
            self._next_open = FIRST_PAUSE
