"""The watch over the event loop: how late it runs what is due, always; and by whom it was held when that took long.

A timer measures. While the loop is held, a thread has its thread interrupted by a signal, whose handler takes down the
names of functions and of the task, never values. The thread does not read the other's frames itself: CPython 3.11
crashes at times when one thread reads the frames that another runs.
"""

import asyncio
import signal
import threading
from bisect import bisect_left
from types import FrameType
from typing import Any, Final

import structlog

from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.core.log_rate import LogRate

EVERY: Final = 0.1  # seconds
LONG: Final = 0.25  # seconds
BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SHOWN_FRAMES = 6
_LOOK = signal.SIGURG  # of no use to a program without out-of-band data, and without a handler it ends none

_log = structlog.get_logger(__name__)


class LoopWatch:
    """A service.

    `counts`: how many measurements were at most as late as each of `BOUNDS` and more than the one before, and last how
    many were later; `seconds`: the sum of all.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due = 0.0
        self._seen = ""
        self._timer: TimerHandle | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loops_thread = 0
        self._handled_before: Any = signal.SIG_DFL
        self._log_rate = LogRate()
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    async def start(self) -> None:
        """Begin; safe to call twice. A loop in another thread than the main one is measured, and not looked at."""
        if self._timer is not None:
            return
        self._loop, self._loops_thread = asyncio.get_running_loop(), threading.get_ident()
        self._stopping.clear()
        self._expect()
        if threading.current_thread() is not threading.main_thread():
            return  # which is the only one that handles signals
        self._handled_before = signal.signal(_LOOK, self._on_signal)
        signal.siginterrupt(_LOOK, False)
        self._thread = threading.Thread(target=self._run, name="loop watch", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        """End; safe to call twice."""
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        self._stopping.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            await asyncio.to_thread(thread.join)
            signal.signal(_LOOK, self._handled_before)

    def look(self) -> None:
        """Have it noted by whom the loop is held, when it is: what the thread does ten times a second."""
        if self._clock.monotonic() - self._due >= LONG:
            signal.pthread_kill(self._loops_thread, _LOOK)

    def _on_signal(self, _signal: int, frame: FrameType | None) -> None:
        task = asyncio.current_task(self._loop)
        name = task.get_name() if task is not None else ""
        shown = _functions(frame)
        self._seen = f"{name}: {shown}" if name and not name.startswith("Task-") else shown

    def _expect(self) -> None:
        self._due = self._clock.monotonic() + EVERY
        self._timer = self._clock.call_at(self._due, self._measure)

    def _measure(self) -> None:
        now = self._clock.monotonic()
        late = max(0.0, now - self._due)
        self.counts[bisect_left(BOUNDS, late)] += 1
        self.seconds += late
        if late >= LONG:
            self._tell(late, now)
        self._seen = ""
        self._expect()

    def _tell(self, late: float, now: float) -> None:
        left_out = self._log_rate.admits("event_loop_held", now)
        if left_out is not None:
            _log.warning("event_loop_held", seconds=round(late, 3), by=self._seen or None, left_out=left_out)

    def _run(self) -> None:
        while not self._stopping.wait(EVERY):
            self.look()


def _functions(frame: FrameType | None) -> str:
    """The innermost functions of ours, the innermost last; of others where none is ours."""
    ours: list[str] = []
    others: list[str] = []
    while frame is not None:
        code = frame.f_code
        module = str(frame.f_globals.get("__name__", ""))
        (ours if module.startswith("recado.") else others).append(f"{module}.{code.co_qualname}")
        frame = frame.f_back
    return " > ".join(reversed((ours or others)[:_SHOWN_FRAMES]))
