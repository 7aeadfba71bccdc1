"""Takes the connections that clients ask for, and makes them ready in turns by the network that they come from (C31).

An event loop's own server takes one connection in each of its turns. The others wait in the kernel's line, everybody's
behind those of whoever opens very many; what such a caller keeps waiting here is its own.
"""

import asyncio
import math
import socket
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from recado.domain.core.clock import Clock, TimerHandle
from recado.http.wire.client_ip import network_of
from recado.http.wire.connection_limits import ConnectionLimits

BACKLOG: Final = 2048
MOST_WAITING: Final = 1_000
"""Connections of one network that are not ready yet; more are refused."""

TAKEN: Final = 64
"""In one turn of the event loop."""

_READY_AT_ONCE: Final = 8
_AGAIN_AFTER: Final = 1.0  # seconds, when the kernel has no descriptor or memory for another
_TOLD_EVERY: Final = 60.0  # seconds

_BROUGHT: Final = 16 * 1024 * 1024  # bytes that came with connections which are not ready yet

_Arrived = tuple[socket.socket, Callable[[], asyncio.Protocol], int]
"""With what makes a connection of it, and how many bytes it brought."""

log = structlog.get_logger()


class Arrivals:
    """A service. Connections without a place are counted in `limits.refused`."""

    def __init__(
        self,
        bound: Sequence[socket.socket],
        connection: Callable[[], asyncio.Protocol],
        *,
        taken: Callable[[bytes], asyncio.Protocol] | None = None,
        places: int,
        at_once: int = TAKEN,
        limits: ConnectionLimits,
        refusal: Callable[[], bytes],
        clock: Clock,
    ) -> None:
        """`bound`: sockets that have their address; they are closed at the end. `taken`: makes a connection that brings
        what its client has sent. `places`: connections that are not ready yet; the others are left in the kernel's
        line, where they take no descriptor. `at_once`: taken in one turn of the event loop, of which a process that
        listens beside others leaves them some. `refusal`: what one without a place is told.
        """
        self._bound = bound
        self._connection = connection
        self._taken = taken
        self._places = places
        self._at_once = at_once
        self._limits = limits
        self._refusal = refusal
        self._clock = clock
        self._waiting: dict[str, deque[_Arrived]] = {}  # by network: the first one is next
        self.waiting = 0  # how many are not ready yet; those that are being made ready are among them
        self._brought = 0  # bytes, by those of `_waiting`
        self._making: asyncio.Task[None] | None = None
        self._again: TimerHandle | None = None
        self._tell_from = -math.inf
        self.listening = False

    def start(self) -> None:
        """Listen; safe to call twice."""
        if not self.listening:
            self.listening = True
            for each in self._bound:
                each.setblocking(False)
                each.listen(BACKLOG)
            self._read_on()

    def leave_address(self) -> None:
        """Take no more; what was taken is made ready, for which `settled` waits. Safe to call twice."""
        loop = asyncio.get_running_loop()
        if self._again is not None:
            self._again.cancel()
        for each in self._bound:
            if each.fileno() >= 0:
                loop.remove_reader(each)
                each.close()

    def stop(self) -> None:
        """Take no more, and close what is not ready; safe to call twice."""
        self.leave_address()
        for line in self._waiting.values():
            self.waiting -= len(line)
            for each, _, _ in line:
                each.close()
        self._waiting.clear()
        self._brought = 0

    async def settled(self) -> None:
        """Until those that were being made ready are, also when another who waited for that was cancelled.

        Only after `stop` or `leave_address`: else others come.
        """
        if self._making is not None:
            await asyncio.shield(self._making)

    @property
    def room(self) -> int:
        """How many more may wait until they are ready."""
        return self._places - self.waiting if self._brought < _BROUGHT else 0

    def bring(self, arrived: socket.socket, first: bytes) -> None:
        """A connection that another process took, with what its client has sent."""
        assert self._taken is not None  # noqa: S101 - whoever brings connections has said how they are made
        try:
            arrived.setblocking(False)
            address = arrived.getpeername()
        except OSError:
            arrived.close()  # its client has left
            return
        self._queue(arrived, _network(address), partial(self._taken, first), len(first))

    def _read_on(self) -> None:
        self._again = None
        for each in self._bound:
            asyncio.get_running_loop().add_reader(each, self._take, each)

    def _take(self, bound: socket.socket) -> None:
        for _ in range(min(self._at_once, self.room)):
            try:
                arrived, address = bound.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                continue  # it is gone already
            except OSError as error:
                self._tell(error)
                for each in self._bound:
                    asyncio.get_running_loop().remove_reader(each)
                self._again = self._clock.call_at(self._clock.monotonic() + _AGAIN_AFTER, self._read_on)
                return
            self._queue(arrived, _network(address), self._connection, 0)

    def _tell(self, error: OSError) -> None:
        """Say that no connection can be taken, once in a while: it is tried again every second."""
        now = self._clock.monotonic()
        if now >= self._tell_from:
            self._tell_from = now + _TOLD_EVERY
            log.warning("connections_not_taken", error=error.strerror)

    def _queue(
        self, arrived: socket.socket, network: str, connection: Callable[[], asyncio.Protocol], brought: int
    ) -> None:
        line = self._waiting.setdefault(network, deque())
        if len(line) >= MOST_WAITING:
            self._limits.refused += 1
            arrived.setblocking(False)
            with arrived, suppress(OSError):
                arrived.send(self._refusal())
            return
        line.append((arrived, connection, brought))
        self._brought += brought
        self.waiting += 1
        if self._making is None or self._making.done():
            self._making = asyncio.get_running_loop().create_task(self._make_ready(), name="arrivals")

    async def _make_ready(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            ready = [self._next() for _ in range(_READY_AT_ONCE) if self._waiting]
            await asyncio.gather(
                *(loop.connect_accepted_socket(connection, each) for each, connection, _ in ready),
                return_exceptions=True,
            )
            self.waiting -= len(ready)

    def _next(self) -> _Arrived:
        """One of the network whose turn it is, which stands last after it."""
        network, line = next(iter(self._waiting.items()))
        del self._waiting[network]
        arrived = line.popleft()
        self._brought -= arrived[2]
        if line:
            self._waiting[network] = line
        return arrived


def _network(address: object) -> str:
    """That of a peer; none of one on a Unix socket."""
    return network_of(address[0]) if isinstance(address, tuple) else ""
