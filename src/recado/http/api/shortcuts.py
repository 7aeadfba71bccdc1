"""Answers a person who opens a link, before anything is made of the request that only other operations need (0051).

So is the image of an e-mail given, which a person's program loads. What is not plain goes the usual way, which refuses,
asks and logs: a link that leads nowhere, an address that opened too many of those, a body, an end of the connection, a
log of every request, a database that is slow.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import Final

from aiohttp.http import HttpVersion11
from aiohttp.http_parser import RawRequestMessage

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import REQUEST, IdSource
from recado.http.api.answers import Answers
from recado.http.api.call import agent_of
from recado.http.api.request_figures import Figures, RequestFigures
from recado.http.api.request_log import RequestLog
from recado.http.api.route import Route, Shortcut
from recado.http.callers.rate_limits import PUBLIC, RateLimiter
from recado.http.wire.client_ip import ClientAddresses, network_of
from recado.http.wire.deadlines import Deadlines, Task
from recado.http.wire.request_turns import RequestTurns
from recado.storage.core.shares.callers import STRANGER

LOOK_SECONDS: Final = 1.0
"""How long a look-up is waited for here: the usual way asks again, and has its own time."""


class Shortcuts:
    """Those of the routes that have one. Each has one parameter, at its end."""

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        limiter: RateLimiter,
        addresses: ClientAddresses,
        answers: Answers,
        requests: RequestLog,
        turns: RequestTurns,
        clock: Clock,
        ids: IdSource,
        figures: RequestFigures,
    ) -> None:
        self._shortcuts = {
            route.path.partition("{")[0]: (route.shortcut, figures.of(route))
            for route in routes
            if route.shortcut is not None
        }
        self._limiter = limiter
        self._addresses = addresses
        self._answers = answers
        self._requests = requests
        self._turns = turns
        self._deadlines = Deadlines(LOOK_SECONDS, clock)
        self._now = clock.now
        self._monotonic = clock.monotonic
        self._new_id = ids.new

    def hurry(self) -> None:
        """Leave those that wait to the usual way, which knows how much time is left."""
        self._deadlines.hurry(0.0)

    def answer(self, message: RawRequestMessage, peer: str, task: Task) -> bytes | Awaitable[bytes | None] | None:
        """The whole answer to a GET without a body, at once or when it is known; None: the usual way has to answer.

        `task`: the connection's, which waits for it.
        """
        path = message.path
        start = path.find("/", 1) + 1
        there = self._shortcuts.get(path[:start])
        if there is None or message.should_close or message.version != HttpVersion11 or self._requests.every:
            return None
        shortcut, figures = there
        now = self._monotonic()
        headers = message.headers
        address = self._addresses.resolve(peer, headers)
        if not self._limiter.lets_in(address, PUBLIC, now):
            return None
        code, agent = path[start:].partition("?")[0], agent_of(headers)
        turn = self._turns.wait(STRANGER + network_of(address), stranger=True)
        if turn is not None:
            return self._later(self._in_turn(turn, shortcut, code, agent), task, now, figures)
        try:
            found = shortcut(code, agent)
        except Unavailable:
            return None
        if found is None:
            return None
        if isinstance(found, (str, bytes)):
            return self._led(found, now, figures)
        return self._later(found, task, now, figures)

    async def _in_turn(
        self, turn: Awaitable[None], shortcut: Shortcut, code: str, agent: str | None
    ) -> str | bytes | None:
        """Where it leads, while several parties ask: their requests take turns, also those that cost little."""
        await turn
        found = shortcut(code, agent)
        return found if found is None or isinstance(found, (str, bytes)) else await found

    async def _later(
        self, asked: Awaitable[str | bytes | None], task: Task, now: float, figures: Figures
    ) -> bytes | None:
        """The answer once it is known; the usual way words why it is not."""
        self._deadlines.begin(task, now)
        try:
            found = await asked
        except Unavailable:
            return None
        except asyncio.CancelledError:
            if not self._deadlines.expired(task):
                raise
            return None
        finally:
            self._deadlines.end(task)
        return None if found is None else self._led(found, now, figures)

    def _led(self, found: str | bytes, began: float, figures: Figures) -> bytes:
        request_id, now, at = self._new_id(REQUEST), self._now(), self._monotonic()
        if isinstance(found, bytes):
            figures.answered(200, at - began)
            return self._answers.image(found, request_id, now, at)
        figures.answered(302, at - began)
        return self._answers.redirect(found, request_id, now, at)
