"""POSTs to customers' endpoints: guarded addresses, no redirects, no proxies, bounded answers (C23.3.2, C30.6).

Each endpoint has its own connections, so that one that hangs holds up no other.
"""

import asyncio
import ssl
from dataclasses import dataclass

from recado.channels.guarded_connection import Answer, ConnectionBroke, GuardedConnection, protocol_for
from recado.channels.outbound_guard import OutboundGuard, Target, UrlRefused, target_of
from recado.domain.clock import Clock

CONNECT_LIMIT, CALL_LIMIT = 5.0, 15.0  # seconds
# Under the 5 s after which common servers close an idle connection.
_IDLE_LIMIT = 4.0
_ADDRESSES_TRIED = 2
KEPT_ERROR = 1024  # characters


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
    """The connections to one URL; they are closed by `close`, and one by one when idle for long."""

    def __init__(self, http: GuardedHttp, target: Target, *, live: bool, owner: str) -> None:
        self._http = http
        self._target = target
        self._live = live
        self._owner = owner
        self._idle: list[GuardedConnection] = []
        # Idle connections that are used again, and when their call is given up; a time-out each costs 3 µs of some 60.
        self._under_way: dict[GuardedConnection, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ends_at = float("inf")
        self._closed = False
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
            left = self._http.call_limit - (monotonic() - began)
            connection = self._take(addresses)
            answer = None if connection is None else await self._ask_again(connection, request, left)
            if answer is None:
                async with asyncio.timeout(self._http.call_limit - (monotonic() - began)):
                    answer = await self._ask(await self._connect(addresses), request)
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
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    async def _ask_again(self, connection: GuardedConnection, request: bytes, left: float) -> Answer | None:
        """Ask on a connection that was idle, for at most so many seconds; None where it had been closed over there."""
        self._under_way[connection] = limit = asyncio.get_running_loop().time() + left
        if limit < self._ends_at:
            self._end_at(limit)
        try:
            return await self._ask(connection, request)
        except ConnectionBroke as broke:
            if broke.began:
                raise
            return None
        finally:
            self._under_way.pop(connection, None)

    def _end_at(self, limit: float) -> None:
        """One timer for all calls: at the first of their limits."""
        if self._timer is not None:
            self._timer.cancel()
        self._ends_at = limit
        self._timer = asyncio.get_running_loop().call_at(limit, self._end_overdue)

    def _end_overdue(self) -> None:
        self._timer, self._ends_at = None, float("inf")
        now = asyncio.get_running_loop().time() + 0.001  # the loop's timers are that exact
        for connection in [connection for connection, limit in self._under_way.items() if limit <= now]:
            self._under_way.pop(connection)
            connection.give_up()
        if self._under_way:
            self._end_at(min(self._under_way.values()))

    async def _ask(self, connection: GuardedConnection, request: bytes) -> Answer:
        try:
            answer = await connection.exchange(request)
        except BaseException:
            connection.close()
            raise
        if self._closed:
            connection.close()
        elif connection.reusable:
            connection.idle_since = self._http.clock.monotonic()
            self._idle.append(connection)
        return answer

    def _take(self, addresses: tuple[str, ...]) -> GuardedConnection | None:
        """An idle connection that goes where the name points now; the most recent one, so that the others may age."""
        oldest = self._http.clock.monotonic() - _IDLE_LIMIT
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since < oldest:
                connection.close()
                while self._idle:  # all below are older
                    self._idle.pop().close()
            elif connection.address not in addresses:
                connection.close()
            elif connection.reusable:
                return connection
        return None

    async def _connect(self, addresses: tuple[str, ...]) -> GuardedConnection:
        target, loop = self._target, asyncio.get_running_loop()
        secure = target.scheme == "https"
        failure: OSError | None = None
        try:
            async with asyncio.timeout(self._http.connect_limit):
                for address in addresses[:_ADDRESSES_TRIED]:
                    try:
                        _, connection = await loop.create_connection(
                            protocol_for(address),
                            address,
                            target.port,
                            ssl=self._http.tls if secure else None,
                            server_hostname=target.host if secure else None,
                        )
                    except ssl.SSLError:
                        raise
                    except OSError as error:
                        failure = error
                    else:
                        made: GuardedConnection = connection
                        return made
        except TimeoutError:
            raise TimeoutError(f"no connection within {self._http.connect_limit:g} s") from None
        raise failure or OSError("no address")
