"""A few places for long work, shared fairly: an organization takes one at a time, and organizations take turns.

So whoever asks for much at once keeps himself waiting, and the others only as long as one piece of his work takes.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recado.domain.errors import Unavailable


class FairPlaces:
    """`places` in all; of each organization (`owner`) at most `most_waiting` wait."""

    def __init__(self, places: int, *, most_waiting: int) -> None:
        self._free = places
        self._most_waiting = most_waiting
        self._inside: set[str] = set()
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns

    @asynccontextmanager
    async def place(self, owner: str) -> AsyncIterator[None]:
        """Hold a place, after waiting for it; `Unavailable` when too many of this owner wait already."""
        await self._enter(owner)
        try:
            yield
        finally:
            self._leave(owner)

    async def _enter(self, owner: str) -> None:
        if self._free and owner not in self._inside:  # whoever else waits cannot use it
            self._take(owner)
            return
        queue = self._waiting.setdefault(owner, deque())
        if len(queue) >= self._most_waiting:
            raise Unavailable("Too much of this organization waits already; try again shortly.", retry_after=10)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._forget(owner, turn)
            else:  # its turn had come
                self._leave(owner)
            raise

    def _forget(self, owner: str, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(owner)
        if queue is not None and turn in queue:  # else it was passed over already
            queue.remove(turn)
            if not queue:
                del self._waiting[owner]

    def _take(self, owner: str) -> None:
        self._free -= 1
        self._inside.add(owner)

    def _leave(self, owner: str) -> None:
        self._free += 1
        self._inside.remove(owner)
        for other in list(self._waiting):
            if self._free and other not in self._inside:
                self._call(other)

    def _call(self, owner: str) -> None:
        """Give a place to the first of this owner who still waits; the owner's next turn comes after all others'."""
        queue = self._waiting.pop(owner)
        while queue:
            turn = queue.popleft()
            if not turn.done():
                self._take(owner)
                turn.set_result(None)
                break
        if queue:
            self._waiting[owner] = queue
