"""A proxy before a server of streams (PostgreSQL), which is slow, stalls, swallows or resets at a word.

Started by a test, or by itself: `python -m tests.faults.proxy PORT|SOCKET`, which prints its port and then reads a
command a line: `delay 0.1`, `stall`, `black_hole`, `reset`, `restore`.
"""

import asyncio
import contextlib
import socket
import struct
import sys
from collections import deque
from collections.abc import AsyncIterator
from enum import Enum
from pathlib import Path
from typing import Any, Self

_PIECE = 65_536  # bytes
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

Server = Path | tuple[str, int]
"""A Unix socket, or host and port."""


class Fault(Enum):
    """What happens to the bytes that arrive."""

    NONE = "none"
    STALL = "stall"  # kept, and passed on when the fault ends: a server that is paused
    BLACK_HOLE = "black_hole"  # gone, and nobody is told: a network that drops packets. Its connections end with it


class FaultProxy:
    """Listens on a port of 127.0.0.1 and passes everything on to `server`. An async context, or `start` and `stop`.

    Every connection is concerned by a fault, those that are made meanwhile too.
    """

    def __init__(self, server: Server) -> None:
        self.port = 0
        self._server = server
        self._delay = 0.0
        self._fault = Fault.NONE
        self._changed = asyncio.Event()
        self._links: set[_Link] = set()
        self._listener: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._listener.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Refuse new connections, and end those that there are."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None
        self.reset()

    @property
    def connections(self) -> int:
        """How many clients are connected."""
        return len(self._links)

    def delay(self, seconds: float) -> None:
        """Let each byte arrive so much later, in either direction: half of what a round trip takes longer."""
        self._delay = seconds

    def stall(self) -> None:
        """Pass nothing on until `restore`."""
        self._set(Fault.STALL)

    def black_hole(self) -> None:
        """Swallow everything until `restore`, which ends the connections that lost bytes."""
        self._set(Fault.BLACK_HOLE)

    def reset(self) -> None:
        """End all connections at once, as a killed server does."""
        for link in list(self._links):
            link.reset()

    def restore(self) -> None:
        """No delay and no fault from now on."""
        self._delay = 0.0
        self._set(Fault.NONE)
        for link in list(self._links):
            if link.lost_bytes:
                link.reset()

    def _set(self, fault: Fault) -> None:
        self._fault = fault
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer)
        self._links.add(link)
        try:
            with contextlib.suppress(OSError):
                there_reader, there = await self._connect()
                link.writers.append(there)
                await asyncio.gather(self._pass_on(reader, there, link), self._pass_on(there_reader, writer, link))
        finally:
            self._links.discard(link)
            link.reset()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if isinstance(self._server, Path):
            return await asyncio.open_unix_connection(self._server)
        return await asyncio.open_connection(*self._server)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: "_Link") -> None:
        """One direction of one connection."""
        loop = asyncio.get_running_loop()
        arrived: deque[tuple[float, bytes]] = deque()  # with the moment at which each piece is due
        more = asyncio.Event()

        async def write() -> None:
            while True:
                while not arrived:
                    more.clear()
                    await more.wait()
                due, piece = arrived.popleft()
                if (left := due - loop.time()) > 0:
                    await asyncio.sleep(left)
                while self._fault is Fault.STALL:
                    await self._changed.wait()
                if self._fault is Fault.BLACK_HOLE:
                    link.lost_bytes = True
                elif piece:
                    writer.write(piece)
                    await writer.drain()
                else:
                    link.reset()
                    return

        writing = asyncio.create_task(write())
        try:
            while piece := await reader.read(_PIECE):
                arrived.append((loop.time() + self._delay, piece))
                more.set()
            arrived.append((loop.time() + self._delay, b""))
            more.set()
            await writing
        finally:
            writing.cancel()


class _Link:
    """One client's connection, and that to the server."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.writers = [client]
        self.lost_bytes = False

    def reset(self) -> None:
        for writer in self.writers:
            connection = writer.get_extra_info("socket")
            if connection is not None and connection.family == socket.AF_INET:
                with contextlib.suppress(OSError):
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
            writer.transport.abort()


@contextlib.asynccontextmanager
async def before_postgres(server: dict[str, Any]) -> AsyncIterator[tuple[FaultProxy, dict[str, Any]]]:
    """A proxy before a PostgreSQL on a Unix socket, and how to connect through it. `server`: how to, without it."""
    port = server.get("port", 5432)
    async with FaultProxy(Path(server["host"]) / f".s.PGSQL.{port}") as proxy:
        yield proxy, {**server, "host": "127.0.0.1", "port": proxy.port, "ssl": "disable"}


async def _obey(server: Server) -> None:
    async with FaultProxy(server) as proxy:
        print(proxy.port, flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            command, *arguments = line.split()
            getattr(proxy, command)(*map(float, arguments))
            print(command, flush=True)


if __name__ == "__main__":
    given = sys.argv[1]
    asyncio.run(_obey(("127.0.0.1", int(given)) if given.isdigit() else Path(given)))
