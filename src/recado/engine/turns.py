"""The turns of long work on the event loop: one step at a time, and a rest after each while anybody is served (C31).

What takes thousands of rows waits for nothing. A request beside it would wait for a step at each of its own turns, and
for a step of everyone who does such work. So they stand in one line, and give way to requests.
"""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, TypeVar

from recado.domain.core.clock import Clock, TimerHandle
from recado.engine.clock import SystemClock

REST: Final = 4.0
"""Times the length of a step: while others are served, all long work together has a fifth of the loop's time."""

SOON: Final = 0.1
"""Seconds. Who is served for longer waits for something else than the loop: a place, a lock, another process."""

T = TypeVar("T")
Task = asyncio.Task[Any]


class _Line(threading.local):
    """The line in one event loop, that of this thread: tests have a whole service in a thread beside their own."""

    def __init__(self) -> None:
        self.begin(None)

    def begin(self, loop: asyncio.AbstractEventLoop | None) -> None:
        """Nobody stands in it."""
        self.loop = loop
        self.waiting: deque[asyncio.Future[None] | Callable[[], None]] = deque()
        self.look_due: TimerHandle | None = None  # until nobody stands in it, and the last step is made
        self.resting = False
        self.step_began: float | None = None
        self.rests_until = float("-inf")


class Turns:
    """The line of long work, and who is served meanwhile."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._line = _Line()
        self._served: dict[Task, float] = {}  # since when, in that order

    @property
    def served(self) -> int:
        """For how many long work rests."""
        return len(self._served)

    def begin(self, task: Task, now: float) -> None:
        """The task serves somebody who waits, from `now` (monotonic seconds) on; once it asks for a turn, it is long
        work itself.
        """
        self._served[task] = now

    def end(self, task: Task) -> None:
        """It does so no more; safe to call twice."""
        self._served.pop(task, None)
        if not self._served and self._line.resting:
            self._look_soon()

    async def next(self) -> None:
        """Wait for the turn to make one step, which should take a millisecond or two."""
        self._follow(asyncio.get_running_loop())
        task = asyncio.current_task()
        if task is not None:
            self.end(task)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._join(turn)
        await turn

    def ask(self, step: Callable[[], None]) -> None:
        """Have `step` called at its turn: a millisecond or two, with the first steps of the tasks that it begins.

        That is at once when nobody is served and nobody else wants a turn. It may ask again for a further one.
        """
        self._follow(asyncio.get_running_loop())
        line = self._line
        if self._served or line.waiting or line.look_due is not None or line.step_began is not None:
            self._join(step)
        else:
            self._give(step, self._clock.monotonic())

    def _join(self, who: asyncio.Future[None] | Callable[[], None]) -> None:
        self._line.waiting.append(who)
        if self._line.look_due is None:
            self._look_soon()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin anew on another loop: the one before is closed, and nobody in its line comes back."""
        former = self._line.loop
        if loop is former:
            return
        self._line.begin(loop)
        if former is not None:
            self._served.clear()

    def _look_soon(self) -> None:
        line = self._line
        if line.look_due is not None:
            line.look_due.cancel()
        line.resting = False
        line.look_due = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Give the next turn, unless those who are served come first. The step that was given before is made by now."""
        line = self._line
        line.look_due, line.resting = None, False
        now = self._clock.monotonic()
        if line.step_began is not None:
            line.rests_until = now + REST * (now - line.step_began)
            line.step_began = None
        while self._served and now - next(iter(self._served.values())) > SOON:
            del self._served[next(iter(self._served))]
        while line.waiting and isinstance(first := line.waiting[0], asyncio.Future) and first.done():
            line.waiting.popleft()  # nobody wants it any more
        if not line.waiting:
            return
        if self._served and now < line.rests_until:
            line.resting = True
            line.look_due = self._clock.call_at(line.rests_until, self._look)
            return
        self._give(line.waiting.popleft(), now)

    def _give(self, turn: asyncio.Future[None] | Callable[[], None], now: float) -> None:
        self._line.step_began = now
        try:
            if isinstance(turn, asyncio.Future):
                turn.set_result(None)
            else:
                turn()
        finally:
            self._look_soon()  # behind the step, which the loop has in its line already


turns: Final = Turns(SystemClock())
"""Of the program's one event loop."""


async def in_pieces(items: Sequence[T], most: int) -> AsyncIterator[Sequence[T]]:
    """The items, `most` at a time, each piece in a turn of its own."""
    for start in range(0, len(items), most):
        await turns.next()
        yield items[start : start + most]
