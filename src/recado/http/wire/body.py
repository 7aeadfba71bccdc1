"""Reads a request's body into memory: within its limit and its caller's share, and only from a client that keeps
sending (C2.3.6, C31).
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable
from functools import partial
from typing import TypeVar

from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest

from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.core.errors import Problem
from recado.http.wire.body_pace import BodyPace
from recado.http.wire.byte_budget import Room
from recado.http.wire.connection import Connection
from recado.http.wire.direct_body import BLOCK, DirectBody
from recado.http.wire.small_pieces import SmallPieces

IDLE_SECONDS = 30.0
WHOLE_SECONDS = 60.0
UNCOUNTED = 16 * 1024  # bytes
_SLOWEST = 1024 * 1024  # bytes a second: beyond the first 60 s, a body has a second for each of its MiB
_PIECE = 64 * 1024
_FAST = 64 * 1024  # bytes that come at once

P = TypeVar("P", bytes, memoryview)


class ClientLeft(ConnectionError):
    """The connection ended before the body did: there is nobody to answer."""


class _Late(Exception):
    """The time of the body, or of its next piece, is over."""


class _NotYet(Exception):
    """The next piece is not there so soon."""


def body_with_head(request: BaseRequest, limit: int) -> bytes | None:
    """Return a body that came whole with its head, and has up to `limit` bytes and 16 KiB; None for any other.

    It counts with its connection, as a head does, which may be larger.
    """
    payload = request.content
    if not payload.is_eof() or payload.total_bytes > min(limit, UNCOUNTED) or "Content-Encoding" in request.headers:
        return None
    return None if payload.exception() is not None else payload.read_nowait()


async def read_body(request: BaseRequest, limit: int, clock: Clock, room: Room, pace: BodyPace) -> bytes:
    """Return the body; the refusals of `body_chunks`, and those of `room`, which holds its bytes from now on.

    A body that arrived together with its head is taken without waiting.
    """
    limit = min(limit, room.most)
    declared = _check_head(request, limit)
    payload = request.content
    if payload.is_eof() and payload.exception() is None:
        body = payload.read_nowait()
        if len(body) > limit:
            raise too_large(limit)
        room.take(len(body))
        return body
    room.take(declared or 0)
    # Joined once at the end: a buffer that grows copies what it holds again and again. Small pieces are gathered first.
    pieces: list[bytes] = []
    gathered = bytearray()
    arrival = _Arrival(request, clock, declared, pace, room.caller)
    try:
        while chunk := await arrival.next():
            if arrival.size > limit:
                raise too_large(limit)
            if declared is None:
                room.take(len(chunk))
            gathered += chunk
            if len(gathered) >= _PIECE:
                pieces.append(bytes(gathered))
                gathered.clear()
        pieces.append(bytes(gathered))
        return b"".join(pieces)
    finally:
        pieces.clear()  # anyone who still holds the frame by an error's traceback does not hold the bytes
        gathered.clear()


async def body_chunks(
    request: BaseRequest, limit: int, clock: Clock, pace: BodyPace, caller: str, *, told_after: float | None = None
) -> AsyncGenerator[bytes | memoryview]:
    """Give the body as it arrives, at the pace of its caller. A piece that is no `bytes` holds until the next is asked
    for. `told_after`: seconds from the beginning, when an empty piece comes, once, in the place of one that is not
    there.

    Raises UNSUPPORTED_MEDIA_TYPE (415) for an encoded one, BODY_TOO_LARGE (413) past `limit` bytes; BAD_REQUEST with
    408 when no byte comes for 30 s, or it takes longer than 60 s and one more for each MiB; `ClientLeft`.
    """
    arrival = _Arrival(request, clock, _check_head(request, limit), pace, caller)
    until = None if told_after is None else clock.monotonic() + told_after
    try:
        while True:
            try:
                chunk = await arrival.next_piece(until)
            except _NotYet:
                until = None
                yield b""
                continue
            if not chunk:
                return
            if arrival.size > limit:
                raise too_large(limit)
            yield chunk
    finally:
        arrival.leave()


def _check_head(request: BaseRequest, limit: int) -> int | None:
    """The declared length, None where none is; refuse what need not be read."""
    headers = request.headers
    if headers.get("Content-Encoding", "identity").strip().lower() != "identity":
        raise Problem(
            "UNSUPPORTED_MEDIA_TYPE",
            "The body must be sent as it is, without Content-Encoding.",
            headers={"Accept-Encoding": "identity"},
        )
    declared = headers.get("Content-Length")
    if declared is None:
        return None
    length = int(declared)
    if length > limit:
        raise too_large(limit)
    return length


def _malformed() -> Problem:
    return Problem("BAD_REQUEST", "The body does not match its Content-Length or Transfer-Encoding header.")


def too_large(limit: int) -> Problem:
    """Return the 413 of a body over `limit` bytes."""
    return Problem(
        "BODY_TOO_LARGE",
        f"The body is larger than the {limit:,} bytes that this operation takes.",
        meta={"limitBytes": limit},
    )


class _Arrival:
    """A body on its way. `size`: the bytes that have come."""

    __slots__ = (
        "_began", "_caller", "_clock", "_declared", "_direct", "_pace", "_payload", "_request", "_small", "_timer",
        "size",
    )  # fmt: skip

    def __init__(self, request: BaseRequest, clock: Clock, declared: int | None, pace: BodyPace, caller: str) -> None:
        self._request = request
        self._payload: StreamReader = request.content
        self._clock = clock
        self._declared = declared or 0
        self._pace = pace
        self._caller = caller
        self._began = clock.monotonic()
        self._direct: DirectBody | None = None
        self._timer: TimerHandle | None = None
        self._small = SmallPieces()
        self.size = 0
        if not self._payload.is_eof() and request.headers.get("Expect", "").lower() == "100-continue":
            transport = request.transport
            if transport is not None:  # a client that asked first is told that its body is welcome
                transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def next(self, until: float | None = None) -> bytes:
        """What came next, empty at the end. `until`: raise `_NotYet` where nothing has come by then."""
        payload = self._payload
        return b"" if payload.at_eof() else await self._taken(self._within_its_time(payload, until))

    async def next_piece(self, until: float | None = None) -> bytes | memoryview:
        """As `next`; of a large body whose client sends fast, a block that is used again by the call after it."""
        if self._direct is None:
            chunk = await self.next(until)
            if len(chunk) >= _FAST and self._declared - self.size >= BLOCK:
                self._go_direct()
            return chunk
        return b"" if self._direct.at_end else await self._taken(self._block_within_its_time(self._direct))

    def _go_direct(self) -> None:
        protocol = self._request.protocol
        if isinstance(protocol, Connection):
            self._direct = protocol.read_directly(self._payload, self._declared, self._clock.monotonic)

    def leave(self) -> None:
        """Whatever else comes is wanted by nobody."""
        if self._direct is not None:
            self._direct.leave()

    async def _taken(self, coming: Awaitable[P]) -> P:
        try:
            chunk = await coming
        except (ConnectionError, RequestPayloadError, _Late) as error:
            # The reader keeps its error, and an error its frames: a circle that only the collector would find.
            error.__traceback__ = None
            if isinstance(error, ConnectionError):
                raise ClientLeft from None
            raise (_late() if isinstance(error, _Late) else _malformed()) from None
        self.size += len(chunk)
        wait = self._pace.take(self._caller, len(chunk))
        if self._direct is None and not self._payload.is_eof():
            gathering = self._small.wait(len(chunk), self._clock.monotonic() - self._began)
            if gathering > wait and isinstance(protocol := self._request.protocol, Connection):
                await protocol.gather(gathering)
                return chunk
        if wait:
            await self._clock.sleep(wait)
        return chunk

    async def _within_its_time(self, payload: StreamReader, until: float | None) -> bytes:
        now, end = self._clock.monotonic(), self._end()
        if not payload.is_eof() and self._request.transport is None:
            raise ConnectionResetError
        due = min(now + IDLE_SECONDS, end)
        if until is not None and until < due:
            try:
                async with asyncio.timeout(until - now):
                    return await payload.readany()
            except TimeoutError:
                raise _NotYet from None
        timer = self._clock.call_at(due, lambda: payload.set_exception(_Late()))
        try:
            return await payload.readany()
        finally:
            timer.cancel()

    async def _block_within_its_time(self, direct: DirectBody) -> memoryview:
        """It may take longer to fill than a client may be silent."""
        end = self._end()
        direct.heard_at = self._clock.monotonic()
        self._look(direct, end)
        try:
            return await direct.next()
        finally:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None

    def _look(self, direct: DirectBody, end: float) -> None:
        """Whether the client still sends, now and when it could have been silent for too long."""
        due = min(direct.heard_at + IDLE_SECONDS, end)
        if self._clock.monotonic() >= due:
            direct.fail(_Late())
        else:
            self._timer = self._clock.call_at(due, partial(self._look, direct, end))

    def _end(self) -> float:
        """When it must be whole."""
        end = self._began + WHOLE_SECONDS + max(self._declared, self.size) / _SLOWEST
        if self._clock.monotonic() >= end:
            raise _Late
        return end


def _late() -> Problem:
    return Problem("BAD_REQUEST", "The body took too long to arrive.", status=408)
