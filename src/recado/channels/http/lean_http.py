"""POSTs to the one host of a provider, at little cost each.

As in `outbound_http.py` one question is answered exactly: may the other side have processed the request? A call never
raises (cancellation aside): it ends as `Answer`, `NotSent` or `Lost` (C29.2). No redirects, no cookies, no proxies;
nothing is sent twice.
"""

import asyncio
import socket
from collections.abc import Mapping

from yarl import URL

from recado.channels.http.answer import Answer, Lost, NotSent
from recado.channels.http.connection_pool import ConnectionPool, default_tls
from recado.channels.http.http_connection import LONGEST_READ, ConnectionBroke, TooLate
from recado.domain.core.clock import Clock

_ADDRESSES_KNOWN_FOR = 10.0  # seconds


class LeanHttp:
    """`base`: scheme, host and port; `timeout`, `connect_timeout`: seconds of a call, and of a connection with its TLS.

    Calls in flight are bounded by whoever makes them (C31): each has a connection.
    """

    def __init__(self, base: URL, *, clock: Clock, timeout: float = 15.0, connect_timeout: float = 5.0) -> None:
        self._base = base
        self._clock = clock
        self._timeout = timeout
        self._connect_timeout = connect_timeout
        self._pool: ConnectionPool | None = None
        self._addresses: tuple[str, ...] = ()
        self._known_until = 0.0  # monotonic
        self._asking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if self._pool is None:
            assert self._base.host is not None and self._base.port is not None  # noqa: S101, PT018 - the adapter has looked
            tls = default_tls if self._base.scheme == "https" else None
            if tls is not None:
                tls()  # now, so that no send waits until the certificates are read
            self._pool = ConnectionPool(
                self._clock,
                host=self._base.host,
                port=self._base.port,
                tls=tls,
                kept=LONGEST_READ,
                connect_limit=self._connect_timeout,
            )

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
        return f"POST {path} HTTP/1.1\r\nHost: {self._base.host_port_subcomponent}\r\n{lines}".encode()

    async def post(self, head: bytes, body: bytes) -> Answer | NotSent | Lost:
        """POST once; `head`: of `head()`, and more complete lines. At most 64 KiB of the answer are read."""
        pool = self._pool
        if pool is None:
            return NotSent()
        request = b"%sContent-Length: %d\r\n\r\n%s" % (head, len(body), body)
        try:
            return await pool.post(request, self._timeout, self._find)
        except TooLate as late:  # a status that came stands
            return late.answer or Lost()
        except ConnectionBroke:
            return Lost()
        except OSError:  # a time-out is one
            return NotSent()

    async def _find(self) -> tuple[str, ...]:
        if self._clock.monotonic() >= self._known_until:
            if self._asking is None:  # one asks for all that need a connection now
                self._asking = asyncio.get_running_loop().create_task(self._resolve())
            await asyncio.shield(self._asking)
        return self._addresses

    async def _resolve(self) -> None:
        """Know the host's addresses; where the name does not answer, those of before."""
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                self._base.host, self._base.port, type=socket.SOCK_STREAM
            )
        except (OSError, UnicodeError):  # the latter for what is no name at all
            found = []
        finally:
            self._asking = None
        if found:
            self._addresses = tuple(dict.fromkeys(str(address[0]) for *_, address in found))
            self._known_until = self._clock.monotonic() + _ADDRESSES_KNOWN_FOR
