"""What a supervisor knows of each child, and the line of the supervisor tree that operators see."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from recado.engine.failure import Failure
from recado.engine.stirring import Stirring


class State(StrEnum):
    """Where a child stands (C34.1)."""

    RUNNING = "running"
    BACKING_OFF = "backing_off"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Node:
    """One child in a snapshot of the tree (C34.1). `mailbox` and `handled` are 0 for what has no mailbox."""

    path: str
    kind: str
    key: str
    state: State
    mailbox: int
    handled: int
    restarts: int
    last_failure: Failure | None
    up_since: datetime | None


Figures = tuple[State, int, int, int, Failure | None, datetime | None]
"""Of a line of the tree, in the order of its fields: from the state on."""


class Parent(Protocol):
    """The supervisor, as its children see it. `stirring`: notes who does anything, once somebody looks."""

    stirring: Stirring | None

    @property
    def path(self) -> str:
        """Its place in the tree."""

    @property
    def closed(self) -> bool:
        """Whether its stop has begun, so that none of its children comes back."""

    def child_failed(self, child: "Child", error: BaseException) -> None:
        """Restart by the strategy after a back-off, or escalate when that happened too often."""

    def child_ended(self, child: "Child") -> None:
        """A child ended normally: what was spawned leaves the tree."""

    def readmit(self, child: "Child") -> "Child | None":
        """Bring back an actor that left memory, unless its key has another one: which is there now.

        None when the supervisor has stopped.
        """


class Child:
    """An actor, a service or a supervisor, as its supervisor sees it."""

    __slots__ = (
        "__weakref__",
        "failures_in_row",
        "key",
        "last_failure",
        "owner",
        "restarts",
        "state",
        "up_since",
        "up_since_monotonic",
    )

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.owner: Parent | None = None
        self.state = State.STOPPED
        self.restarts = 0
        self.failures_in_row = 0
        self.last_failure: Failure | None = None
        self.up_since: datetime | None = None
        self.up_since_monotonic = 0.0

    @property
    def kind(self) -> str:
        """The class that does the work."""
        raise NotImplementedError

    @property
    def spawned(self) -> bool:
        """Whether the child comes while its supervisor runs, and leaves the tree when it ends normally."""
        return False

    @property
    def name(self) -> str:
        """The key as text; the parts of one that has several, joined by colons."""
        key = self.key
        return ":".join(map(str, key)) if isinstance(key, tuple) else str(key)

    @property
    def path(self) -> str:
        """The place in the tree, from the root's name down, joined by slashes."""
        return self.name if self.owner is None else f"{self.owner.path}/{self.name}"

    async def start(self) -> None:
        """Run; raises what made the start fail, leaving nothing running. Does nothing when running."""
        raise NotImplementedError

    async def halt(self) -> None:
        """Stop running but stay ready for another `start`; an actor keeps its mailbox."""
        raise NotImplementedError

    async def stop(self) -> None:
        """End, handling first what an actor was told before; safe to call twice."""
        raise NotImplementedError

    def mark_up(self, at: datetime, monotonic: float) -> None:
        """Note that the child runs."""
        self.state = State.RUNNING
        self.up_since = at
        self.up_since_monotonic = monotonic
        self.stir()

    def mark_down(self, state: State) -> None:
        """Note that the child does not run."""
        self.state = state
        self.up_since = None
        self.stir()

    def stir(self) -> None:
        """Note that it does something."""
        owner = self.owner
        if owner is not None and owner.stirring is not None:
            owner.stirring.note(self.key)

    def family(self) -> "Iterator[Child]":
        """This child and all below it, parents first."""
        yield self

    def figures(self) -> Figures:
        """What may change of the child's line in the tree."""
        return self.state, 0, 0, self.restarts, self.last_failure, self.up_since

    def node(self) -> Node:
        """The child's line in the tree."""
        return Node(self.path, self.kind, self.name, *self.figures())
