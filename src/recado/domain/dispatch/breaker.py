"""When nothing may call a provider: asked to slow down, no connection, or answers that say nothing (C29.2).

Of the account of a number, or of a gateway that lanes share (`shared_breaker.py`).

Times are monotonic seconds. A slow-down and a failure to connect spend no attempt of a message (C14.5.4). A call is
answered with the count of `pauses` at its beginning: one that began before the last pause tells nothing of its effect.
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

    __slots__ = (
        "_failed", "_next_open", "_pause", "_slowed", "_unknown", "open_until", "paused_until", "pauses", "state",
    )  # fmt: skip

    def __init__(self) -> None:
        self.state = BreakerState.CLOSED
        self.paused_until = 0.0
        self.open_until = 0.0
        self._failed = 0  # calls in a row that failed to connect, or whose outcome is unknown
        self._unknown = 0  # of the last calls, a bit each, the newest lowest: whose outcome is unknown
        self.pauses = 0  # so many, until now
        self._slowed = False  # a pause was asked for, and no call that began after it was answered yet
        self._pause = 0.0  # how long the last one took for which the provider named no time
        self._next_open = FIRST_PAUSE

    @property
    def untroubled(self) -> bool:
        """Nothing to remember but a few outcomes: no pause was asked for since the last answer, no circuit is open."""
        return self.state is BreakerState.CLOSED and not self._slowed

    def ready_at(self) -> float:
        """No call may begin before this moment."""
        return max(self.paused_until, self.open_until if self.state is BreakerState.OPEN else 0.0)

    @property
    def clean(self) -> bool:
        """Closed, and none of the last calls failed."""
        return self.state is BreakerState.CLOSED and not self._failed and not self._unknown

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

    def answered(self, begun: int) -> None:
        """The provider answered a call on its merits. `begun`: the count of pauses at its beginning."""
        if self._slowed and begun == self.pauses:
            self._slowed, self._pause = False, 0.0
        if self._failed or self._unknown or self.state is not BreakerState.CLOSED:
            self._gets_through()

    def slow_down(self, now: float, after: float | None, begun: int) -> None:
        """The provider asked to slow down, for `after` seconds where it said so. `begun`: as in `answered`."""
        self._gets_through()
        if after is None:
            if now < self.paused_until:
                return  # calls that were under way when the pause began say nothing new
            if not self._pause:
                self._pause = FIRST_PAUSE
            elif begun == self.pauses:
                self._pause = min(self._pause * 2, LONGEST_PAUSE)
            after = self._pause
        self.paused_until = max(self.paused_until, now + after)
        self._slowed = True
        self.pauses += 1

    def down(self, now: float) -> None:
        """No connection was made, or the account is not let in."""
        self._fails(now, self._unknown << 1 & _LAST)

    def unknown(self, now: float) -> None:
        """The provider may have processed the message: its answer says nothing, or never came."""
        self._fails(now, (self._unknown << 1 | 1) & _LAST)

    def unrecorded(self, now: float) -> None:
        """What a call ended with could not be written: it says nothing of the provider; but a probe has to end."""
        if self.state is BreakerState.HALF_OPEN:
            self.unknown(now)

    def passed_by(self) -> None:
        """A call ended without the provider, as one to the mailbox simulator: where it was the probe, the next is."""
        if self.state is BreakerState.HALF_OPEN:
            self.state = BreakerState.OPEN

    def open(self, now: float) -> None:
        """Nothing leaves until a probe gets through: the first one goes in 5 s, each next one twice as late."""
        self.state = BreakerState.OPEN
        self.open_until = now + self._next_open
        self._next_open = min(self._next_open * 2, LONGEST_PAUSE)

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
            self.open(now)

    def _gets_through(self) -> None:
        if self.state is BreakerState.OPEN:
            return  # a call that began before the circuit opened: only the probe closes it
        self._failed = 0
        self._unknown = self._unknown << 1 & _LAST
        if self.state is BreakerState.HALF_OPEN:
            self.state = BreakerState.CLOSED
            self._unknown = 0
            self._next_open = FIRST_PAUSE
