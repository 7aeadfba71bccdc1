"""What an actor may ask of its surroundings: who it is, the time, chance, timers and its own rest."""

import random
from typing import Any

from recado.domain.core.clock import Clock
from recado.engine.address import ActorAddress
from recado.engine.signals import Emitter
from recado.engine.timers import Timer


class ActorContext:
    """One actor's view of the runtime, from `started()` on."""

    __slots__ = ("_address",)

    def __init__(self, address: ActorAddress) -> None:
        self._address = address

    @property
    def key(self) -> Any:
        """The key under which the actor was spawned."""
        return self._address.key

    @property
    def path(self) -> str:
        """The place in the supervisor tree, `root/…/key`."""
        return self._address.path

    @property
    def clock(self) -> Clock:
        """The injected clock."""
        return self._address.runtime.clock

    @property
    def random(self) -> random.Random:
        """The injected randomness."""
        return self._address.runtime.random

    @property
    def signals(self) -> Emitter:
        """Where to announce events that tests wait for."""
        return self._address.runtime.signals

    def tell_later(self, seconds: float, message: Any) -> Timer:
        """Put `message` into the actor's own mailbox after `seconds`, past its bound if need be; cancellable."""
        address = self._address
        return address.timers.add(address.mailbox, address.runtime.clock, seconds, message)

    def passivate(self) -> None:
        """Leave memory once the mailbox is empty. The next message to the same address brings a new incarnation."""
        self._address.passivate()
