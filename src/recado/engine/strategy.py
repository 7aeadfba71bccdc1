"""Who is restarted after a failure, and how many restarts a supervisor bears: pure values, no tasks."""

from collections import deque
from collections.abc import Sequence
from enum import StrEnum
from typing import TypeVar

C = TypeVar("C")


class Strategy(StrEnum):
    """Who is restarted when one child fails."""

    ONE_FOR_ONE = "one_for_one"
    """Only the failed child."""
    REST_FOR_ONE = "rest_for_one"
    """The failed child and those added after it, which may build on it."""
    ONE_FOR_ALL = "one_for_all"
    """All children."""


def affected(strategy: Strategy, children: Sequence[C], failed: C) -> Sequence[C]:
    """The children to restart, in starting order; none when the failed one is not among them any more."""
    if failed not in children:
        return ()
    if strategy is Strategy.ONE_FOR_ALL:
        return children
    if strategy is Strategy.REST_FOR_ONE:
        return children[children.index(failed) :]
    return (failed,)


class Intensity:
    """Allows `restarts` within any `period` seconds."""

    __slots__ = ("_recent", "_restarts", "period")

    def __init__(self, restarts: int, period: float) -> None:
        self._restarts = restarts
        self.period = period
        self._recent: deque[float] = deque()

    def exceeded_by(self, now: float) -> bool:
        """Count one more restart at `now` (monotonic seconds); whether it is one too many."""
        recent = self._recent
        recent.append(now)
        while recent[0] <= now - self.period:
            recent.popleft()
        return len(recent) > self._restarts

    def forgive(self) -> None:
        """Begin the count again."""
        self._recent.clear()
