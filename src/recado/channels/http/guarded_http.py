"""POSTs to customers' endpoints: guarded addresses, no redirects, no proxies, bounded answers (C23.3.2, C30.6).

Each endpoint has its own connections, so that one that hangs holds up no other.
"""

import asyncio
import ssl
from dataclasses import dataclass, field

from recado.channels.http.connection_pool import ConnectionPool, default_tls
from recado.channels.http.http_connection import ConnectionBroke
from recado.channels.http.outbound_guard import OutboundGuard, ParsedUrl, UrlRefused, target_of
from recado.domain.core.clock import Clock

CONNECT_LIMIT, CALL_LIMIT = 5.0, 15.0  # seconds
_ADDRESSES_TRIED = 2
KEPT, KEPT_ERROR = 1024, 1024  # bytes of a body; characters


@dataclass(frozen=True, slots=True)
class Response:
    """What a call came to. Without `status` there was no answer, and `error` says why. `seconds`: how long it took.

    `refused`: the URL may not be called, so there was no call.
    """

    status: int | None
    error: str | None
    body: bytes
    retry_after: str | None
    seconds: float
    refused: bool = False

    @property
    def ok(self) -> bool:
        """Whether it is a 2xx."""
        return self.status is not None and 200 <= self.status < 300


@dataclass(slots=True)
class GuardedHttp:
    """What all endpoints share: the guard, the limits in seconds, and how peers are verified, if not by the system's
    certificates.
    """

    guard: OutboundGuard
    clock: Clock = field(kw_only=True)
    connect_limit: float = field(default=CONNECT_LIMIT, kw_only=True)
    call_limit: float = field(default=CALL_LIMIT, kw_only=True)
    tls: ssl.SSLContext | None = field(default=None, kw_only=True)

    def verifying(self) -> ssl.SSLContext:
        return self.tls or default_tls()

    def endpoint(self, url: str, *, live: bool, owner: str = "") -> "Endpoint":
        """The connections to one URL of an organization; raises UrlRefused for a form that is never called."""
        return Endpoint(self, target_of(url), live=live, owner=owner)


class Endpoint:
    """The connections to one URL; they are closed by `close`, and when idle for long."""

    def __init__(self, http: GuardedHttp, target: ParsedUrl, *, live: bool, owner: str) -> None:
        self._http = http
        self._target = target
        self._live = live
        self._owner = owner
        self._pool = ConnectionPool(
            http.clock,
            host=target.host,
            port=target.port,
            tls=None if target.scheme == "http" else http.verifying,
            kept=KEPT,
            connect_limit=http.connect_limit,
        )
        self._start = f"POST {target.path} HTTP/1.1\r\nHost: {target.authority}\r\nContent-Length: ".encode("ascii")

    async def post(self, headers: bytes, body: bytes) -> Response:
        """POST once; `headers` are complete lines. Never raises but for cancellation."""
        monotonic = self._http.clock.monotonic
        began = monotonic()
        request = b"%s%d\r\n%s\r\n%s" % (self._start, len(body), headers, body)
        refused = False
        try:
            addresses = self._http.guard.known(self._target, live=self._live)
            if addresses is None:
                async with asyncio.timeout(self._http.call_limit):
                    addresses = await self._checked()
            seconds = self._http.call_limit - (monotonic() - began)
            answer = await self._pool.post(request, seconds, self._find, only=addresses, again=True)
        except UrlRefused as refusal:
            refused, error = True, f"the URL may not be called: {refusal}"
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
        return Response(None, error[:KEPT_ERROR], b"", None, monotonic() - began, refused)

    async def _checked(self) -> tuple[str, ...]:
        return await self._http.guard.addresses(self._target, live=self._live, owner=self._owner)

    async def _find(self) -> tuple[str, ...]:
        """For a new connection; they were checked a moment ago."""
        return (await self._checked())[:_ADDRESSES_TRIED]

    def close(self) -> None:
        """Close what is idle now, and what is under way when it is done."""
        self._pool.close()
