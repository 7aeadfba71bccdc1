"""Work done again and again: every so many seconds, at a hint, and more slowly while it fails."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.core.errors import Unavailable
from recado.engine.backoff import Backoff
from recado.engine.failure import Failure
from recado.engine.signals import SILENT, Emitter

_log = logging.getLogger(__name__)

SLOWEST_AT_LEAST, SLOWEST_AT_MOST = 5.0, 60.0  # seconds between tries after failures


class Periodic:
    """A service that awaits `work()` every `seconds`, counted from the end of the run before.

    An exception is logged by its type and place (`Unavailable` only for debugging). It doubles the pause up to
    `ceiling` seconds, until a run succeeds; work of a longer period is tried again after `ceiling` seconds already.
    However long the database was away, what comes round every second is back at most five seconds after it.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        work: Callable[[], Awaitable[None]],
        clock: Clock,
        *,
        at_once: bool = False,
        ceiling: float | None = None,
        grace: float = 10.0,
        chance: random.Random | None = None,
        signals: Emitter = SILENT,
    ) -> None:
        """`at_once`: the first run comes with the start. `grace`: seconds that a stop gives the run under way.

        `ceiling` None: the period itself, of which 5 s are the least and a minute is the most.
        `chance` spreads the pauses after failures; without it they are exact.
        """
        self.name = name
        self.last_failure: Failure | None = None
        self._seconds = seconds
        self._work = work
        self._clock = clock
        slowest = min(max(seconds, SLOWEST_AT_LEAST), SLOWEST_AT_MOST) if ceiling is None else ceiling
        self._backoff = Backoff(
            first=min(seconds, slowest), ceiling=max(seconds, slowest), jitter=0.0 if chance is None else 0.2
        )
        self._chance = chance or random.Random(0)  # noqa: S311 - jitter is 0 then: never seen
        self._grace = grace
        self._signals = signals
        self._at_once = at_once
        self._due = asyncio.Event()
        self._hinted = False
        self._failures = 0
        self._stopping = asyncio.Event()
        self._timer: TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin; safe to call twice."""
        if self._task is not None:
            return
        self._stopping.clear()
        self._due.clear()
        self._failures = 0
        if self._at_once:
            self._due.set()
        else:
            self._wait(self._seconds)
        self._task = asyncio.get_running_loop().create_task(self._run(), name=f"periodic {self.name}")

    async def stop(self) -> None:
        """End; a run under way may finish within `grace` seconds. Safe to call twice."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping.set()
        self._due.set()
        cut = self._clock.call_at(self._clock.monotonic() + self._grace, task.cancel)
        await asyncio.wait([task])
        cut.cancel()
        if self._timer is not None:
            self._timer.cancel()

    def hint(self) -> None:
        """Run now; during a run: once more right after it; while backing off from a failure: when that is over."""
        self._hinted = True
        if not self._failures:
            self._due.set()

    async def _run(self) -> None:
        while not self._stopping.is_set():  # a failure takes back the wake-up of a stop that came during the run
            await self._due.wait()
            if self._stopping.is_set():
                return
            if self._timer is not None:
                self._timer.cancel()
            self._due.clear()
            self._hinted = False
            try:
                await self._work()
            except (Exception, asyncio.CancelledError) as error:  # the next run may succeed
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise  # it is this service that is cancelled, and not something that its work waited for
                self._failures += 1
                self.last_failure = failure = Failure.of(error, self._clock.now())
                # That a server is away is told once, by anyone who calls it; each of its users would only repeat it.
                level = logging.DEBUG if isinstance(error, Unavailable) else logging.ERROR
                _log.log(level, "periodic %s failed (%s in %s)", self.name, failure.type, failure.where)
                self._due.clear()
                self._wait(self._backoff.delay(self._failures, self._chance))
            else:
                self._failures = 0
                if self._hinted:
                    self._due.set()
                else:
                    self._wait(self._seconds)
            self._signals.emit("periodic.ran", self.name)

    def _wait(self, seconds: float) -> None:
        self._timer = self._clock.call_at(self._clock.monotonic() + seconds, self._due.set)
