"""What an actor sets going beside its messages: one alarm to wake it, and small tasks that must not hold it up."""

import asyncio
import math
from collections.abc import Coroutine
from datetime import datetime
from functools import partial
from typing import Any

import structlog

from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.dispatch.gates import FOREVER
from recado.engine.errors import ActorDeadError, MailboxFull
from recado.engine.ref import ActorRef

log = structlog.get_logger()

LONGEST_NAP = 60.0  # seconds
FULL_MAILBOX_PAUSE = 0.05  # seconds


class ActorTasks:
    """The alarm and the tasks of one incarnation of an actor. `wake`: the message that the alarm tells it."""

    __slots__ = ("_alarm", "_alarm_at", "_clock", "_name", "_ref", "_tasks", "_wake")

    def __init__(self, ref: ActorRef[Any], wake: object, *, clock: Clock, name: str) -> None:
        self._ref = ref
        self._wake = wake
        self._clock = clock
        self._name = name
        self._tasks: set[asyncio.Task[None]] | None = None  # while there are any
        self._alarm: TimerHandle | None = None
        self._alarm_at = math.inf

    @property
    def idle(self) -> bool:
        """No task runs and no alarm is set."""
        return not self._tasks and self._alarm is None

    def wake_at(self, at: datetime) -> None:
        """Wake the actor at a moment; `FOREVER`: not at all."""
        if at is not FOREVER:
            self.wake_in((at - self._clock.now()).total_seconds())

    def wake_in(self, seconds: float) -> None:
        """Wake the actor after so many seconds, or earlier when it is to be woken earlier already; at most a minute."""
        at = self._clock.monotonic() + min(max(seconds, 0.0), LONGEST_NAP)
        if at < self._alarm_at:
            self.quiet()
            self._alarm_at = at
            self._alarm = self._clock.call_at(at, self._ring)

    def wake(self) -> None:
        """Wake the actor now."""
        self.tell(self._wake)

    def quiet(self) -> None:
        """Call the alarm off."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm, self._alarm_at = None, math.inf

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Let a task run beside the actor. A failure is logged; what it left undone is found by the poller."""
        task = asyncio.get_running_loop().create_task(work)
        if self._tasks is None:
            self._tasks = set()
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def tell(self, message: object) -> None:
        """What the actor owes itself: a full mailbox is asked again until it has room."""
        try:
            self._ref.tell(message)
        except MailboxFull:
            self._clock.call_at(self._clock.monotonic() + FULL_MAILBOX_PAUSE, partial(self.tell, message))
        except ActorDeadError:
            log.debug("actor_ended_before", actor=self._name, told=type(message).__name__)

    def _ring(self) -> None:
        self._alarm, self._alarm_at = None, math.inf
        self.wake()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if self._tasks is not None:
            self._tasks.discard(task)
            self._tasks = self._tasks or None
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("errand_failed", actor=self._name, error=type(error).__name__)
