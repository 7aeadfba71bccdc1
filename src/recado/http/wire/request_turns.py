"""How many requests go on in one turn of the event loop, while several parties ask (C31).

Everything waits for the turn that is under way. Who asks on hundreds of connections at once would make it as long as
all of those requests take; so a turn takes some requests, of all parties in turns. Who is alone keeps nobody waiting:
long turns cost less.

Requests meet this twice. First by network, when they begin: what a stranger gets for an answer costs little. Then by
organization, when their credential is known and before their body is read, since that may cost milliseconds: one
organization that asks from hundreds of addresses is one party. There, who has shown no credential is one party for each
network; with hundreds of them organizations would come last, so each kind has every second turn while both wait.
"""

import asyncio
from collections import deque
from itertools import cycle
from typing import Final

from recado.domain.core.solitude import ALONE_AFTER
from recado.storage.core.callers import STRANGER

OF_NETWORKS: Final = 48
OF_ORGANIZATIONS: Final = 8

_Lines = dict[str, deque[asyncio.Future[None]]]
"""Who waits, by party, in the order of their turns."""


class RequestTurns:
    """Counts the requests of the present turn. `most`: of all parties together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: str | None = None  # the party of the last request
        self._changed = False  # since the last look
        self._several = False  # parties ask
        self._begun = 0  # in this turn
        self._counting = False  # `_next` comes behind this turn
        self._organizations: _Lines = {}
        self._strangers: _Lines = {}

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
        lines = self._strangers if party.startswith(STRANGER) else self._organizations
        lines.setdefault(party, deque()).append(turn)
        return turn

    def _look(self) -> None:
        """Whether several still ask. One alone mostly has requests in its line, which need not wait any more."""
        parties = len(self._organizations) + len(self._strangers)
        self._several, self._changed = self._changed or parties > 1, False
        if self._several:
            asyncio.get_running_loop().call_later(ALONE_AFTER, self._look)
            return
        while self._let_one_in(self._organizations) or self._let_one_in(self._strangers):
            pass

    def _next(self) -> None:
        """Another turn: those who wait come before newcomers, one of each party and then the next one of each."""
        self._begun = 0
        kinds = cycle((self._organizations, self._strangers))
        while self._begun < self._most and (self._organizations or self._strangers):
            self._begun += self._let_one_in(next(kinds))
        self._counting = self._begun > 0
        if self._counting:
            asyncio.get_running_loop().call_soon(self._next)

    def _let_one_in(self, lines: _Lines) -> bool:
        """Whether one went on: of the party whose turn it is, which stands last after it."""
        while lines:
            party = next(iter(lines))
            line = lines.pop(party)
            turn = line.popleft()
            if line:
                lines[party] = line
            if not turn.done():  # else its connection has ended
                turn.set_result(None)
                return True
        return False
