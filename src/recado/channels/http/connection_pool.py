"""The open connections to one host: which is used next, when a call is given up, when one is closed."""

import asyncio
import ssl
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import lru_cache
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SOCK_STREAM

from aiohappyeyeballs import AddrInfoType, start_connection

from recado.channels.http.answer import Answer
from recado.channels.http.http_connection import ConnectionBroke, HttpConnection
from recado.domain.core.clock import Clock

# Under the 5 s after which common servers close an idle connection: a request written into that moment is in doubt.
IDLE_LIMIT = 4.0  # seconds
STAGGER = 0.25  # seconds after which the next address is tried beside the one before

default_tls = lru_cache(maxsize=1)(ssl.create_default_context)
"""Verifies peers by the system's certificates, which are read once."""


class ConnectionPool:
    """`tls`: None for plain HTTP; `kept`: bytes of the body of each answer; `connect_limit`: seconds.

    What is under way is bounded by whoever asks.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        host: str,
        port: int,
        tls: Callable[[], ssl.SSLContext] | None,
        kept: int,
        connect_limit: float,
    ) -> None:
        self._clock = clock
        self._host, self._port, self._tls = host, port, tls
        self._kept = kept
        self._connect_limit = connect_limit
        self._idle: deque[HttpConnection] = deque()  # the one used last on the right
        # When each call under way is given up: one timer for all of them, as a time-out each costs 3 µs of some 60.
        self._under_way: dict[HttpConnection, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ends_at = float("inf")
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    async def post(
        self,
        request: bytes,
        seconds: float,
        find: Callable[[], Awaitable[Sequence[str]]],
        *,
        only: Collection[str] | None = None,
        again: bool = False,
    ) -> Answer:
        """Send a whole request on an idle connection, or on a new one to an address that `find` knows.

        `only`: the addresses to which an idle one may go, where that matters; `again`: a request that met an idle
        connection which had been closed over there may be sent again, on a new one. Raises `ConnectionBroke`, OSError
        when there is no connection, and `TooLate` when the answer is not there in so many seconds.
        """
        loop = asyncio.get_running_loop()
        limit = loop.time() + seconds
        connection = self._take(only)
        while True:
            idle = connection is not None
            if connection is None:
                connection = await self._connect(find, limit - loop.time())
            self._under_way[connection] = limit
            if limit < self._ends_at:
                self._end_at(limit)
            try:
                answer = await connection.exchange(request)
            except BaseException as error:
                connection.close()
                if not (idle and again and isinstance(error, ConnectionBroke) and not error.began):
                    raise
            else:
                self._keep(connection)
                return answer
            finally:
                self._under_way.pop(connection, None)
            connection = None

    def close(self) -> None:
        """Close what is idle now, and what is under way when it is done."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def _take(self, only: Collection[str] | None) -> HttpConnection | None:
        """The idle connection used last, so that others may age."""
        oldest = self._clock.monotonic() - IDLE_LIMIT
        while self._idle:
            connection = self._idle.pop()
            young = connection.idle_since >= oldest
            if young and (only is None or connection.address in only) and connection.usable:
                return connection
            connection.close()
        return None

    async def _connect(self, find: Callable[[], Awaitable[Sequence[str]]], left: float) -> HttpConnection:
        """A new connection, to the first address that takes one."""
        try:
            async with asyncio.timeout(min(self._connect_limit, left)):
                addresses = await find()
                if not addresses:
                    raise OSError("no address")
                return await self._open([_place(each, self._port) for each in addresses])
        except TimeoutError:
            late = f"no connection within {self._connect_limit:g} s" if self._connect_limit < left else ""
            raise TimeoutError(late) from None

    async def _open(self, places: Sequence[AddrInfoType]) -> HttpConnection:
        try:
            found = await start_connection(places, happy_eyeballs_delay=STAGGER)
        except RuntimeError as error:  # uvloop raises some
            raise OSError(str(error)) from error
        try:
            address: str = found.getpeername()[0]
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(address, self._kept),
                sock=found,
                ssl=self._tls and self._tls(),
                server_hostname=self._host if self._tls else None,
            )
        except BaseException:
            found.close()
            raise
        made: HttpConnection = connection
        return made

    def _keep(self, connection: HttpConnection) -> None:
        """For another request, if it can carry one."""
        if self._closed:
            connection.close()
        elif connection.reusable:
            connection.idle_since = self._clock.monotonic()
            self._idle.append(connection)
            if self._sweeper is None:
                self._sweeper = asyncio.get_running_loop().call_later(IDLE_LIMIT, self._sweep)

    def _sweep(self) -> None:
        """Close what has been idle for long: after a burst nobody takes it any more."""
        self._sweeper = None
        oldest = self._clock.monotonic() - IDLE_LIMIT
        while self._idle and self._idle[0].idle_since <= oldest:
            self._idle.popleft().close()
        if self._idle:
            self._sweeper = asyncio.get_running_loop().call_later(IDLE_LIMIT, self._sweep)

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


def _place(address: str, port: int) -> AddrInfoType:
    if ":" in address:
        return AF_INET6, SOCK_STREAM, IPPROTO_TCP, "", (address, port, 0, 0)
    return AF_INET, SOCK_STREAM, IPPROTO_TCP, "", (address, port)
