"""The circuit of a gateway that organizations share, and one of each of them: trouble stays with whose it is (C16.3).

That a call got no connection shows that the gateway has none. That its outcome is unknown may be the doing of what was
sent: of such failures only a few of one organization count for all, and all of them count for the organization itself.

Times are monotonic seconds.
"""

from collections import deque
from typing import Final

from recado.domain.dispatch.breaker import LAST_CALLS, Breaker, BreakerState

OF_ONE_IN_A_ROW: Final = 3
"""Of the five unknown outcomes in a row that open the circuit for all, so many are of one organization at most."""
OF_ONE_OF_THE_LAST: Final = 6
"""Of the ten among the last 20 calls."""
FAILURES_TO_FAIL_OVER: Final = 3
"""In a row: then the other gateway takes over."""
OF_ONE_TO_FAIL_OVER: Final = 2
"""Of these, so many that may be an organization's own doing are of one at most."""
FAIL_OVER_FOR: Final = 300.0
"""Seconds."""


class FailuresInARow:
    """Failures in a row: of those that may be an organization's own doing, `of_one` at most of each count."""

    __slots__ = ("_of_one", "_own", "total")

    def __init__(self, of_one: int) -> None:
        self._of_one = of_one
        self._own: dict[str, int] = {}
        self.total = 0

    def counts(self, organization_id: str | None) -> bool:
        """Whether one more of the organization would count. None: it is nobody's own doing, and counts."""
        return organization_id is None or self._own.get(organization_id, 0) < self._of_one

    def add(self, organization_id: str | None) -> None:
        """One more; what does not count is left out."""
        if not self.counts(organization_id):
            return
        self.total += 1
        if organization_id is not None:
            self._own[organization_id] = self._own.get(organization_id, 0) + 1

    def reset(self) -> None:
        """A call was answered on its merits."""
        if self.total:
            self.total = 0
            self._own.clear()


class SharedBreaker(Breaker):
    """The breaker of a shared gateway: what an organization fails alone does not open its circuit, nor keep it open."""

    __slots__ = ("_doubted_by", "_in_a_row", "_whose")

    def __init__(self) -> None:
        super().__init__()
        self._in_a_row = FailuresInARow(OF_ONE_IN_A_ROW)
        self._whose: deque[str | None] = deque(maxlen=LAST_CALLS)  # of the last calls: whose unknown outcomes they were
        self._doubted_by: str | None = None  # whose probe had an unknown outcome since the last pause of the circuit

    def unknown_of(self, now: float, organization_id: str) -> None:
        """A call of the organization had an unknown outcome.

        After a probe the next one may follow at once: it is another organization's, for the circuit of this one opens
        by it. When that is unknown as well, the circuit pauses as after any failed probe.
        """
        if self.state is BreakerState.OPEN:
            return  # a call that began before the circuit opened
        if self.state is BreakerState.HALF_OPEN:
            if self._doubted_by is None or self._doubted_by == organization_id:
                self._doubted_by = organization_id
                self.state, self.open_until = BreakerState.OPEN, now
            else:
                self.open(now)
            return
        if not self._in_a_row.counts(organization_id) or self._whose.count(organization_id) >= OF_ONE_OF_THE_LAST:
            return
        self._in_a_row.add(organization_id)
        self._whose.append(organization_id)
        self.unknown(now)

    def down(self, now: float) -> None:
        """No connection was made, or the account is not let in: whoever found it out."""
        if self.state is BreakerState.CLOSED:
            self._whose.append(None)
        super().down(now)

    def open(self, now: float) -> None:
        """See the base class."""
        self._doubted_by = None
        super().open(now)

    def _gets_through(self) -> None:
        if self.state is BreakerState.OPEN:
            return
        self._in_a_row.reset()
        self._doubted_by = None
        if self.state is BreakerState.HALF_OPEN:
            self._whose.clear()
        else:
            self._whose.append(None)
        super()._gets_through()


class OrganizationBreaker:
    """The breaker of one organization at a shared gateway: `shared` holds everybody's messages, `own` only its own."""

    __slots__ = ("_organization_id", "own", "shared")

    def __init__(self, shared: SharedBreaker, organization_id: str) -> None:
        self._organization_id = organization_id
        self.shared = shared
        self.own = Breaker()

    @property
    def state(self) -> BreakerState:
        """The worse of the two."""
        shared, own = self.shared.state, self.own.state
        if own is BreakerState.CLOSED or shared is BreakerState.OPEN:
            return shared
        return own

    @property
    def paused_until(self) -> float:
        """The provider asked the gateway, not the organization."""
        return self.shared.paused_until

    @property
    def pauses(self) -> int:
        """So many of the gateway, until now."""
        return self.shared.pauses

    @property
    def untroubled(self) -> bool:
        """As of a breaker."""
        return self.shared.untroubled and self.own.untroubled

    def ready_at(self) -> float:
        """No call of the organization may begin before this moment."""
        return max(self.shared.ready_at(), self.own.ready_at())

    def began(self) -> None:
        """A call of the organization began."""
        self.shared.began()
        self.own.began()

    def answered(self, begun: int) -> None:
        """The provider answered one on its merits. `begun`: the count of pauses at its beginning."""
        self.shared.answered(begun)
        self.own.answered(begun)

    def slow_down(self, now: float, after: float | None, begun: int) -> None:
        """The provider asked the gateway to slow down: everybody's messages."""
        self.shared.slow_down(now, after, begun)
        self.own.answered(begun)

    def down(self, now: float) -> None:
        """No connection was made: that is the gateway's trouble, unless the organization probes."""
        self.shared.down(now)
        if self.own.state is BreakerState.HALF_OPEN:
            self.own.down(now)

    def unknown(self, now: float) -> None:
        """The provider may have processed the message: the gateway's trouble, or what the organization sends."""
        before = self.shared.state
        self.shared.unknown_of(now, self._organization_id)
        if before is BreakerState.HALF_OPEN:
            self.own.open(now)
        elif before is BreakerState.CLOSED or self.own.state is BreakerState.HALF_OPEN:
            self.own.unknown(now)

    def passed_by(self) -> None:
        """A call of the organization ended without the provider."""
        self.shared.passed_by()
        self.own.passed_by()

    def unrecorded(self, now: float) -> None:
        """What a call ended with could not be written; but a probe has to end."""
        if self.shared.state is BreakerState.HALF_OPEN:
            self.unknown(now)
        else:
            self.own.unrecorded(now)
