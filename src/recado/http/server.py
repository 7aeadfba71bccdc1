"""The HTTP server: listens, hands requests to the dispatcher, keeps slow clients in bounds, and stops with grace."""

import asyncio
import os
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from aiohttp import web

from recado.domain.core.clock import Clock
from recado.domain.core.ids import REQUEST, IdSource
from recado.http.api.answers import Answers
from recado.http.api.request_figures import RequestFigures
from recado.http.api.route import MIB, Route
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.callers.rate_limits import Limit, RateLimiter
from recado.http.dispatch import Dispatcher, Reached
from recado.http.middleware.authentication import Administrator, Authenticator
from recado.http.middleware.idempotency import IdempotencyStore
from recado.http.problems.no_request import answer_to_no_request
from recado.http.problems.problems import ProblemRenderer
from recado.http.wire import byte_budget, connection_limits
from recado.http.wire.arrivals import TAKEN, Arrivals
from recado.http.wire.body_pace import FRAMING_A_SECOND, FRAMING_AT_ONCE, BodyPace
from recado.http.wire.byte_budget import ByteBudget
from recado.http.wire.client_ip import ClientAddresses, Network
from recado.http.wire.connection import Connection
from recado.http.wire.connection_limits import ConnectionLimits
from recado.http.wire.connection_looks import ConnectionLooks
from recado.http.wire.handed_connections import FrontConnection, TakenConnection
from recado.http.wire.handover import Giving, Taking
from recado.http.wire.rendering import WireResponse
from recado.http.wire.request_turns import OF_NETWORKS, OF_ORGANIZATIONS, RequestTurns
from recado.http.wire.spool import Spooler
from recado.storage.core.shares.fair_threads import FairThreads

if TYPE_CHECKING:
    from recado.http.callers.shared_buckets import SharedBuckets

ANSWER_SECONDS = 7.0  # that a stop gives what is under way; its connections close a second later
HURRIED_SECONDS = 1.0
_LOOK_AT_GIVEN = 0.02  # seconds
_LOOK_AT_UNDER_WAY = 0.1  # seconds
_TAKEN_BESIDE_OTHERS = 4  # connections in one turn of the event loop: an idle process shall get its part
# What the kernel takes of an answer for a client that does not read: by itself it would take 4 MiB for each connection,
# copied on the loop. And of a body that waits for its caller's pace: some hundred of 3 MiB each, broken off, fill what
# the kernel has for all connections, and packets of everybody are lost (C31).
_KERNEL_BUFFER = 128 * 1024

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerPart:
    """What a server is among the processes of the service. As it stands here: the one of a service that has no other.

    `expects_large_bodies`: a process that reads them is made ready. `has_fronts`: it takes the address, and fronts
    listen. `reached`: see `Dispatcher`. `shared_buckets`: in which all processes count the limits of requests.
    `listening`: sockets that have the address already; `gives`: to the owner. Both are closed at the end.
    `answer_seconds`: that a stop gives what is under way.
    """

    expects_large_bodies: bool = False
    has_fronts: bool = False
    reached: Reached | None = None
    shared_buckets: "SharedBuckets | None" = None
    listening: Sequence[socket.socket] = ()
    gives: Giving | None = None
    answer_seconds: float = ANSWER_SECONDS


ALONE = ServerPart()


