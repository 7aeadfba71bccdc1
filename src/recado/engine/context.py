"""What an actor may ask of its surroundings: who it is, the time, chance, timers and its own rest."""

import random
from typing import TYPE_CHECKING, Any

from recado.domain.core.clock import Clock
from recado.engine.signals import Emitter
from recado.engine.timers import Timer

if TYPE_CHECKING:
    from recado.engine.cell import Cell


class ActorContext:
    """One actor's view of the runtime, from `started()` on."""

    __slots__ = ("_cell",)

    def __init__(self, cell: "Cell") -> None:
        self._cell = cell

    @property
    def key(self) -> Any:
        """The key under which the actor was spawned."""
        return self._cell.key

    @property
    def path(self) -> str:
        """The place in the supervisor tree, `root/…/key`."""
        return self._cell.path

    @property
    def clock(self) -> Clock:
        """The injected clock."""
        return self._cell.runtime.clock

    @property
    def random(self) -> random.Random:
        """The injected randomness."""
        return self._cell.runtime.random

    @property
    def signals(self) -> Emitter:
        """Where to announce events that tests wait for."""
        return self._cell.runtime.signals

    def tell_later(self, seconds: float, message: Any) -> Timer:
        """Put `message` into the actor's own mailbox after `seconds`, past its bound if need be; cancellable."""
        return self._cell.timers.add(Timer(self._cell, seconds, message))

    def passivate(self) -> None:
        """Leave memory once the mailbox is empty. The next message to the same address brings a new incarnation."""
        self._cell.passivate()
