"""A large body on its way from the socket into blocks of memory that are used again: nothing of it is parsed, copied or
joined before a thread has it (C31).
"""

import asyncio
from collections import deque
from collections.abc import Callable
from mmap import mmap
from typing import Final, Protocol

from aiohttp.streams import StreamReader

BLOCK: Final = 512 * 1024  # bytes
_BLOCKS: Final = 2  # of a body: one is being filled while another is used


class BodyReceiver(Protocol):
    """The connection whose place is taken."""

    def take_back(self, payload: StreamReader) -> None:
        """The body was read to its last byte, and nothing behind it."""

    def connection_lost(self, exc: BaseException | None) -> None: ...

    def eof_received(self) -> bool | None: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...


class DirectBody(asyncio.BufferedProtocol):
    """Stands at the transport of a connection until the last byte of a body has come.

    `heard_at`: when the last of its bytes came.
    Who reads it asks for `next` and at last for `leave`. What comes after that is a body which nobody wanted: the
    connection has it in its reader, as any other.
    """

    __slots__ = (
        "_block", "_connection", "_error", "_filled", "_free", "_full", "_given", "_left", "_made", "_monotonic",
        "_paused", "_payload", "_transport", "_unwanted", "_waiter", "heard_at",
    )  # fmt: skip

    def __init__(
        self,
        connection: BodyReceiver,
        transport: asyncio.Transport,
        payload: StreamReader,
        left: int,
        monotonic: Callable[[], float],
    ) -> None:
        """`payload`: the reader of its beginning, of which nothing is left in it; `left`: bytes that are to come."""
        self._connection = connection
        self._transport = transport
        self._payload = payload
        self._left = left
        self._monotonic = monotonic
        self.heard_at = monotonic()
        self._block: memoryview | None = None  # that is being filled
        self._filled = 0  # bytes of it
        self._free: list[memoryview] = []
        self._full: deque[tuple[memoryview, int]] = deque()  # with how many bytes of it count
        self._given: memoryview | None = None
        self._made = 0
        self._paused = False
        self._unwanted = False
        self._error: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None
        place(transport, self)

    @property
    def at_end(self) -> bool:
        """Nothing is left for `next`."""
        return not (self._left or self._full)

    # For who reads it -------------------------------------------------------------------------------------------------

    async def next(self) -> memoryview:
        """A block, whole unless it is the last one; empty at the end. It is used again when the next one is asked for.

        Raises what `fail` was told.
        """
        given, self._given = self._given, None
        if given is not None:
            self._free.append(given)
            self._go_on()
        while not self._full:
            if self._error is not None:
                raise self._error
            if not self._left:
                return memoryview(b"")
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        self._given, size = self._full.popleft()
        return self._given[:size]

    def fail(self, error: BaseException) -> None:
        """Nothing more of it comes."""
        if self._left:
            self._error = error
            self._full.clear()
            self._wake()

    def leave(self) -> None:
        """Nobody uses its blocks any more."""
        self._unwanted = True
        self._full.clear()
        self._free.clear()
        self._given = None
        if self._left:
            if self._filled and self._block is not None:
                self._drop(self._block)
            self._go_on()
        else:
            self._block = None

    # For the transport ------------------------------------------------------------------------------------------------

    def get_buffer(self, sizehint: int) -> memoryview:
        block = self._block
        if block is None:
            block = self._block = self._free.pop() if self._free else self._new()
        return block[self._filled : self._filled + self._left]

    def buffer_updated(self, nbytes: int) -> None:
        block = self._block
        assert block is not None  # noqa: S101 - it was given to be filled
        self._left -= nbytes
        self._filled += nbytes
        self.heard_at = self._monotonic()
        self._payload.total_bytes += nbytes
        if self._unwanted:
            self._drop(block)
        elif not self._left or self._filled == len(block):
            self._full.append((block, self._filled))
            self._block, self._filled = None, 0
            if self._left and not self._free and self._made == _BLOCKS:
                self._paused = True
                self._transport.pause_reading()
            self._wake()
        if not self._left:
            place(self._transport, self._connection)  # type: ignore[arg-type] # a connection is a protocol
            self._connection.take_back(self._payload)

    def connection_lost(self, exc: BaseException | None) -> None:
        self.fail(exc or ConnectionResetError())
        self._connection.connection_lost(exc)

    def eof_received(self) -> bool | None:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    # Parts ------------------------------------------------------------------------------------------------------------

    def _new(self) -> memoryview:
        """Of pages that are taken when they are written, and given back with the body: a slow client holds few."""
        self._made += 1
        return memoryview(mmap(-1, min(BLOCK, self._left)))

    def _go_on(self) -> None:
        if self._paused:
            self._paused = False
            self._transport.resume_reading()

    def _drop(self, block: memoryview) -> None:
        """Into the reader, which lets no more come than somebody takes out of it."""
        piece, self._filled = bytes(block[: self._filled]), 0
        self._payload.total_bytes -= len(piece)  # the reader counts it
        self._payload.feed_data(piece)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def place(transport: asyncio.Transport, protocol: asyncio.BaseProtocol) -> None:
    """Let the protocol have what comes: how a transport reads for it is settled when it begins to read."""
    if transport.is_closing():
        transport.set_protocol(protocol)
        return
    transport.pause_reading()
    transport.set_protocol(protocol)
    transport.resume_reading()
