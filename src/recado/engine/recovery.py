"""What a supervisor does about failures: back off and restart, or give up when that happens too often."""

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any

from recado.engine.backoff import Backoff
from recado.engine.child import Child, State
from recado.engine.failure import Failure
from recado.engine.strategy import Intensity, Strategy, affected

if TYPE_CHECKING:
    from recado.engine.supervisor import Supervisor

_log = logging.getLogger(__name__)


class Recovery:
    """The restarts of one supervisor's children: one task for each child that is backing off."""

    __slots__ = ("_backoff", "_by_child", "_intensity", "_strategy", "_supervisor", "_work", "group_lock")

    def __init__(self, supervisor: "Supervisor", strategy: Strategy, intensity: Intensity, backoff: Backoff) -> None:
        self._supervisor = supervisor
        self._strategy = strategy
        self._intensity = intensity
        self._backoff = backoff
        self._by_child: dict[Child, asyncio.Task[None]] = {}
        self._work: dict[asyncio.Task[None], Child] = {}
        # Held while children of a group start or restart together, so that two such movements do not mix.
        self.group_lock = asyncio.Lock()

    def begin(self, child: Child, error: BaseException) -> None:
        """Restart after a back-off, or have the supervisor give up."""
        now = self._supervisor.runtime.clock.monotonic()
        if self._intensity.exceeded_by(now):
            self._supervisor.mark_down(State.BACKING_OFF)
            self._do(self._supervisor.give_up(error), self._supervisor)
            return
        steady = now - child.up_since_monotonic >= self._intensity.period
        child.failures_in_row = 1 if steady else child.failures_in_row + 1
        self._by_child[child] = self._do(self._recover(child, child.restarts), child)

    async def at_once(self, child: Child) -> None:
        """Restart this child alone; one that backs off by itself is not waited for, a group's restart is."""
        restarts = child.restarts
        async with self.group_lock:
            if child.restarts != restarts:
                return
            waiting = self._by_child.pop(child, None)
            if waiting is not None:
                waiting.cancel()
            await child.halt()
            child.failures_in_row = 0
            await self._start_again(child)

    def forgive(self) -> None:
        """Begin the count of restarts again."""
        self._intensity.forgive()

    async def cancel(self) -> None:
        """Call off every restart under way, except where the caller is one."""
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
                await self._wait_and_restart(child, affected(self._strategy, self._supervisor.children(), child))

    async def _wait_and_restart(self, failed: Child, group: Sequence[Child]) -> None:
        # The failed one too: a broken service may still hold what its next start needs.
        for child in reversed(group):
            await self._supervisor.end_child(child, child.halt)
        runtime = self._supervisor.runtime
        await runtime.clock.sleep(self._backoff.delay(failed.failures_in_row, runtime.random))
        for child in group:
            if not await self._start_again(child):
                return

    async def _start_again(self, child: Child) -> bool:
        if self._supervisor.state is not State.RUNNING or self._supervisor.find(child.key) is not child:
            return True  # it left meanwhile, or its supervisor's own start will bring it back
        runtime = self._supervisor.runtime
        child.restarts += 1
        child.up_since_monotonic = runtime.clock.monotonic()
        try:
            await child.start()
        except Exception as error:  # noqa: BLE001 - a failed start is a failure like any other
            self._supervisor.child_failed(child, error)
            return False
        runtime.signals.emit("child.restarted", child.path)
        return True

    def _do(self, work: Coroutine[Any, Any, None], child: Child) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work, context=Context())
        self._work[task] = child
        task.add_done_callback(self._done)
        return task

    def _done(self, task: "asyncio.Task[None]") -> None:
        child = self._work.pop(task)
        if self._by_child.get(child) is task:
            del self._by_child[child]


def note_failure(child: Child, error: BaseException, supervisor: "Supervisor") -> Failure:
    """Make a failure visible: as the child's last one, in the log and as a signal; without the error's text."""
    failure = Failure.of(error, supervisor.runtime.clock.now())
    child.last_failure = failure
    _log.warning("child failed: %s (%s in %s)", child.path, failure.type, failure.where)
    supervisor.runtime.signals.emit("child.failed", child.path)
    return failure
