"""Connections on both sides of a hand-over: a front's, which answers few requests itself, and those that were taken."""

import asyncio
from typing import Any

from aiohttp import hdrs, web
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import _ErrInfo

from recado.http.wire.connection import END_OF_HEAD, Connection
from recado.http.wire.handover import Giving


class FrontConnection(Connection):
    """A connection of a front. It goes over to the owner, to its end, with the first request that is not local.

    The parser gets one request at a time, and nothing of what follows it: that may be for the owner. What is not
    plainly local is the owner's, which answers everything: half a head, chunks, `Expect`, another protocol.
    """

    __slots__ = ("_behind", "_given", "_left", "giving")

    def __init__(self, server: web.Server, *, giving: Giving, **options: Any) -> None:
        super().__init__(server, **options)
        self.giving = giving
        self._left = 0  # bytes of the body of the newest request that still come
        self._behind = b""  # what came behind it; reading is paused meanwhile
        self._given = False

    @property
    def idle(self) -> bool:
        """One that waits for the owner has a request under way."""
        return not self._given and super().idle

    @property
    def unread(self) -> bool:
        """Likewise."""
        return not self._given and super().unread

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        if not data:  # something waited in the parser
            super().data_received(data)
            return
        if self._force_close or self._close:
            return
        if self._behind:
            self._behind += data
            return
        if self._left:
            body = data[: self._left]
            self._left -= len(body)
            super().data_received(body)
            data = data[len(body) :]
            if not data:
                return
        if self.idle:
            self._begin(data)
        else:
            self._keep(data)

    def _begin(self, data: bytes) -> None:
        """A new request, while none is under way."""
        end = data.find(END_OF_HEAD) + len(END_OF_HEAD)
        if end < len(END_OF_HEAD) or not self.giving.local(data):
            self._give(data)
            return
        super().data_received(data[:end])
        message = self._messages[-1][0] if self._messages else None
        if isinstance(message, _ErrInfo):
            return
        if message is None or message.chunked or message.upgrade or hdrs.EXPECT in message.headers:
            self._give(data)
            return
        length = int(message.headers.get(hdrs.CONTENT_LENGTH, 0))
        body = data[end : end + length]
        self._left = length - len(body)
        if body:
            super().data_received(body)
        if len(data) > end + length:
            self._keep(data[end + length :])

    def _keep(self, data: bytes) -> None:
        """Until the request before it is answered, and the answer sent: who takes the connection sends the next."""
        self._behind = data
        self._wait_for_room()
        if not self._messages and not self._answering:
            self._loop.call_soon(self._go_on)

    def _stays(self) -> bool:
        stays = super()._stays()
        if stays and self._behind:
            self._loop.call_soon(self._go_on)
        return stays

    def _go_on(self) -> None:
        """See whose the next request is, when nothing is left of the one before it."""
        transport = self._open_transport
        if transport is None or not self._behind or self._force_close or self._close:
            return
        if self._messages or self._answering:
            return
        if self._unsent:
            if not self.writing_paused:
                transport.set_write_buffer_limits(0)  # `resume_writing` says when all is sent
            return
        data, self._behind = self._behind, b""
        self._begin(data)
        if self._buffer_paused and not self._force_close:
            self._resume_reading_if_drained()

    def resume_writing(self) -> None:
        """The client takes more."""
        super().resume_writing()
        if self._behind and self._open_transport is not None:
            self._open_transport.set_write_buffer_limits()
            self._loop.call_soon(self._go_on)

    def _resume_reading_if_drained(self) -> None:
        if not self._behind:
            super()._resume_reading_if_drained()

    def _give(self, data: bytes) -> None:
        """Hand the connection over; from here on nothing is read, nor answered, here."""
        transport, self.transport = self.transport, None
        self._given = True
        self._messages.clear()
        self.force_close()
        if transport is None or transport.is_closing():
            return
        transport.pause_reading()
        self.giving.give(self, data)

    def rest_elsewhere(self) -> None:
        """Go over to the owner with nothing, where no request is under way: this front is about to end."""
        rests = self.idle and self.rest is None and not self._behind and not self._left and self._between_messages
        if rests and not self._force_close and not self._close:
            self._give(b"")

    def take_back(self, payload: StreamReader) -> None:
        """A body came whole past the parser, and past what counts here how much of it is left."""
        self._left = 0
        super().take_back(payload)

    @property
    def network(self) -> str:
        """Where the client is."""
        return self._network

    def fileno(self) -> int:
        """The descriptor; -1 when the client has left."""
        transport = self._open_transport
        if transport is None or transport.is_closing():
            return -1
        return int(transport.get_extra_info("socket").fileno())

    def gone_over(self) -> None:
        """Let go of it, without a word to its client: it is the owner's."""
        self.limits.leave(self)
        if self._open_transport is not None:
            self._open_transport.abort()

    def turned_away(self) -> None:
        """Answer that there is no place, and end."""
        transport = self._open_transport
        if transport is not None and not transport.is_closing():
            transport.write(self.answer_error(503, None).wire)
            transport.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Notice that the client is gone, or the owner's."""
        super().connection_lost(exc)
        self._behind = b""


class TakenConnection(Connection):
    """A connection that a front has handed over. `first`: what its client had sent.

    Empty when the front left while the connection rested. Then it may rest on, and ends with its next answer: the
    client's next connection is a front's again.
    """

    __slots__ = ("_ends_next", "first")

    def __init__(self, server: web.Server, *, first: bytes, **options: Any) -> None:
        super().__init__(server, **options)
        self.first = first
        self._ends_next = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; only when this is over, reading can be paused."""
        super().connection_made(transport)
        if self.first:
            self._loop.call_soon(self._take_first)
        elif self._open_transport is not None:
            self.begun, self._keepalive, self._ends_next = False, True, True
            self._stays()

    def data_received(self, data: bytes) -> None:
        """Take what the client sent, and before it what the front had read."""
        if self.first:
            data, self.first = self.first + data, b""
        super().data_received(data)

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The client sends no more. What had come before is answered, as it would be if it came at this moment."""
        if not self.first:
            return super().eof_received()
        self._take_first()
        self.close()
        return True

    def _take_first(self) -> None:
        if self.first:
            self.data_received(b"")

    def _enqueue(self, message: tuple[Any, StreamReader]) -> None:
        head, body = message
        if self._ends_next and not isinstance(head, _ErrInfo):
            message = (head._replace(should_close=True), body)
        super()._enqueue(message)
