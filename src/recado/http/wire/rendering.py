"""Answers as bytes: the head and the body in one write, with the few headers that an answer needs."""

import asyncio
from datetime import datetime
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

import orjson
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.web_request import BaseRequest

from recado.domain.core.timestamps import format_timestamp
from recado.http.wire.byte_budget import ByteBudget

JSON = "application/json"
NO_STORE = "no-store"

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n" for status in HTTPStatus}
LARGE = 64 * 1024  # bytes of a body that is not copied
_BODILESS = frozenset({204, 304})


def dump(body: Any) -> bytes:
    """Return `body` as JSON; a `datetime` in the form of C2.3.5."""
    return orjson.dumps(body, default=_default, option=orjson.OPT_PASSTHROUGH_DATETIME)


def _default(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_timestamp(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


class DateHeader:
    """The `Date` header, rendered once a second."""

    __slots__ = ("_line", "_second")

    def __init__(self) -> None:
        self._second = -1
        self._line = ""

    def line(self, monotonic: float, now: datetime) -> str:
        """Return the header line; `monotonic` in seconds decides when it is rendered again."""
        second = int(monotonic)
        if second != self._second:
            self._second = second
            self._line = f"Date: {format_datetime(now, usegmt=True)}\r\n"
        return self._line


def clean(value: str) -> str:
    """Return a header value that can neither end its line nor leave Latin-1."""
    if value.isascii() and value.isprintable():
        return value
    return "".join(c if c.isprintable() and ord(c) < 256 else "?" for c in value)


def head(status: int, lines: str, length: int, content_type: str | None) -> bytes:
    """Return the head of an answer; `lines` are complete header lines or empty."""
    start = _STATUS_LINES.get(status) or f"HTTP/1.1 {status} \r\n"
    if status in _BODILESS:
        return f"{start}{lines}\r\n".encode("latin-1")
    kind = f"Content-Type: {content_type}\r\n" if content_type else ""
    return f"{start}{kind}Content-Length: {length}\r\n{lines}\r\n".encode("latin-1")


class WireResponse(web.StreamResponse):
    """An answer already rendered to bytes.

    aiohttp asks a response to prepare and to end itself; this one writes its bytes in one go, which spares the header
    maps and the second write of the general response. `_state` and other parts of it stay unset on purpose.
    `large`: a body that is not copied behind its head, so that those who read slowly share one of the documents.
    `unread` counts it with `caller` while it is not taken; None where it does not count.
    """

    def __init__(
        self,
        wire: bytes,
        status: int,
        *,
        keep_alive: bool,
        large: bytes | None = None,
        caller: str = "",
        unread: ByteBudget | None = None,
    ) -> None:
        self.wire = wire
        self.large = large
        self._caller = caller
        self._unread = unread
        self._status = status
        self._keep_alive = keep_alive

    async def prepare(self, request: BaseRequest) -> AbstractStreamWriter | None:
        """Write the whole answer; ConnectionResetError when the client has left."""
        protocol = request.protocol
        transport = protocol.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client has left")
        whole = self.large is not None and self._unread is not None
        if self.large is None:
            transport.write(self.wire)
        else:
            if whole:
                transport.set_write_buffer_limits(0)  # until its last byte is taken the whole body stays in memory
            transport.writelines((self.wire, self.large))
        if protocol.writing_paused:
            await self.taken(request, transport)
        if whole:
            transport.set_write_buffer_limits()
        return None

    async def taken(self, request: BaseRequest, transport: asyncio.Transport) -> None:
        """Wait until the connection takes more; the answer counts meanwhile. ConnectionError when it ends."""
        if self._unread is None:
            await request.writer.drain()
            return
        size = len(self.wire if self.large is None else self.large)
        with self._unread.holding(self._caller, size, transport.abort):
            await request.writer.drain()

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to write."""
