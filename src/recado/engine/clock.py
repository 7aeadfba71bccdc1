"""The two clocks: `SystemClock` follows the machine, `VirtualClock` stands still until a test advances it.

This is the only module that may touch `time`, `datetime.now` or `asyncio.sleep`.
"""

import asyncio
import heapq
import math
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from recado.domain.core.clock import TimerHandle
from recado.engine.steady_time import Moment, SteadyTime

_SETTLE_PASSES = 1_000
_BLIND_PASSES = 50


class SystemClock:
    """The machine's clock, that never runs back and follows no jump by itself; timers run on the current event loop.

    See `recado.engine.steady_time` for what it makes of a clock that is set.
    """

    __slots__ = ("_time", "now")

    def __init__(
        self,
        wall: Callable[[], datetime] | None = None,
        elapsed: Callable[[], float] | None = None,
        since: Moment | None = None,
    ) -> None:
        """`wall`: what the machine shows; `elapsed`: its seconds since it was started, sleep included.

        `since`: of another process, whose clock this one is then: it follows a jump when that says so.
        """
        self._time = SteadyTime(wall or partial(datetime.now, UTC), elapsed or self.elapsed, since)
        # Asked a dozen times for each message: the frame of one function is all that lies between.
        self.now: Callable[[], datetime] = self._time.reader()

    monotonic: Callable[[], float] = staticmethod(time.monotonic)
    """Seconds of the machine's monotonic clock."""

    @staticmethod
    def elapsed() -> float:
        """Seconds since the machine was started, those of a suspension included; nobody can set them."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    @property
    def set_by(self) -> timedelta:
        """How far what the machine shows lies ahead of `now()`: zero, unless somebody set it."""
        return self._time.set_by

    def follow(self) -> None:
        """Believe a clock that was set forward."""
        self._time.follow()

    async def sleep(self, seconds: float) -> None:
        """Wait for `seconds`; zero or less only lets others run."""
        await asyncio.sleep(max(0.0, seconds))

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """Call `callback` at `when` (monotonic seconds), never early, up to a millisecond late."""
        return _SystemTimer(when, callback)


class _SystemTimer:
    """A timer of the event loop that checks the time when it fires.

    uvloop counts in whole milliseconds and may fire one early: a send released early would break exact pacing.
    """

    __slots__ = ("_callback", "_handle", "_when")

    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self._when = when
        self._callback = callback
        self._handle = self._arm()

    def cancel(self) -> None:
        self._handle.cancel()

    def _arm(self) -> asyncio.TimerHandle:
        loop = asyncio.get_running_loop()
        delay = math.ceil(max(0.0, self._when - time.monotonic()) * 1_000) / 1_000
        return loop.call_at(loop.time() + delay, self._fire)

    def _fire(self) -> None:
        if time.monotonic() < self._when:
            self._handle = self._arm()
        else:
            self._callback()


class _VirtualTimer:
    """One entry of the virtual clock's heap."""

    __slots__ = ("callback",)

    def __init__(self, callback: Callable[[], object]) -> None:
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None  # the entry stays where it is until its time: what it would have called need not


class VirtualClock:
    """A clock that moves only by `advance`; what it wakes runs in time order, equal times as they were set."""

    set_by = timedelta()

    def __init__(self, start: datetime) -> None:
        """Begin at `start`, which must be aware."""
        if start.tzinfo is None:
            raise ValueError("a clock's start needs a time zone")
        self._start = start.astimezone(UTC)
        self._elapsed = 0.0
        self._timers: list[tuple[float, int, _VirtualTimer]] = []
        self._set_so_far = 0

    def now(self) -> datetime:
        """The virtual instant, aware, in UTC."""
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        """Virtual seconds since the start."""
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock was advanced by `seconds`; zero or less only lets others run."""
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_at(self._elapsed + seconds, lambda: None if woken.done() else woken.set_result(None))
        try:
            await woken
        finally:
            timer.cancel()

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        """Call `callback` when the clock reaches `when` (virtual seconds); a past instant needs no advance."""
        if when <= self._elapsed:
            return asyncio.get_running_loop().call_soon(callback)
        timer = _VirtualTimer(callback)
        self._set_so_far += 1
        heapq.heappush(self._timers, (when, self._set_so_far, timer))
        return timer

    async def advance(self, seconds: float) -> None:
        """Move on by `seconds`: each due timer runs at its own instant, and the loop settles between instants."""
        if seconds < 0:
            raise ValueError("time does not go back")
        target = self._elapsed + seconds
        await self.settle()
        while self._timers and self._timers[0][0] <= target:
            when, _, timer = heapq.heappop(self._timers)
            if timer.callback is None:
                continue
            self._elapsed = when
            timer.callback()
            await self.settle()
        self._elapsed = target
        await self.settle()

    async def settle(self) -> None:
        """Let the loop run until nothing more is ready; what waits for a socket or a thread is not waited for."""
        # The standard loop shows what is ready; on any other, a fixed number of passes has to do.
        ready = getattr(asyncio.get_running_loop(), "_ready", None)
        for _ in range(_BLIND_PASSES if ready is None else _SETTLE_PASSES):
            await asyncio.sleep(0)
            if ready is not None and not ready:
                return
