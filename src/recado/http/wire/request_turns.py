"""How many requests go on in one turn of the event loop, while several parties ask (C31).

Everything waits for the turn that is under way. Who asks on hundreds of connections at once would make it as long as
all of those requests take; so a turn takes some requests, of all parties in turns. Who is alone keeps nobody waiting:
long turns cost less.

Requests meet this twice. First by network, when they begin: what a stranger gets for an answer costs little. Then by
organization, when their credential is known and before their body is read, since that may cost milliseconds: one
organization that asks from hundreds of addresses is one party.
"""

import asyncio
from collections import deque
from typing import Final

from recado.domain.core.solitude import ALONE_AFTER

OF_NETWORKS: Final = 48
OF_ORGANIZATIONS: Final = 8


class RequestTurns:
    """Counts the requests of the present turn. `most`: of all parties together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: str | None = None  # the party of the last request
        self._changed = False  # since the last look
        self._several = False  # parties ask
        self._begun = 0  # in this turn
        self._counting = False  # `_next` comes behind this turn
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # in the order of their turns

    def wait(self, party: str) -> "asyncio.Future[None] | None":
        """What a request has to wait for before it goes on; None: it does so now."""
        if party != self._last:
            self._changed = self._last is not None
            self._last = party
            if self._changed and not self._several:
                self._several = True
                asyncio.get_running_loop().call_later(ALONE_AFTER, self._look)
        if not self._several:
            return None
        if not self._counting:
            self._counting = True
            asyncio.get_running_loop().call_soon(self._next)
        self._begun += 1
        if self._begun <= self._most:
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party, deque()).append(turn)
        return turn

    def _look(self) -> None:
        """Whether several still ask. One alone mostly has requests in its line, which need not wait any more."""
        self._several, self._changed = self._changed or len(self._waiting) > 1, False
        if self._several:
            asyncio.get_running_loop().call_later(ALONE_AFTER, self._look)
            return
        for line in self._waiting.values():
            for turn in line:
                if not turn.done():
                    turn.set_result(None)
        self._waiting.clear()

    def _next(self) -> None:
        """Another turn: those who wait come before newcomers, one of each party and then the next one of each."""
        self._begun = 0
        while self._waiting and self._begun < self._most:
            party = next(iter(self._waiting))
            line = self._waiting.pop(party)
            while line:
                turn = line.popleft()
                if not turn.done():  # else its connection has ended
                    turn.set_result(None)
                    self._begun += 1
                    break
            if line:
                self._waiting[party] = line
        self._counting = self._begun > 0
        if self._counting:
            asyncio.get_running_loop().call_soon(self._next)
