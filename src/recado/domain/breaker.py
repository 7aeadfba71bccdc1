"""When a number must not call its provider: asked to slow down, or no connection (C14.5.4, C29.2).

Times are monotonic seconds. Neither spends an attempt of a message.
"""

from enum import StrEnum

FIRST_PAUSE = 5.0
LONGEST_PAUSE = 300.0
DOWNS_TO_OPEN = 5


class BreakerState(StrEnum):
    """closed: calls run; open: none does; half_open: one probe is under way (C34.2)."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


class Breaker:
    """Pauses after "slow down" and the circuit after five failures to connect in a row, both doubling to 5 minutes."""

    __slots__ = ("_downs", "_next_open", "_next_pause", "open_until", "paused_until", "state")

    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self.paused_until = 0.0
        self.open_until = 0.0
        self._downs = 0
        self._next_pause = FIRST_PAUSE
        self._next_open = FIRST_PAUSE

    @property
    def untroubled(self) -> bool:
        """The provider's last answer was one on the merits of a message."""
        return self.state is BreakerState.CLOSED and self._downs == 0 and self._next_pause == FIRST_PAUSE

    def ready_at(self) -> float:
        """No call may begin before this moment."""
        return max(self.paused_until, self.open_until if self.state is BreakerState.OPEN else 0.0)

    def calls_allowed(self, now: float, in_flight: int) -> int | None:
        """How many calls may begin now; None: as many as one likes."""
        if now < self.ready_at():
            return 0
        if self.state is BreakerState.CLOSED:
            return None
        return 1 if in_flight == 0 else 0

    def began(self) -> None:
        """A call began: in an open circuit it is the probe."""
        if self.state is BreakerState.OPEN:
            self.state = BreakerState.HALF_OPEN

    def answered(self) -> None:
        """The provider answered a call on its merits."""
        self.state = BreakerState.CLOSED
        self._downs = 0
        self._next_pause = FIRST_PAUSE
        self._next_open = FIRST_PAUSE

    def slow_down(self, now: float, after: float | None) -> None:
        """The provider asked to slow down, for `after` seconds where it said so."""
        if self.state is not BreakerState.CLOSED:
            self.state = BreakerState.CLOSED  # it answers again
            self._next_open = FIRST_PAUSE
        self._downs = 0
        if now < self.paused_until and after is None:
            return  # calls that were under way when the pause began say nothing new
        self.paused_until = max(self.paused_until, now + (self._next_pause if after is None else after))
        self._next_pause = min(self._next_pause * 2, LONGEST_PAUSE)

    def down(self, now: float) -> None:
        """No connection was made, or the account is not let in."""
        self._downs += 1
        if self.state is BreakerState.OPEN:
            return  # a call that began before the circuit opened
        if self.state is BreakerState.HALF_OPEN or self._downs >= DOWNS_TO_OPEN:
            self.state = BreakerState.OPEN
            self.open_until = now + self._next_open
            self._next_open = min(self._next_open * 2, LONGEST_PAUSE)
