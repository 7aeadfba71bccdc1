"""The open connections to one host: which is used next, when a call is given up, when one is closed."""

import asyncio
import ssl
from collections.abc import Collection, Sequence
from socket import AF_INET, AF_INET6, IPPROTO_TCP, SOCK_STREAM

from aiohappyeyeballs import AddrInfoType, start_connection

from recado.channels.http.http_connection import Answer, HttpConnection
from recado.domain.core.clock import Clock

# Under the 5 s after which common servers close an idle connection: a request written into that moment is in doubt.
IDLE_LIMIT = 4.0  # seconds
STAGGER = 0.25  # seconds after which the next address is tried beside the one before


class ConnectionPool:
    """`kept`: bytes of the body of each answer. What is under way is bounded by whoever asks."""

    def __init__(self, clock: Clock, *, kept: int) -> None:
        self._clock = clock
        self._kept = kept
        self._idle: list[HttpConnection] = []
        # When each call under way is given up: one timer for all of them, as a time-out each costs 3 µs of some 60.
        self._under_way: dict[HttpConnection, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ends_at = float("inf")
        self._sweeper: asyncio.TimerHandle | None = None
        self._closed = False

    def take(self, addresses: Collection[str] | None = None) -> HttpConnection | None:
        """The idle connection used last, so that others may age; to one of these addresses, where they are given."""
        oldest = self._clock.monotonic() - IDLE_LIMIT
        while self._idle:
            connection = self._idle.pop()
            if connection.idle_since < oldest:
                connection.close()
                self._close_idle()  # all below are older
            elif addresses is not None and connection.address not in addresses:
                connection.close()
            elif connection.usable:
                return connection
        return None

    async def connect(
        self, addresses: Sequence[str], port: int, *, tls: ssl.SSLContext | None, host: str
    ) -> HttpConnection:
        """A new connection, to the first address that takes one. `tls`: None for plain HTTP. Raises OSError."""
        if not addresses:
            raise OSError("no address")
        try:
            found = await start_connection([_place(each, port) for each in addresses], happy_eyeballs_delay=STAGGER)
        except RuntimeError as error:  # uvloop raises some
            raise OSError(str(error)) from error
        try:
            address: str = found.getpeername()[0]
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: HttpConnection(address, self._kept),
                sock=found,
                ssl=tls,
                server_hostname=None if tls is None else host,
            )
        except BaseException:
            found.close()
            raise
        made: HttpConnection = connection
        return made

    async def ask(self, connection: HttpConnection, request: bytes, seconds: float) -> Answer:
        """Send a whole request and keep the connection when it can carry another.

        Raises `ConnectionBroke`, and `TooLate` when the answer is not there in so many seconds.
        """
        self._under_way[connection] = limit = asyncio.get_running_loop().time() + seconds
        if limit < self._ends_at:
            self._end_at(limit)
        try:
            answer = await connection.exchange(request)
        except BaseException:
            connection.close()
            raise
        finally:
            self._under_way.pop(connection, None)
        if self._closed:
            connection.close()
        elif connection.reusable:
            connection.idle_since = self._clock.monotonic()
            self._idle.append(connection)
            if self._sweeper is None:
                self._sweeper = asyncio.get_running_loop().call_later(IDLE_LIMIT, self._sweep)
        return answer

    def close(self) -> None:
        """Close what is idle now, and what is under way when it is done."""
        self._closed = True
        self._close_idle()
        if self._sweeper is not None:
            self._sweeper.cancel()

    def _close_idle(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _sweep(self) -> None:
        """Close what has been idle for long: after a burst nobody takes it any more."""
        self._sweeper = None
        oldest = self._clock.monotonic() - IDLE_LIMIT
        aged = [connection for connection in self._idle if connection.idle_since <= oldest]  # the first ones
        for connection in aged:
            connection.close()
        del self._idle[: len(aged)]
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
