"""A few places, shared fairly: an owner holds only some of them at a time, and owners take turns.

An owner is an organization as a rule. Who asks for much at once waits for itself, and the others only as long as one
piece of its work takes.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from recado.domain.core.errors import Unavailable


class FairPlaces:
    """`places` in all; an owner holds at most `each` of them, and at most `most_waiting` of an owner wait.

    `limits`: owners that hold more or fewer than `each`.
    """

    def __init__(
        self, places: int, *, most_waiting: int, each: int = 1, limits: Mapping[str, int] | None = None
    ) -> None:
        self.places = places
        self._free = places
        self._each = each
        self._limits = limits or {}
        self._most_waiting = most_waiting
        self._held: dict[str, int] = {}
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns

    @property
    def taken(self) -> int:
        """How many are held."""
        return self.places - self._free

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncIterator[None]:
        """Hold a place, after waiting for it; `Unavailable` when too many of this owner wait already."""
        if not self.take(owner):
            await self.turn(owner)
        try:
            yield
        finally:
            self.leave(owner)

    def take(self, owner: str) -> bool:
        """Take a place for `leave` to give back, if that needs no waiting."""
        held = self._held.get(owner, 0)
        if not self._free or held >= self._limits.get(owner, self._each):
            return False
        # When a place is free, all who wait hold as many as they may: none of them could use it.
        self._free -= 1
        self._held[owner] = held + 1
        return True

    async def turn(self, owner: str) -> None:
        """Wait for a place, which is for `leave` to give back. A wait that is cancelled holds nothing."""
        queue = self._waiting.setdefault(owner, deque())
        if len(queue) >= self._most_waiting:
            if not queue:
                del self._waiting[owner]
            raise Unavailable("Too much of the same caller is waiting: try again shortly.", retry_after=10)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(owner, turn)
            else:  # its turn had come
                self.leave(owner)
            raise

    def leave(self, owner: str) -> None:
        """Give back a place."""
        self._free += 1
        held = self._held[owner] - 1
        if held:
            self._held[owner] = held
        else:
            del self._held[owner]
        if self._waiting:
            self._call()

    def _forget(self, owner: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(owner)
        if queue is not None and turn in queue:  # else it was passed over already
            queue.remove(turn)
            if not queue:
                del self._waiting[owner]

    def _call(self) -> None:
        """Give the free places to those whose turn it is."""
        for owner in list(self._waiting):
            if not self._free:
                return
            if self._held.get(owner, 0) < self._limits.get(owner, self._each):
                self._call_one(owner)

    def _call_one(self, owner: str) -> None:
        """Give a place to the first of this owner who still waits; the owner's next turn comes after all others'."""
        queue = self._waiting.pop(owner)
        while queue:
            turn = queue.popleft()
            if not turn.done():
                self.take(owner)
                turn.set_result(None)
                break
        if queue:
            self._waiting[owner] = queue
