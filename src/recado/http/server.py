"""The HTTP server: listens, hands requests to the dispatcher, keeps slow clients in bounds, and stops with grace."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import structlog
from aiohttp import web
from aiohttp.web_request import BaseRequest

from recado.domain.clock import Clock, TimerHandle
from recado.domain.errors import KINDS
from recado.domain.ids import REQUEST, IdSource
from recado.http.answers import Answers
from recado.http.connection import Connection, make_request
from recado.http.dispatch import Dispatcher, Observer
from recado.http.middleware.authentication import Administrator, Authenticator
from recado.http.middleware.client_ip import ClientAddresses, Network
from recado.http.middleware.idempotency import IdempotencyStore
from recado.http.middleware.rate_limits import Limit, RateLimiter
from recado.http.problems import MEDIA_TYPE, ProblemRenderer
from recado.http.rendering import WireResponse, head
from recado.http.route import Route
from recado.http.spool import Spooler

DRAIN_SECONDS = 20.0
LOOK_SECONDS = 1.0
_BACKLOG = 2048

_log = structlog.get_logger(__name__)


class HttpServer:
    """A service with `start()` and `stop()`, both safe to call twice.

    `host` and `port` (0: any free one, see `port`), or `socket_path` for a Unix socket. `limits`: refill per second and
    capacity of every class of C6.1. `spool_folder`: where large bodies wait while they are read; None for the system's
    own. Raises OSError when the address cannot be used.
    """

    def __init__(
        self,
        routes: Iterable[Route],
        *,
        authenticator: Authenticator,
        idempotency_store: IdempotencyStore,
        limits: Mapping[str, Limit],
        clock: Clock,
        ids: IdSource,
        base_url: str,
        host: str = "127.0.0.1",
        port: int = 0,
        socket_path: Path | None = None,
        admin_token: str | None = None,
        trusted_proxies: Sequence[Network] = (),
        gateways: int = 1,
        spool_folder: Path | None = None,
        observe: Observer | None = None,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._problems = ProblemRenderer(base_url)
        self._answers = Answers(self._problems, clock)
        limiter = RateLimiter(limits, share=gateways)
        routes = tuple(routes)
        if unknown := {route.rate_class for route in routes} - limiter.classes - {""}:
            raise ValueError(f"no such class of requests: {', '.join(sorted(unknown))}")
        self._dispatcher = Dispatcher(
            routes,
            authenticator=authenticator,
            limiter=limiter,
            idempotency_store=idempotency_store,
            clock=clock,
            ids=ids,
            answers=self._answers,
            addresses=ClientAddresses(trusted_proxies),
            administrator=Administrator(admin_token),
            spooler=Spooler(spool_folder, clock),
            observe=observe,
        )
        self._host = host
        self._port = port
        self._socket_path = socket_path
        self._web: web.Server | None = None
        self._listener: asyncio.Server | None = None
        self._timer: TimerHandle | None = None

    @property
    def port(self) -> int:
        """The port that the server listens on."""
        if self._listener is not None and self._socket_path is None:
            return int(self._listener.sockets[0].getsockname()[1])
        return self._port

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._web.connections) if self._web is not None else 0

    async def take_address(self) -> None:
        """Make the address ours, without answering there yet; raises OSError when it cannot be had."""
        if self._listener is not None:
            return
        loop = asyncio.get_running_loop()
        server = self._web = web.Server(self._handle, request_factory=make_request)

        def connection() -> Connection:
            return Connection(server, answer_error=self._answer_error, report_error=_report, loop=loop)

        if self._socket_path is not None:
            self._listener = await loop.create_unix_server(
                connection, self._socket_path, backlog=_BACKLOG, start_serving=False
            )
        else:
            self._listener = await loop.create_server(
                connection, self._host, self._port, backlog=_BACKLOG, start_serving=False
            )

    async def start(self) -> None:
        """Listen."""
        await self.take_address()
        if self._listener is not None and not self._listener.is_serving():
            await self._listener.start_serving()
            self._look()

    async def stop(self) -> None:
        """Take no more connections, let running requests finish for up to 20 s, then close."""
        listener, self._listener = self._listener, None
        server, self._web = self._web, None
        if listener is None or server is None:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._port = int(listener.sockets[0].getsockname()[1]) if self._socket_path is None else self._port
        listener.close()
        self._answers.drain()
        server.pre_shutdown()
        await server.shutdown(DRAIN_SECONDS)
        await listener.wait_closed()

    async def _handle(self, request: BaseRequest) -> web.StreamResponse:
        connection: Connection = request.protocol  # type: ignore[assignment]
        try:
            response = await self._dispatcher.handle(request)
            if response.status == 408:
                connection.spare_the_rest()
            return response
        finally:
            connection.request_ends()

    def _look(self) -> None:
        """Once a second: close the connections whose head does not come."""
        if self._web is None:
            return
        now = self._clock.monotonic()
        for connection in self._web.connections:
            connection.look(now)  # type: ignore[attr-defined]
        self._timer = self._clock.call_at(now + LOOK_SECONDS, self._look)

    def _answer_error(self, status: int) -> web.StreamResponse:
        """The answer to what never became a request."""
        request_id = self._ids.new(REQUEST)
        if status not in KINDS:
            status = 400
        code, title, detail = (
            ("INTERNAL_ERROR", "An internal error occurred", "The request could not be completed.")
            if status >= 500
            else ("BAD_REQUEST", "The request is not valid", "This is not a valid HTTP request.")
        )
        body = self._problems.render(code, KINDS[status], status, title, detail, "", request_id)
        lines = f"X-Request-Id: {request_id}\r\nCache-Control: no-store\r\n"
        wire = head(status, lines, len(body), MEDIA_TYPE, "Connection: close\r\n") + body
        return WireResponse(wire, status, keep_alive=False)


def _report(event: str, error: BaseException | None) -> None:
    _log.error(event, error=type(error).__qualname__ if error is not None else None)
