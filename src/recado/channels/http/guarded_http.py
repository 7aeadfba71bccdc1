"""POSTs to customers' endpoints: guarded addresses, no redirects, no proxies, bounded answers (C23.3.2, C30.6).

Each endpoint has its own connections, so that one that hangs holds up no other.
"""

import asyncio
import ssl
from dataclasses import dataclass

from recado.channels.http.connection_pool import ConnectionPool
from recado.channels.http.http_connection import Answer, ConnectionBroke, HttpConnection
from recado.channels.http.outbound_guard import OutboundGuard, Target, UrlRefused, target_of
from recado.domain.core.clock import Clock

CONNECT_LIMIT, CALL_LIMIT = 5.0, 15.0  # seconds
_ADDRESSES_TRIED = 2
KEPT, KEPT_ERROR = 1024, 1024  # bytes of a body; characters


@dataclass(frozen=True, slots=True)
class Response:
    """What a call came to. Without `status` there was no answer, and `error` says why. `seconds`: how long it took."""

    status: int | None
    error: str | None
    body: bytes
    retry_after: str | None
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether it is a 2xx."""
        return self.status is not None and 200 <= self.status < 300


class GuardedHttp:
    """What all endpoints share: the guard, the certificates, the limits in seconds."""

    def __init__(
        self,
        guard: OutboundGuard,
        *,
        clock: Clock,
        connect_limit: float = CONNECT_LIMIT,
        call_limit: float = CALL_LIMIT,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`tls`: verifies peers; by default by the system's certificates."""
        self.guard = guard
        self.clock = clock
        self.connect_limit = connect_limit
        self.call_limit = call_limit
        self._tls = tls

    @property
    def tls(self) -> ssl.SSLContext:
        """How peers are verified; read from the system once, when it is first needed."""
        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def endpoint(self, url: str, *, live: bool, owner: str = "") -> "Endpoint":
        """The connections to one URL of an organization; raises UrlRefused for a form that is never called."""
        return Endpoint(self, target_of(url), live=live, owner=owner)


class Endpoint:
    """The connections to one URL; they are closed by `close`, and when idle for long."""

    def __init__(self, http: GuardedHttp, target: Target, *, live: bool, owner: str) -> None:
        self._http = http
        self._target = target
        self._live = live
        self._owner = owner
        self._pool = ConnectionPool(http.clock, kept=KEPT)
        self._start = f"POST {target.path} HTTP/1.1\r\nHost: {target.authority}\r\nContent-Length: ".encode("ascii")

    async def post(self, headers: bytes, body: bytes) -> Response:
        """POST once; `headers` are complete lines. Never raises but for cancellation."""
        monotonic = self._http.clock.monotonic
        began = monotonic()
        request = b"%s%d\r\n%s\r\n%s" % (self._start, len(body), headers, body)
        try:
            addresses = self._http.guard.known(self._target, live=self._live)
            if addresses is None:
                async with asyncio.timeout(self._http.call_limit):
                    addresses = await self._http.guard.addresses(self._target, live=self._live, owner=self._owner)
            connection = self._pool.take(addresses)
            answer = None
            if connection is not None:
                answer = await self._ask_again(connection, request, self._http.call_limit - (monotonic() - began))
            if answer is None:
                async with asyncio.timeout(self._http.call_limit - (monotonic() - began)):
                    connection = await self._connect(addresses)
                answer = await self._pool.ask(connection, request, self._http.call_limit - (monotonic() - began))
        except UrlRefused as refusal:
            error = f"the URL may not be called: {refusal}"
        except TimeoutError as timeout:
            error = str(timeout) or f"no complete answer within {self._http.call_limit:g} s"
        except ConnectionBroke as broke:
            error = str(broke)
        except ssl.SSLCertVerificationError as failure:
            error = f"the certificate is not valid: {failure.verify_message}"
        except ssl.SSLError as failure:
            error = f"TLS failed: {failure.reason or 'no reason given'}"
        except OSError as failure:
            error = f"no connection: {failure.strerror or type(failure).__name__}"
        else:
            return Response(answer.status, None, answer.body, answer.retry_after, monotonic() - began)
        return Response(None, error[:KEPT_ERROR], b"", None, monotonic() - began)

    def close(self) -> None:
        """Close what is idle now, and what is under way when it is done."""
        self._pool.close()

    async def _ask_again(self, connection: HttpConnection, request: bytes, seconds: float) -> Answer | None:
        """Ask on a connection that was idle; None where it had been closed over there."""
        try:
            return await self._pool.ask(connection, request, seconds)
        except ConnectionBroke as broke:
            if broke.began:
                raise
            return None

    async def _connect(self, addresses: tuple[str, ...]) -> HttpConnection:
        target = self._target
        tls = self._http.tls if target.scheme == "https" else None
        try:
            async with asyncio.timeout(self._http.connect_limit):
                return await self._pool.connect(addresses[:_ADDRESSES_TRIED], target.port, tls=tls, host=target.host)
        except TimeoutError:
            raise TimeoutError(f"no connection within {self._http.connect_limit:g} s") from None
