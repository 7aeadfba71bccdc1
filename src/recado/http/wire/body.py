"""Reads a request's body into memory: within its limit and its caller's share, and only from a client that keeps
sending (C2.3.6, C31).
"""

from collections.abc import AsyncIterator

from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.http.wire.body_pace import BodyPace
from recado.http.wire.byte_budget import Room

IDLE_SECONDS = 30.0
WHOLE_SECONDS = 60.0
UNCOUNTED = 16 * 1024  # bytes
_SLOWEST = 1024 * 1024  # bytes a second: beyond the first 60 s, a body has a second for each of its MiB
_PIECE = 64 * 1024


class ClientLeft(ConnectionError):
    """The connection ended before the body did: there is nobody to answer."""


class _Late(Exception):
    """The time of the body, or of its next piece, is over."""


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
    request: BaseRequest, limit: int, clock: Clock, pace: BodyPace, caller: str
) -> AsyncIterator[bytes]:
    """Give the body as it arrives, at the pace of its caller.

    Raises UNSUPPORTED_MEDIA_TYPE (415) for an encoded one, BODY_TOO_LARGE (413) past `limit` bytes; BAD_REQUEST with
    408 when no byte comes for 30 s, or it takes longer than 60 s and one more for each MiB; `ClientLeft`.
    """
    arrival = _Arrival(request, clock, _check_head(request, limit), pace, caller)
    while chunk := await arrival.next():
        if arrival.size > limit:
            raise too_large(limit)
        yield chunk


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

    __slots__ = ("_began", "_caller", "_clock", "_declared", "_pace", "_payload", "_request", "size")

    def __init__(self, request: BaseRequest, clock: Clock, declared: int | None, pace: BodyPace, caller: str) -> None:
        self._request = request
        self._payload: StreamReader = request.content
        self._clock = clock
        self._declared = declared or 0
        self._pace = pace
        self._caller = caller
        self._began = clock.monotonic()
        self.size = 0
        if not self._payload.is_eof() and request.headers.get("Expect", "").lower() == "100-continue":
            transport = request.transport
            if transport is not None:  # a client that asked first is told that its body is welcome
                transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    async def next(self) -> bytes:
        """What came next, empty at the end."""
        payload = self._payload
        if payload.at_eof():
            return b""
        try:
            chunk = await self._within_its_time(payload)
        except (ConnectionError, RequestPayloadError, _Late) as error:
            # The reader keeps its error, and an error its frames: a circle that only the collector would find.
            error.__traceback__ = None
            if isinstance(error, ConnectionError):
                raise ClientLeft from None
            raise (_late() if isinstance(error, _Late) else _malformed()) from None
        self.size += len(chunk)
        wait = self._pace.take(self._caller, len(chunk))
        if wait:
            await self._clock.sleep(wait)
        return chunk

    async def _within_its_time(self, payload: StreamReader) -> bytes:
        now = self._clock.monotonic()
        end = self._began + WHOLE_SECONDS + max(self._declared, self.size) / _SLOWEST
        if now >= end:
            raise _Late
        if not payload.is_eof() and self._request.transport is None:
            raise ConnectionResetError
        timer = self._clock.call_at(min(now + IDLE_SECONDS, end), lambda: payload.set_exception(_Late()))
        try:
            return await payload.readany()
        finally:
            timer.cancel()


def _late() -> Problem:
    return Problem("BAD_REQUEST", "The body took too long to arrive.", status=408)
