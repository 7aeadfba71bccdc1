"""A link between two processes of one machine: frames over a stream socket, in order, written once a turn of the loop.

A frame is a line of JSON: its kind, and what it says. Neither end waits for the other. For an end that does not read so
much is kept and no more: what is given then is dropped, counted, and whoever gave it is told.
"""

import asyncio
import socket
from collections.abc import Callable, Mapping
from typing import Any, Final

import orjson
import structlog

MOST_UNREAD: Final = 8 * 1024 * 1024
"""Bytes that are kept for an end that does not read."""
LONGEST_FRAME: Final = 1024 * 1024  # bytes: read and taken in one turn of the loop

log = structlog.get_logger(__name__)

Take = Callable[[Any], None]
"""Hears what a frame of its kind says."""


class Link(asyncio.Protocol):
    """One end. `dropped`: frames that were given and never went, since the start."""

    def __init__(self, takes: Mapping[str, Take], *, lost: Callable[[], None]) -> None:
        """`takes`: by kind of frame. `lost` is told once when the other end is gone, or says what is no frame."""
        self._takes = {kind.encode(): take for kind, take in takes.items()}
        self._lost: Callable[[], None] | None = lost
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._given: list[bytes] = []
        self._size = 0  # bytes of what was given in this turn
        self._rest = b""  # the beginning of a frame
        self._full = False  # more is kept than goes at once
        self._room = asyncio.Event()
        self._room.set()
        self.dropped = 0

    @classmethod
    async def over(cls, end: socket.socket, takes: Mapping[str, Take], *, lost: Callable[[], None]) -> "Link":
        """A link over one end of a pair of connected sockets, which is the link's from now on."""
        end.setblocking(False)
        link = cls(takes, lost=lost)
        await link._loop.connect_accepted_socket(lambda: link, end)
        return link

    def give(self, kind: str, said: object = None) -> bool:
        """Send a frame with the others of this turn; False when it is dropped. `said`: what JSON can say."""
        transport = self._transport
        if transport is None or self._size + transport.get_write_buffer_size() > MOST_UNREAD:
            self.dropped += 1
            return False
        line = b"%s %s\n" % (kind.encode(), orjson.dumps(said))
        if len(line) > LONGEST_FRAME:  # the other end would take it for what is no frame, and end
            self.dropped += 1
            return False
        if not self._given:
            self._room.clear()
            self._loop.call_soon(self._write)
        self._given.append(line)
        self._size += len(line)
        return True

    async def room(self) -> None:
        """Until little of what was given is unread, or the other end is gone: who says much waits for it."""
        await self._room.wait()

    def close(self) -> None:
        """End the link without a word to whoever hears of a loss; safe to call twice."""
        self._lost = None
        self._end()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport  # type: ignore[assignment]

    def pause_writing(self) -> None:
        self._full = True
        self._room.clear()

    def resume_writing(self) -> None:
        self._full = False
        if not self._given:
            self._room.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def data_received(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data if self._rest else data).split(b"\n")
        if len(self._rest) > LONGEST_FRAME:
            self._rest = b""
            self._end()
            return
        for line in lines:
            kind, _, said = line.partition(b" ")
            take = self._takes.get(kind)
            if take is None:
                self._end()
                return
            try:
                take(orjson.loads(said))
            except Exception as error:  # noqa: BLE001 - what one frame says must not end the others
                # The text of the error may hold what the frame says.
                log.error("frame_not_taken", kind=kind.decode("ascii", "replace"), error=type(error).__qualname__)

    def _write(self) -> None:
        given, self._given = self._given, []
        self._size = 0
        if self._transport is not None:
            self._transport.write(b"".join(given))
        if not self._full:
            self._room.set()

    def _end(self) -> None:
        transport, self._transport = self._transport, None
        self._given.clear()
        self._room.set()
        if transport is not None:
            transport.abort()
        lost, self._lost = self._lost, None
        if lost is not None:
            lost()
