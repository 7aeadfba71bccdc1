"""The turns of long work on the event loop: one step at a time, and a rest after each while anybody is served (C31).

What takes thousands of rows waits for nothing. A request beside it would wait for a step at each of its own turns, and
for a step of everyone who does such work. So they stand in one line, and give way to requests.
"""

import asyncio
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


class Turns:
    """The line of long work, and who is served meanwhile."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._loop: asyncio.AbstractEventLoop | None = None
        self._served: dict[Task, float] = {}  # since when, in that order
        self._line: deque[asyncio.Future[None] | Callable[[], None]] = deque()
        self._look_due: TimerHandle | None = None  # until nobody stands in the line, and the last step is made
        self._resting = False
        self._step_began: float | None = None
        self._rests_until = float("-inf")

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
        if self._resting and not self._served:
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
        if self._served or self._line or self._look_due is not None or self._step_began is not None:
            self._join(step)
        else:
            self._give(step, self._clock.monotonic())

    def _join(self, who: asyncio.Future[None] | Callable[[], None]) -> None:
        self._line.append(who)
        if self._look_due is None:
            self._look_soon()

    def _follow(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin anew on another loop: the one before is closed, and nobody in its line comes back."""
        if loop is self._loop:
            return
        if self._loop is not None:
            self._look_due, self._resting, self._step_began = None, False, None
            self._line.clear()
            self._served.clear()
        self._loop = loop

    def _look_soon(self) -> None:
        if self._look_due is not None:
            self._look_due.cancel()
        self._resting = False
        self._look_due = asyncio.get_running_loop().call_soon(self._look)

    def _look(self) -> None:
        """Give the next turn, unless those who are served come first. The step that was given before is made by now."""
        self._look_due, self._resting = None, False
        now = self._clock.monotonic()
        if self._step_began is not None:
            self._rests_until = now + REST * (now - self._step_began)
            self._step_began = None
        while self._served and now - next(iter(self._served.values())) > SOON:
            del self._served[next(iter(self._served))]
        while self._line and isinstance(first := self._line[0], asyncio.Future) and first.done():
            self._line.popleft()  # nobody wants it any more
        if not self._line:
            return
        if self._served and now < self._rests_until:
            self._resting = True
            self._look_due = self._clock.call_at(self._rests_until, self._look)
            return
        self._give(self._line.popleft(), now)

    def _give(self, turn: asyncio.Future[None] | Callable[[], None], now: float) -> None:
        self._step_began = now
        try:
            if isinstance(turn, asyncio.Future):
                turn.set_result(None)
            else:
                turn()
        finally:
            self._look_soon()  # behind the step, which the loop has in its line already


turns: Final = Turns(SystemClock())
"""Of the one event loop."""


async def in_pieces(items: Sequence[T], most: int) -> AsyncIterator[Sequence[T]]:
    """The items, `most` at a time, each piece in a turn of its own."""
    for start in range(0, len(items), most):
        await turns.next()
        yield items[start : start + most]
