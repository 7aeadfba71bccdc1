"""How many calls of one subscription are in flight at once (C23.3.1).

Ten at first, one more for each success up to a hundred, half as many after a failure; and after several failures in a
row a pause before the next one.
"""

from recado.domain.webhooks.webhook import failure_pause

FIRST_CALLS, CALLS_OF_A_SUBSCRIPTION = 10, 100


class ConcurrencyLimit:
    """`in_flight`: the deliveries whose calls are under way. Times are monotonic seconds."""

    __slots__ = ("_limit", "_pause_until", "in_flight")

    def __init__(self) -> None:
        self.in_flight: set[str] = set()
        self._limit = FIRST_CALLS
        self._pause_until = float("-inf")

    @property
    def has_room(self) -> bool:
        """Whether one more call may begin."""
        return len(self.in_flight) < self._limit

    def pause(self, now: float) -> float:
        """Seconds until the next call may begin; 0 or less: it may now."""
        return self._pause_until - now

    def succeeded(self) -> None:
        """After a 2xx."""
        self._limit, self._pause_until = min(self._limit + 1, CALLS_OF_A_SUBSCRIPTION), float("-inf")

    def failed(self, now: float, failures_before: int) -> None:
        """After anything else; `failures_before`: those in a row before this one."""
        self._limit = max(self._limit // 2, 1)
        self._pause_until = now + failure_pause(failures_before)
