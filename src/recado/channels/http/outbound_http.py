"""Pooled HTTP calls to a provider, with one question answered exactly: may the other side have processed the request?

A call never raises (cancellation aside): it ends as `Answer`, `NotSent` or `Lost` (C29.2).
"""

import asyncio
from asyncio import CancelledError
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import aiohttp
from yarl import URL

from recado.channels.http.answer import Answer, Lost, NotSent
from recado.channels.http.outbound_guard import Turn
from recado.domain.core.errors import Unavailable

Body = bytes | AsyncIterable[bytes | memoryview]
Shares = Callable[[int], Turn]
"""Shares so many connections among accounts."""

CONNECTIONS = 8_000  # of an adapter's sends: twice what one account may have in flight (C31)
OTHER_CONNECTIONS = 32  # for all else that an adapter asks
MEDIA_CONNECTIONS = 16  # for its uploads and downloads, which take minutes
MAX_ANSWER = 64 * 1024  # bytes; of a longer answer the rest is not read
# Under the 5 s after which common servers close an idle connection: a request written into that moment is in doubt.
_KEEPALIVE_SECONDS = 4.0
_CHUNK = 64 * 1024  # bytes


class OutboundHttp:
    """A bounded pool of connections; no redirects, no cookies, no proxy or credentials from the environment.

    `timeout`, `connect_timeout`: seconds for the whole call, and for one connection including TLS. `turn`: shares the
    connections among accounts (C31); a call waits for its own within `timeout`, also one that has a longer time.
    """

    def __init__(
        self,
        *,
        connections: int = CONNECTIONS,
        timeout: float = 15.0,
        connect_timeout: float = 5.0,
        turn: Turn | None = None,
    ) -> None:
        self._connections = connections
        self._turn: Turn = turn or (lambda _: nullcontext())
        self._connect_timeout = connect_timeout
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=connect_timeout)
        self._session: aiohttp.ClientSession | None = None

    async def start(self) -> None:
        if self._session is not None:
            return
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(_connected)
        trace.on_connection_reuseconn.append(_connected)
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._connections, keepalive_timeout=_KEEPALIVE_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=self._timeout,
            trust_env=False,
            auto_decompress=False,
            trace_configs=[trace],
        )

    async def stop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def post(
        self, url: URL, body: Body, headers: Mapping[str, str], *, owner: str = "", longest: int = MAX_ANSWER
    ) -> Answer | NotSent | Lost:
        """POST once (aiohttp repeats no POST by itself) and read at most `longest` bytes of the answer."""
        return await self.request("POST", url, headers, owner=owner, body=body, longest=longest)

    async def request(
        self,
        method: str,
        url: URL,
        headers: Mapping[str, str],
        *,
        owner: str = "",
        body: Body | None = None,
        longest: int = MAX_ANSWER,
        timeout: float | None = None,
    ) -> Answer | NotSent | Lost:
        """Any method; `timeout` (seconds) where the usual one is too short, as for a long body.

        `owner`: the account whose share of the connections it takes.
        """
        session = self._session
        if session is None:
            return NotSent()
        call = _Call()
        limit = self._timeout if timeout is None else self._longer(timeout)
        try:
            async with asyncio.timeout(self._timeout.total) as end, self._turn(owner):
                if timeout is not None:
                    end.reschedule(None)  # it has its own time, and had the usual one to wait
                async with session.request(
                    method,
                    url,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    trace_request_ctx=call,
                    timeout=limit,
                ) as response:
                    call.status, call.retry_after = response.status, response.headers.get("Retry-After")
                    call.complete = await _read(response, call.body, longest)
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - whatever went wrong, the one thing that matters is how far the request came
            if not call.connected:
                return NotSent()
        # A status that came stands, even when the connection broke inside its body.
        if not call.status:
            return Lost()
        return Answer(call.status, call.retry_after, bytes(call.body), call.complete)

    @asynccontextmanager
    async def download(
        self, url: URL, headers: Mapping[str, str], *, owner: str = "", timeout: float, body: bytes | None = None
    ) -> AsyncIterator[tuple[int, Mapping[str, str], AsyncIterator[bytes]]]:
        """Read a body of any length piece by piece: status, headers, chunks. GET, or POST of a `body`.

        `timeout`: seconds for all of it, once `owner` has a connection. Raises OSError when no answer comes; so do the
        chunks when it breaks off.
        """
        session = self._session
        if session is None:
            raise ConnectionError("not started")
        limit = self._longer(timeout)
        async with AsyncExitStack() as held:
            try:
                async with asyncio.timeout(self._timeout.total):
                    await held.enter_async_context(self._turn(owner))
            except (TimeoutError, Unavailable) as error:
                raise ConnectionError(type(error).__name__) from None
            if session.closed:
                raise ConnectionError("stopped")
            try:
                async with session.request(
                    "GET" if body is None else "POST",
                    url,
                    data=body,
                    headers=headers,
                    allow_redirects=False,
                    trace_request_ctx=_Call(),
                    timeout=limit,
                ) as response:
                    yield response.status, response.headers, _chunks(response)
            except (aiohttp.ClientError, TimeoutError, ValueError) as error:
                raise ConnectionError(type(error).__name__) from None

    def _longer(self, seconds: float) -> aiohttp.ClientTimeout:
        """For long bodies: as long as something moves within the usual time."""
        return aiohttp.ClientTimeout(total=seconds, sock_connect=self._connect_timeout, sock_read=self._timeout.total)


class _Call:
    """How far one request came."""

    __slots__ = ("body", "complete", "connected", "retry_after", "status")

    def __init__(self) -> None:
        self.connected = False
        self.status = 0
        self.retry_after: str | None = None
        self.body = bytearray()
        self.complete = False


async def _connected(session: aiohttp.ClientSession, context: SimpleNamespace, params: Any) -> None:
    context.trace_request_ctx.connected = True


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.content.iter_chunked(_CHUNK):
            yield chunk
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ConnectionError(type(error).__name__) from None


async def _read(response: aiohttp.ClientResponse, body: bytearray, longest: int) -> bool:
    while len(body) <= longest:
        chunk = await response.content.read(longest + 1 - len(body))
        if not chunk:
            return True
        body += chunk
    response.close()  # the rest is not worth the connection
    return False
