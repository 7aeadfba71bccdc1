"""How many requests go on in one turn of the event loop, while several parties ask (C31).

Everything waits for the turn that is under way. Who asks on hundreds of connections at once would make it as long as
all of those requests take; so a turn takes some requests, of all parties in turns. Who is alone keeps nobody waiting:
long turns cost less.

Requests meet this twice. First by network, when they begin: what a stranger gets for an answer costs little. Then by
organization, when their credential is known and before their body is read, since that may cost milliseconds: one
organization that asks from hundreds of addresses is one party. There, who has shown no credential is one party for each
network; hundreds of them would make organizations come last, so all together they have at most every second turn.

A turn has places. A request without a body takes one; a body takes one more for each `BYTES_OF_PLACE`, because reading
and validating it takes longer the longer it is.

Who watches the program, with probes and scrapes, asks now and then, and waits for the turn that is under way: for them
alone no turns are made, which would cost whoever sends all the time some of its pace.
"""

import asyncio
from collections import deque
from typing import Final

from recado.domain.core.solitude import ALONE_AFTER

PROBES: Final = 8  # within `ALONE_AFTER`: more of them are somebody who asks
OF_NETWORKS: Final = 48
OF_ORGANIZATIONS: Final = 8
BYTES_OF_PLACE: Final = 2048  # of a body: some 0.3 ms to read and validate, as long as a request without one takes

_Line = deque[tuple[asyncio.Future[None], int]]
"""Requests of a party, each with the places that it takes."""
_Lines = dict[str, _Line]
"""Who waits, by party, in the order of their turns."""


class RequestTurns:
    """Counts the places of the present turn that are taken. `most`: by all parties together."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last: str | None = None  # the party of the last request
        self._changed = False  # since the last look
        self._several = False  # parties ask
        self._begun = 0  # in this turn
        self._counting = False  # `_next` comes behind this turn
        self._known: _Lines = {}  # of organizations; where nobody is a stranger, of all
        self._strangers: _Lines = {}
        self._strangers_due = 0.0  # turns that they have not had yet, while both wait
        self._probes = 0
        self._probes_until = 0.0  # of the loop's time, from which on they are counted anew

    @property
    def several(self) -> bool:
        """Whether several parties ask: only then it matters how long a body is."""
        return self._several

    def wait(
        self, party: str, *, stranger: bool = False, body: int = 0, probe: bool = False
    ) -> "asyncio.Future[None] | None":
        """What a request has to wait for before it goes on; None: it does so now.

        `stranger`: the party is the network of somebody who showed no credential, beside organizations. `body`: bytes
        that it sends, as far as its head tells. `probe`: it watches the program.
        """
        if party != self._last and not (probe and self._are_few_probes()):
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
        places = 1 + body // BYTES_OF_PLACE
        if self._begun < self._most:
            self._begun += places
            return None
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        lines = self._strangers if stranger else self._known
        lines.setdefault(party, deque()).append((turn, places))
        return turn

    def _are_few_probes(self) -> bool:
        """Count one more."""
        now = asyncio.get_running_loop().time()
        if now >= self._probes_until:
            self._probes, self._probes_until = 0, now + ALONE_AFTER
        self._probes += 1
        return self._probes <= PROBES

    def _look(self) -> None:
        """Whether several still ask. One alone mostly has requests in its line, which need not wait any more."""
        parties = len(self._known) + len(self._strangers)
        self._several, self._changed = self._changed or parties > 1, False
        if self._several:
            asyncio.get_running_loop().call_later(ALONE_AFTER, self._look)
            return
        while self._let_one_in(self._known) or self._let_one_in(self._strangers):
            pass

    def _next(self) -> None:
        """Another turn: those who wait come before newcomers, one of each party and then the next one of each."""
        self._begun = 0
        while self._begun < self._most and (self._known or self._strangers):
            self._begun += self._let_one_in(self._next_lines())
        self._counting = self._begun > 0
        if self._counting:
            asyncio.get_running_loop().call_soon(self._next)

    def _next_lines(self) -> _Lines:
        """Those whose turn it is: strangers have the part of their parties in all, and half at most."""
        known, strangers = len(self._known), len(self._strangers)
        if not known or not strangers:
            return self._known or self._strangers
        self._strangers_due += min(0.5, strangers / (known + strangers))
        if self._strangers_due < 1.0:
            return self._known
        self._strangers_due -= 1.0
        return self._strangers

    def _let_one_in(self, lines: _Lines) -> int:
        """Let one of the party go on whose turn it is, which stands last after it; the places it takes, 0: nobody."""
        while lines:
            party = next(iter(lines))
            line = lines.pop(party)
            while line and line[0][0].done():  # its connection has ended, and that is no turn
                line.popleft()
            if line:
                turn, places = line.popleft()
                turn.set_result(None)
                if line:
                    lines[party] = line
                return places
        return 0
