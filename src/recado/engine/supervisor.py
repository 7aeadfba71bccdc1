"""Parents of actors, services and other supervisors: they restart what fails, and escalate when that does not help.

A restart keeps the child's address and mailbox. Each restart counts; more than `intensity` within `period` seconds and
the supervisor halts all its children and fails itself, to be restarted by its parent. The root's `failed` future tells
the program.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator
from itertools import islice
from typing import Final, TypeVar

from recado.engine.actor import Actor
from recado.engine.actor_cell import ActorCell
from recado.engine.backoff import Backoff
from recado.engine.child import Child, Node, State
from recado.engine.errors import ActorDeadError
from recado.engine.failure import CrashHook, Failure
from recado.engine.recovery import Recovery, end_child, note_failure
from recado.engine.ref import ActorRef
from recado.engine.runtime import Runtime
from recado.engine.service import Service, ServiceChild
from recado.engine.stirring import Stirring
from recado.engine.strategy import Intensity, Strategy

_log = logging.getLogger(__name__)

A = TypeVar("A", bound=Actor)


__all__ = ["Strategy", "Supervisor"]

DEFAULT_BACKOFF: Final = Backoff()
_COLONS: Final = (1, 2, 3)  # between the parts of a tuple that is a key


class Supervisor(Child):
    """A service itself: `start` starts the children in order, `stop` stops them in reverse.

    `intensity` restarts within `period` seconds are borne, over all children. `grace` is the time in seconds that an
    actor gets to finish at a stop before its work is cancelled. `admitted`: how many children came so far.
    """

    __slots__ = ("_children", "_closed", "_failed", "_grace", "_noted", "_recovery", "_runtime", "admitted", "stirring")

    def __init__(
        self,
        name: str,
        strategy: Strategy = Strategy.ONE_FOR_ONE,
        *,
        runtime: Runtime,
        intensity: int = 10,
        period: float = 60.0,
        backoff: Backoff = DEFAULT_BACKOFF,
        grace: float = 20.0,
    ) -> None:
        super().__init__(name)
        self._runtime = runtime
        self._grace = grace
        self._closed = False
        self.admitted = 0
        self.stirring: Stirring | None = None
        self._noted = Stirring()
        self._children: dict[Hashable, Child] = {}
        self._recovery = Recovery(self, runtime, strategy, Intensity(intensity, period), backoff)
        self._failed: asyncio.Future[Failure] | None = None

    @property
    def kind(self) -> str:
        return type(self).__name__

    @property
    def runtime(self) -> Runtime:
        """The clock, randomness and signals that all children share."""
        return self._runtime

    @property
    def failed(self) -> "asyncio.Future[Failure]":
        """Resolves when this supervisor gave up and has no parent: the program should exit, non-zero."""
        if self._failed is None:
            self._failed = asyncio.get_running_loop().create_future()
        return self._failed

    # --- children -------------------------------------------------------------------------------------------------

    def add_supervisor(self, supervisor: "Supervisor") -> "Supervisor":
        """Add a supervisor below this one, before the start."""
        self._admit(supervisor)
        return supervisor

    def add_service(self, name: str, service: Service) -> None:
        """Add a service, before the start."""
        self._admit(ServiceChild(name, service, self._runtime))

    @property
    def closed(self) -> bool:
        """Whether its stop has begun, so that none of its children comes back."""
        return self._closed

    def spawn(
        self,
        key: Hashable,
        make: Callable[[], A],
        *,
        mailbox_limit: int | None = None,
        on_crash: CrashHook | None = None,
    ) -> ActorRef[A]:
        """Add an actor at any time; it leaves the tree when it stops or passivates. `make` makes each incarnation.

        Before the start its messages wait. Raises ActorDeadError once the supervisor has stopped, ValueError for a key
        in use, and whatever `make` raises.
        """
        if self._closed:
            raise ActorDeadError(f"{self.path} has stopped")
        if key in self._children:
            raise ValueError(f"{self.path} has a child {key} already")
        cell = ActorCell(key, make, self._runtime, mailbox_limit=mailbox_limit, on_crash=on_crash, grace=self._grace)
        self._admit(cell)
        if self.state is State.RUNNING:
            cell.launch()
        return cell.ref

    def find(self, key: Hashable) -> Child | None:
        """The child of that key, if it is in the tree."""
        return self._children.get(key)

    def children(self) -> list[Child]:
        """The children in the order they were added."""
        return list(self._children.values())

    def admitted_since(self, admitted: int) -> list[Child]:
        """The children that came since the count was this, of those that are in the tree; maybe others beside them."""
        return list(islice(reversed(self._children.values()), self.admitted - admitted))

    def notes(self) -> Stirring:
        """From now on the supervisor notes which children do anything."""
        self.stirring = self._noted
        return self._noted

    def notes_no_more(self) -> None:
        """Nobody asks."""
        if self.stirring is not None:
            self.stirring = None
            self._noted.forget()

    def runs(self, child: Child) -> bool:
        """Whether this supervisor runs and the child is in its tree."""
        return self.state is State.RUNNING and self._children.get(child.key) is child

    def tree(self) -> list[Node]:
        """A snapshot of this supervisor and everything below it, parents first (C34.1)."""
        return [child.node() for child in self.family()]

    def family(self) -> Iterator[Child]:
        yield self
        for child in self.children():
            yield from child.family()

    def _admit(self, child: Child) -> None:
        if self.state is State.RUNNING and not child.spawned:
            raise RuntimeError(f"add {child.key} before {self.path} starts")
        if child.key in self._children:
            raise ValueError(f"{self.path} has a child {child.key} already")
        child.owner = self
        self._children[child.key] = child
        self.admitted += 1

    # --- start and stop -------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the children in order. When one fails to start, those started are halted and its error is raised."""
        if self.state is State.RUNNING:
            return
        self._closed = False
        self._recovery.forgive()
        clock = self._runtime.clock
        # Up already while the children start, since those may spawn others.
        self.mark_up(clock.now(), clock.monotonic())
        try:
            async with self._recovery.group_lock:
                for child in self.children():
                    await child.start()
        except BaseException:
            self.mark_down(State.BACKING_OFF)
            await self._cease(lambda child: child.halt)
            raise

    async def halt(self) -> None:
        """Halt all children in reverse; actors keep their addresses and mailboxes."""
        self.mark_down(State.BACKING_OFF)
        await self._cease(lambda child: child.halt)

    async def stop(self) -> None:
        """Stop all children: actors together, then the rest in reverse. What was told before is handled."""
        self._closed = True
        self.mark_down(State.STOPPED)
        await self._cease(lambda child: child.stop)

    async def _cease(self, end: Callable[[Child], Callable[[], Awaitable[None]]]) -> None:
        await self._recovery.cancel()
        children = self.children()
        await asyncio.gather(*(end_child(child, end(child), self._runtime) for child in children if child.spawned))
        for child in reversed(children):
            if not child.spawned:
                await end_child(child, end(child), self._runtime)

    # --- failures -------------------------------------------------------------------------------------------------

    def child_failed(self, child: Child, error: BaseException) -> None:
        """Restart by the strategy after a back-off, or escalate when that happened too often."""
        running = self.state is State.RUNNING
        if running or not isinstance(error, asyncio.CancelledError):  # else what it had in hand was cut by the halt
            note_failure(child, error, self._runtime)
        child.mark_down(State.BACKING_OFF)
        if not running:
            self.left_halted(child)
            return
        if not self._recovery.begin(child):
            self.mark_down(State.BACKING_OFF)
            self._recovery.do(self._give_up(error), self)

    def left_halted(self, child: Child) -> None:
        """A child was halted that is not started again here: at a stop it would wait for ever to obey that."""
        if self._closed and isinstance(child, ActorCell):
            child.end()

    def child_ended(self, child: Child) -> None:
        """A child ended normally: what was spawned leaves the tree."""
        if child.spawned and self._children.get(child.key) is child:
            del self._children[child.key]

    def readmit(self, child: Child) -> Child | None:
        """Bring back an actor that left memory, unless its key has another one: which is there now."""
        if self._closed:
            return None
        present = self._children.get(child.key)
        if present is not None:
            return present
        if isinstance(child, ActorCell):
            if self.state is State.RUNNING:
                child.launch()
            else:
                child.reopen()
        self._children[child.key] = child
        self.admitted += 1
        return child

    async def restart(self, path: str) -> None:
        """Restart the child at `path` now, on an operator's order; LookupError when there is none below this one."""
        parent = self.parent_of(path)
        child = None if parent is None else parent.named(path)
        if parent is None or child is None:
            raise LookupError(f"nothing at {path}")
        await parent.restart_child(child)

    async def restart_child(self, child: Child) -> None:
        """As `restart`, of a child of this one."""
        await self._recovery.at_once(child)

    def parent_of(self, path: str) -> "Supervisor | None":
        """The supervisor below which `path` would be a child: this one, or one below it."""
        if not path.startswith(self.path + "/"):
            return None
        name, below, _ = path.removeprefix(self.path + "/").partition("/")
        child = self._children.get(name) if below else None
        return child.parent_of(path) if isinstance(child, Supervisor) else self

    def named(self, path: str) -> Child | None:
        """The child at that path, if it is one of this supervisor whose key is a text or a tuple of texts.

        It is looked up and not looked for, since there may be tens of thousands: only the last part of a tuple, which
        has two to four, may hold a colon.
        """
        name = path.removeprefix(self.path + "/")
        for key in (name, *(tuple(name.split(":", colons)) for colons in _COLONS)):
            child = self._children.get(key)
            if child is not None and child.name == name:
                return child
        return None

    async def _give_up(self, error: BaseException) -> None:
        """Halt everything and escalate to the parent; the root resolves `failed`."""
        _log.error("supervisor gave up: %s", self.path)
        await self._cease(lambda child: child.halt)
        self._runtime.signals.emit("supervisor.gave_up", self.path)
        if self.owner is not None:
            self.owner.child_failed(self, error)
            return
        failure = note_failure(self, error, self._runtime)
        self.mark_down(State.STOPPED)
        if not self.failed.done():
            self.failed.set_result(failure)
