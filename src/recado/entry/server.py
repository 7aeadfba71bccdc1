"""Listens for the entry: connections in their bounds, as those of the service, and an end with grace."""

import asyncio
import os
import socket
from functools import partial
from typing import Final

import structlog
from aiohttp import web

from recado.domain.core.clock import Clock
from recado.entry.answers import EntryAnswers
from recado.entry.entry import Entry
from recado.http.server import ANSWER_SECONDS
from recado.http.wire.arrivals import Arrivals
from recado.http.wire.body_pace import FRAMING_A_SECOND, FRAMING_AT_ONCE, BodyPace
from recado.http.wire.connection import Connection
from recado.http.wire.connection_limits import ARRIVING, ConnectionLimits
from recado.http.wire.connection_looks import ConnectionLooks
from recado.http.wire.request_turns import OF_NETWORKS, RequestTurns

_KERNEL_BUFFER: Final = 128 * 1024  # bytes of an answer that nobody reads, as of the service (C31)

log = structlog.get_logger(__name__)


class EntryServer:
    """A service with `start()` and `stop()`, both safe to call twice. `port`: 0 is any free one."""

    def __init__(
        self, entry: Entry, answers: EntryAnswers, limits: ConnectionLimits, clock: Clock, host: str, port: int
    ) -> None:
        self._entry = entry
        self._answers = answers
        self._limits = limits
        self._clock = clock
        self._host = host
        self._port = port
        self._web: web.Server | None = None
        self._arrivals: Arrivals | None = None
        self._looks = ConnectionLooks(limits, clock)

    @property
    def port(self) -> int:
        """That it listens on."""
        return self._port

    async def start(self) -> None:
        """Listen; raises OSError when the address cannot be had."""
        if self._web is not None:
            return
        loop = asyncio.get_running_loop()
        server = web.Server(self._entry.handle)
        found = await loop.create_server(asyncio.Protocol, self._host, self._port, start_serving=False)
        bound = [socket.socket(fileno=os.dup(each.fileno())) for each in found.sockets]
        found.close()
        for each in bound:
            for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                each.setsockopt(socket.SOL_SOCKET, option, _KERNEL_BUFFER)
        self._port = int(bound[0].getsockname()[1])
        self._web = server
        self._arrivals = Arrivals(
            bound,
            partial(
                Connection, server, shortcut=lambda *_: None, answer_error=self._answers.of_no_request,
                report_error=_report, limits=self._limits, turns=RequestTurns(OF_NETWORKS), sleep=self._clock.sleep,
                rest_pace=BodyPace(self._clock).take,
                framing_pace=BodyPace(self._clock, FRAMING_A_SECOND, FRAMING_AT_ONCE).take, loop=loop,
            ),
            places=ARRIVING,
            limits=self._limits,
            refusal=lambda: self._answers.of_no_request(503, None).wire,
            clock=self._clock,
        )  # fmt: skip
        self._arrivals.start()
        self._looks.start(server)

    async def stop(self) -> None:
        """Take no more connections, and give what is under way its seconds."""
        arrivals, self._arrivals = self._arrivals, None
        server, self._web = self._web, None
        if arrivals is None or server is None:
            return
        self._looks.stop()
        arrivals.stop()
        await arrivals.settled()
        self._answers.draining = True
        server.pre_shutdown()
        await server.shutdown(ANSWER_SECONDS)


def _report(event: str, error: BaseException | None) -> None:
    log.error(event, error=type(error).__qualname__ if error is not None else None)
