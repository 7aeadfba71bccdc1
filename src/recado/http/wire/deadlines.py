"""The time that an answer may take, whatever it waits for: then its work is cancelled, and the caller hears 503 (C31).

One timer serves all requests of a kind: they are due in the order in which they began.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from recado.domain.core.clock import Clock, TimerHandle
from recado.engine.turns import turns

READ_SECONDS: Final = 10.0
WRITE_SECONDS: Final = 30.0
SLOW_SECONDS: Final = 90.0
"""Of uploads, which a provider has a minute to take (C8.2.6)."""

Task = asyncio.Task[Any]


class Deadlines:
    """Of requests that have the same time, in seconds. Every `begin` is followed by an `end`."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds = seconds
        self._clock = clock
        self._monotonic = clock.monotonic
        self._due: dict[Task, float] = {}
        self._expired: set[Task] = set()
        self._uncounted: set[Task] = set()
        self._hurries = False
        self._timer: TimerHandle | None = None

    def begin(self, task: Task, now: float) -> None:
        """Count the time of the request that this task answers, from `now` (monotonic seconds) on."""
        due = self._due[task] = now + self._seconds
        turns.begin(task, now)
        if self._timer is None:
            self._timer = self._clock.call_at(due, self._look)

    def end(self, task: Task) -> None:
        """The time counts no more: there is an answer."""
        self._due.pop(task, None)
        turns.end(task)
        if self._expired and task in self._expired:
            self._expired.remove(task)
            task.uncancel()

    def expired(self, task: Task) -> bool:
        """Whether it was here that the task was cancelled; `end` takes the cancellation back."""
        return task in self._expired

    @contextmanager
    def uncounted(self, task: Task) -> Iterator[None]:
        """Meanwhile the time does not count, unless the service stops: it is the client's, which has its own limits.

        Within `begin` and `end`. The time begins anew behind it.
        """
        if not self._hurries:
            self.end(task)
            self._uncounted.add(task)
        try:
            yield
        finally:
            self._uncounted.discard(task)
        if task not in self._due:
            self.begin(task, self._monotonic())

    def hurry(self, seconds: float) -> None:
        """Every request has only so many seconds from now on: the service stops."""
        self._hurries = True
        self._seconds = min(self._seconds, seconds)
        latest = self._monotonic() + seconds
        self._due = {task: min(due, latest) for task, due in self._due.items()}
        self._due |= dict.fromkeys(self._uncounted, latest)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._due:
            self._timer = self._clock.call_at(min(self._due.values()), self._look)

    def _look(self) -> None:
        """Cancel what is overdue, and come back when the next one is due."""
        self._timer = None
        now = self._monotonic()
        for task, due in list(self._due.items()):
            if due > now:
                self._timer = self._clock.call_at(due, self._look)
                return
            del self._due[task]
            self._expired.add(task)
            task.cancel()
