"""How many requests of one network begin in one turn of the event loop, while others ask too (C31).

Everything waits for the turn that is under way. Who asks on hundreds of connections at once would make it as long as
all of those requests take; so the turn takes some of them, and others' come in between. Who is alone keeps nobody
waiting: long turns cost less.
"""

import asyncio
from collections import deque
from typing import Final

MOST: Final = 32
ALONE_AFTER: Final = 1.0  # seconds without a request of another network


class RequestTurns:
    """Counts the requests of the present turn, by network."""

    def __init__(self, loop: asyncio.AbstractEventLoop, most: int = MOST) -> None:
        self._loop = loop
        self._most = most
        self._last: str | None = None  # the network of the last request
        self._changed = False  # since the last look
        self._several = False  # networks ask
        self._begun: dict[str, int] = {}  # in this turn
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    def wait(self, network: str) -> "asyncio.Future[None] | None":
        """What a request has to wait for before it begins; None: it begins now."""
        if network != self._last:
            self._changed = self._last is not None
            self._last = network
            if self._changed and not self._several:
                self._several = True
                self._loop.call_later(ALONE_AFTER, self._look)
        if not self._several:
            return None
        begun = self._begun
        if not begun:
            self._loop.call_soon(self._next)
        count = begun[network] = begun.get(network, 0) + 1
        if count <= self._most:
            return None
        turn = self._loop.create_future()
        self._waiting.setdefault(network, deque()).append(turn)
        return turn

    def _look(self) -> None:
        """Whether several still ask."""
        self._several, self._changed = self._changed or bool(self._waiting), False
        if self._several:
            self._loop.call_later(ALONE_AFTER, self._look)

    def _next(self) -> None:
        """Another turn: those who wait come before newcomers."""
        self._begun.clear()
        for network, line in list(self._waiting.items()):
            begun = 0
            while line and begun < self._most:
                turn = line.popleft()
                if not turn.done():  # else its connection has ended
                    turn.set_result(None)
                    begun += 1
            self._begun[network] = begun
            if not line:
                del self._waiting[network]
        if self._begun:
            self._loop.call_soon(self._next)