class HttpServer:
    """A service with `start()` and `stop()`, both safe to call twice.

    `host` and `port` (0: any free one, see `port`), or `socket_path` for a Unix socket. `limits`: refill per second and
    capacity of every class of C6.1; `ceilings`: those of whole organizations. `spool_folder`: where large bodies wait
    while they are read; None for the system's own; `stores_bodies`: uploads get their names there. `body_memory`: bytes
    of all bodies in memory, and half as many more of large answers on their way; `connections`: how many in all;
    `arriving`: those beside them that are not ready yet (C31). `part`: among the processes of the service. Raises
    OSError when the address cannot be used.

    Several processes may share an address. The owner (`has_fronts`) takes it and does not listen: fronts do, which get
    `bound` from it as `listening`, and hand over to it what they do not answer themselves (`gives`, `add_front`).
    """

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        authenticator: Authenticator,
        idempotency_store: IdempotencyStore,
        limits: Mapping[str, Limit],
        ceilings: Mapping[str, Limit],
        clock: Clock,
        ids: IdSource,
        base_url: str,
        host: str = "127.0.0.1",
        port: int = 0,
        socket_path: Path | None = None,
        admin_token: str | None = None,
        trusted_proxies: Sequence[Network] = (),
        spool_folder: Path | None = None,
        stores_bodies: bool = False,
        body_memory: int = byte_budget.DEFAULT,
        connections: int = connection_limits.IN_ALL,
        arriving: int = connection_limits.ARRIVING,
        connections_of_address: int = connection_limits.OF_ADDRESS,
        figures: RequestFigures | None = None,
        part: ServerPart = ALONE,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._problems = ProblemRenderer(base_url)
        self.unread = ByteBudget(body_memory // 2, byte_budget.ANSWERS)
        self._answers = Answers(self._problems, clock, self.unread)
        routes = tuple(routes)
        large = {
            model
            for route in routes
            if route.body_limit > MIB
            for model in (route.body, *route.bodies.values())
            if model is not None
        }
        self._workers = BodyWorkers(clock, expected=large if part.expects_large_bodies else ())
        limiter = RateLimiter(limits, ceilings, shared=part.shared_buckets)
        self.bodies = ByteBudget(body_memory, byte_budget.BODIES)
        known_addresses = ClientAddresses(trusted_proxies)
        self.limits = ConnectionLimits(connections, connections_of_address, known_addresses)
        self._looks = ConnectionLooks(self.limits, clock)
        if unknown := {route.rate_class for route in routes} - limiter.classes - {""}:
            raise ValueError(f"no such class of requests: {', '.join(sorted(unknown))}")
        pace = BodyPace(clock)
        self._files = FairThreads("bodies")
        self._dispatcher = Dispatcher(
            routes,
            authenticator=authenticator,
            limiter=limiter,
            idempotency_store=idempotency_store,
            clock=clock,
            ids=ids,
            answers=self._answers,
            addresses=known_addresses,
            administrator=Administrator(admin_token),
            spooler=Spooler(spool_folder, clock, pace, self._files, stored=stores_bodies),
            workers=self._workers,
            bodies=self.bodies,
            unread=self.unread,
            pace=pace,
            turns=RequestTurns(OF_ORGANIZATIONS),
            figures=figures or RequestFigures(),
            reached=part.reached,
        )
        self._host = host
        self._port = port
        self._arriving = arriving
        self._socket_path = socket_path
        self._listening = tuple(part.listening)
        self._gives = part.gives
        self._has_fronts = part.has_fronts
        self._fronts: dict[socket.socket, Taking] = {}
        self._serving = False
        self._web: web.Server | None = None
        self._address: asyncio.Server | None = None  # which it holds; `_arrivals` listens on what is bound
        self._bound: list[socket.socket] | None = None
        self._arrivals: Arrivals | None = None
        self._answer_seconds = part.answer_seconds

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        name = self._bound[0].getsockname() if self._bound else None
        return int(name[1]) if isinstance(name, tuple) else self._port

    @property
    def bound(self) -> Sequence[socket.socket]:
        """The sockets that have the address, from `take_address` to `stop`: for fronts, which inherit them."""
        return self._bound or ()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._web.connections) if self._web is not None else 0

    async def take_address(self) -> None:
        """Make the address ours, without answering there yet; raises OSError when it cannot be had."""
        if self._bound is not None:
            return
        loop = asyncio.get_running_loop()
        server = web.Server(self._dispatcher.handle)
        options: dict[str, Any] = {
            "shortcut": self._dispatcher.shortcuts.answer,
            "answer_error": self._answer_error,
            "report_error": _report,
            "limits": self.limits,
            "turns": RequestTurns(OF_NETWORKS),
            "sleep": self._clock.sleep,
            "rest_pace": BodyPace(self._clock).take,
            "framing_pace": BodyPace(self._clock, FRAMING_A_SECOND, FRAMING_AT_ONCE).take,
            "loop": loop,
        }
        connection: Callable[[], Connection] = partial(Connection, server, **options)
        if self._gives is not None:
            connection = partial(FrontConnection, server, giving=self._gives, **options)
        self._bound = list(self._listening) or await self._bind()
        if self._socket_path is None:
            for each in self._bound:
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    each.setsockopt(socket.SOL_SOCKET, option, _KERNEL_BUFFER)
        self._web = server
        self._arrivals = Arrivals(
            self._bound,
            connection,
            taken=lambda first: TakenConnection(server, first=first, **options),
            places=self._arriving,
            at_once=TAKEN if self._gives is None else _TAKEN_BESIDE_OTHERS,
            limits=self.limits,
            refusal=lambda: self._answer_error(503, None).wire,
            clock=self._clock,
        )

    async def _bind(self) -> list[socket.socket]:
        loop = asyncio.get_running_loop()
        if self._socket_path is not None:
            server = await loop.create_unix_server(asyncio.Protocol, self._socket_path, start_serving=False)
        else:
            server = await loop.create_server(asyncio.Protocol, self._host, self._port, start_serving=False)
        bound = [socket.socket(fileno=os.dup(each.fileno())) for each in server.sockets]
        self._address = server
        return bound

    def add_front(self, channel: socket.socket) -> None:
        """Take what a front hands over on its `channel`, which is closed when the front ends, or is removed."""
        arrivals = self._arrivals
        if arrivals is None:
            channel.close()
            return
        taking = self._fronts[channel] = Taking(
            channel,
            room=lambda: arrivals.room,
            arrived=arrivals.bring,
            lost=self._lose,
            ended=lambda ended: self.remove_front(ended.channel),
        )
        if self._serving:
            taking.start()

    def remove_front(self, channel: socket.socket) -> None:
        """Take what has come on `channel`, and nothing more; safe to call twice."""
        taking = self._fronts.pop(channel, None)
        if taking is not None:
            taking.finish()

    def _lose(self) -> None:
        self.limits.refused += 1

    async def start(self) -> None:
        """Listen."""
        await self.take_address()
        await self._workers.start()
        await self._files.start()
        if self._arrivals is not None and not self._serving:
            self._serving = True
            if not self._has_fronts:
                self._arrivals.start()
            for each in self._fronts.values():
                each.start()
            if self._web is not None:
                self._looks.start(self._web)

    def hurry(self) -> None:
        """The service cannot go on: its stop gives what is under way a second, so that the next may serve soon."""
        self._answer_seconds = HURRIED_SECONDS

    async def leave(self, seconds: float) -> None:
        """Another front takes this one's place: nobody shall notice, before `stop`.

        No more connections are taken. For so many seconds each ends with its next answer; then those that rest go over
        to the owner. One that is closed while it rests could break: its client may be about to ask.
        """
        arrivals, giving = self._arrivals, self._gives
        if arrivals is None or giving is None or self._web is None:
            return
        self._port, self._bound = self.port, []
        arrivals.leave_address()
        await arrivals.settled()
        self._answers.drain()
        await self._clock.sleep(seconds)
        for connection in self._web.connections:
            while giving.crowded:  # it would turn them away
                await self._clock.sleep(_LOOK_AT_GIVEN)
            connection.rest_elsewhere()  # type: ignore[attr-defined]
        while giving.waiting:
            await self._clock.sleep(_LOOK_AT_GIVEN)

    async def settled(self, seconds: float) -> None:
        """Until no request is under way, so many seconds at most. An answer that its client does not take is none."""
        give_up_at = self._clock.monotonic() + seconds
        while self._web is not None and self._clock.monotonic() < give_up_at:
            if all(connection.unread for connection in self._web.connections):  # type: ignore[attr-defined]
                return
            await self._clock.sleep(_LOOK_AT_UNDER_WAY)

    async def stop(self) -> None:
        """Take no more connections, answer with 503 what does not end in its seconds, and close one later."""
        address, self._address = self._address, None
        arrivals, self._arrivals = self._arrivals, None
        server, self._web = self._web, None
        if arrivals is None or server is None:
            return
        self._looks.stop()
        self._port, self._bound, self._serving = self.port, None, False
        for channel in tuple(self._fronts):
            self.remove_front(channel)
        arrivals.stop()
        await arrivals.settled()  # from here on none comes, which would not be told to end
        if address is not None:
            address.close()
        self._answers.drain()
        self._dispatcher.hurry(self._answer_seconds)
        server.pre_shutdown()
        await server.shutdown(self._answer_seconds + 1.0)
        if self._gives is not None:
            self._gives.stop()
        await self._workers.stop()
        await self._files.stop()
        if address is not None:
            await address.wait_closed()

    def _answer_error(self, status: int, detail: str | None) -> WireResponse:
        """The answer to what never became a request, the last of its connection."""
        return answer_to_no_request(self._problems, status, detail, self._ids.new(REQUEST))


def _report(event: str, error: BaseException | None) -> None:
    _log.error(event, error=type(error).__qualname__ if error is not None else None)
