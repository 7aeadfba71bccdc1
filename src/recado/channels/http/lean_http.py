"""POSTs to the one host of a provider, at little cost each.

As in `outbound_http.py` one question is answered exactly: may the other side have processed the request? A call never
raises (cancellation aside): it ends as `Answer`, `NotSent` or `Lost` (C29.2). No redirects, no cookies, no proxies;
nothing is sent twice.
"""

import asyncio
import socket
import ssl
from collections.abc import Mapping

from yarl import URL

from recado.channels.http import http_connection
from recado.channels.http.connection_pool import ConnectionPool
from recado.channels.http.http_connection import LONGEST_READ, ConnectionBroke, HttpConnection, TooLate
from recado.channels.http.outbound_http import Answer, Lost, NotSent
from recado.domain.core.clock import Clock

_ADDRESSES_KNOWN_FOR = 10.0  # seconds


class LeanHttp:
    """`base`: scheme, host and port; `timeout`, `connect_timeout`: seconds of a call, and of a connection with its TLS.

    Calls in flight are bounded by whoever makes them (C31): each has a connection.
    """

    def __init__(self, base: URL, *, clock: Clock, timeout: float = 15.0, connect_timeout: float = 5.0) -> None:
        assert base.host is not None and base.port is not None  # noqa: S101, PT018 - the adapter has looked
        self._host, self._port = base.host, base.port
        self._secure = base.scheme == "https"
        self._head = f"Host: {base.host_port_subcomponent}\r\n"
        self._clock = clock
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._pool: ConnectionPool | None = None
        self._tls: ssl.SSLContext | None = None
        self._addresses: tuple[str, ...] = ()
        self._known_until = 0.0  # monotonic
        self._asking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self._pool is None:
            self._tls = ssl.create_default_context() if self._secure else None
            self._pool = ConnectionPool(self._clock, kept=LONGEST_READ)

    async def stop(self) -> None:
        """No call begins any more; what is under way ends by itself."""
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def head(self, path: str, headers: Mapping[str, str]) -> bytes:
        """What begins each POST to this path, made once; raises ValueError for what would break out of its line."""
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        if any(character < " " for character in path + "".join((*headers, *headers.values()))):
            raise ValueError("a header holds a control character")
        return f"POST {path} HTTP/1.1\r\n{self._head}{lines}".encode()

    async def post(self, head: bytes, body: bytes) -> Answer | NotSent | Lost:
        """POST once; `head`: of `head()`, and more complete lines. At most 64 KiB of the answer are read."""
        pool = self._pool
        if pool is None:
            return NotSent()
        began = asyncio.get_running_loop().time()
        connection = pool.take()
        seconds = self._timeout
        if connection is None:
            try:
                connection = await self._connect(pool)
            except OSError:  # a time-out is one
                return NotSent()
            seconds -= asyncio.get_running_loop().time() - began
        request = b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)
        try:
            return _answer(await pool.ask(connection, request, seconds))
        except TooLate as late:  # a status that came stands
            return Lost() if late.answer is None else _answer(late.answer)
        except ConnectionBroke:
            return Lost()

    async def _connect(self, pool: ConnectionPool) -> HttpConnection:
        async with asyncio.timeout(min(self._connect_timeout, self._timeout)):
            if self._clock.monotonic() >= self._known_until:
                if self._asking is None:  # one asks for all that need a connection now
                    self._asking = asyncio.get_running_loop().create_task(self._resolve())
                await asyncio.shield(self._asking)
            return await pool.connect(self._addresses, self._port, tls=self._tls, host=self._host)

    async def _resolve(self) -> None:
        """Know the host's addresses; where the name does not answer, those of before."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM)
        except OSError:
            found = []
        finally:
            self._asking = None
        if found:
            self._addresses = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
            self._known_until = self._clock.monotonic() + _ADDRESSES_KNOWN_FOR


def _answer(answer: http_connection.Answer) -> Answer:
    headers = {} if answer.retry_after is None else {"Retry-After": answer.retry_after}
    return Answer(answer.status, headers, answer.body, answer.complete)
