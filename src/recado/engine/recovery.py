"""What a supervisor does about failures: back off and restart, or give up when that happens too often."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any, Protocol

from recado.engine.backoff import Backoff
from recado.engine.child import Child, Parent
from recado.engine.failure import Failure
from recado.engine.runtime import Runtime
from recado.engine.strategy import Intensity, Strategy, affected

_log = logging.getLogger(__name__)


class RestartingParent(Parent, Protocol):
    """The supervisor, as the recovery of its children sees it."""

    def children(self) -> list[Child]:
        """The children in the order they were added."""

    def runs(self, child: Child) -> bool:
        """Whether the supervisor runs and the child is in its tree, so that it is to be started again."""

    def left_halted(self, child: Child) -> None:
        """A child was halted that is not started again here."""


class Recovery:
    """The restarts of one supervisor's children: one task for each child that is backing off."""

    __slots__ = ("_backoff", "_by_child", "_intensity", "_parent", "_runtime", "_strategy", "_work", "group_lock")

    def __init__(
        self, parent: RestartingParent, runtime: Runtime, strategy: Strategy, intensity: Intensity, backoff: Backoff
    ) -> None:
        self._parent = parent
        self._runtime = runtime
        self._strategy = strategy
        self._intensity = intensity
        self._backoff = backoff
        self._by_child: dict[Child, asyncio.Task[None]] = {}
        self._work: dict[asyncio.Task[None], Child] = {}
        # Held while children of a group start or restart together, so that two such movements do not mix.
        self.group_lock = asyncio.Lock()

    def begin(self, child: Child) -> bool:
        """Restart after a back-off; False when that happened too often, and the supervisor has to give up."""
        now = self._runtime.clock.monotonic()
        if self._intensity.exceeded_by(now):
            return False
        steady = now - child.up_since_monotonic >= self._intensity.period
        child.failures_in_row = 1 if steady else child.failures_in_row + 1
        self._by_child[child] = self.do(self._recover(child, child.restarts), child)
        return True

    async def at_once(self, child: Child) -> None:
        """Restart this child alone; one that backs off by itself is not waited for, a group's restart is."""
        restarts = child.restarts
        async with self.group_lock:
            if child.restarts != restarts or not self._parent.runs(child):
                return
            waiting = self._by_child.pop(child, None)
            if waiting is not None:
                waiting.cancel()
            await end_child(child, child.halt, self._runtime)
            child.failures_in_row = 0
            await self._start_again(child)

    def forgive(self) -> None:
        """Begin the count of restarts again."""
        self._intensity.forgive()

    def do(self, work: Coroutine[Any, Any, None], child: Child) -> "asyncio.Task[None]":
        """Work about a child, or the supervisor itself, that `cancel` calls off."""
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._work[task] = child
        task.add_done_callback(self._done)
        return task

    async def cancel(self) -> None:
        """Call off all work under way, except where the caller is part of it."""
        current = asyncio.current_task()
        work = [task for task in self._work if task is not current]
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def _recover(self, child: Child, restarts: int) -> None:
        if self._strategy is Strategy.ONE_FOR_ONE:
            await self._wait_and_restart(child, (child,))
            return
        async with self.group_lock:
            # A group restart that was under way when this child failed has restarted it as well.
            if child.restarts == restarts:
                await self._wait_and_restart(child, affected(self._strategy, self._parent.children(), child))

    async def _wait_and_restart(self, failed: Child, group: Sequence[Child]) -> None:
        # The failed one too: a broken service may still hold what its next start needs.
        for child in reversed(group):
            await end_child(child, child.halt, self._runtime)
        pause = self._backoff.delay(failed.failures_in_row, self._runtime.random)
        await self._runtime.clock.sleep(pause)
        for child in group:
            if not await self._start_again(child):
                return

    async def _start_again(self, child: Child) -> bool:
        if not self._parent.runs(child):
            self._parent.left_halted(child)
            return True  # it left meanwhile, or its supervisor's own start will bring it back
        child.restarts += 1
        self._runtime.restarts[child.kind] += 1
        child.up_since_monotonic = self._runtime.clock.monotonic()
        try:
            await child.start()
        except Exception as error:  # noqa: BLE001 - a failed start is a failure like any other
            self._parent.child_failed(child, error)
            return False
        self._runtime.signals.emit("child.restarted", child.path)
        return True

    def _done(self, task: "asyncio.Task[None]") -> None:
        child = self._work.pop(task)
        if self._by_child.get(child) is task:
            del self._by_child[child]


async def end_child(child: Child, end: Callable[[], Awaitable[None]], runtime: Runtime) -> None:
    """Halt or stop one child; an error is noted and does not keep the others from ending."""
    try:
        await end()
    except Exception as error:  # noqa: BLE001 - the other children must end all the same
        note_failure(child, error, runtime)


def note_failure(child: Child, error: BaseException, runtime: Runtime) -> Failure:
    """Make a failure visible: as the child's last one, in the log and as a signal; without the error's text."""
    failure = Failure.of(error, runtime.clock.now())
    child.last_failure = failure
    _log.warning("child failed: %s (%s in %s)", child.path, failure.type, failure.where)
    runtime.signals.emit("child.failed", child.path)
    return failure
