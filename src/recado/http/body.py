"""Reads a request's body into memory: within its limit, and only from a client that keeps sending (C2.3.6, C31)."""

import asyncio
from collections.abc import AsyncIterator

from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestPayloadError
from aiohttp.web_request import BaseRequest

from recado.domain.clock import Clock
from recado.domain.errors import Problem

IDLE_SECONDS = 30.0


class ClientLeft(ConnectionError):
    """The connection ended before the body did: there is nobody to answer."""


async def read_body(request: BaseRequest, limit: int, clock: Clock) -> bytes:
    """Return the body; BODY_TOO_LARGE (413) past `limit` bytes, 408 when no byte comes for 30 s.

    A body that arrived together with its head is taken without waiting.
    """
    _check_declared(request, limit)
    payload = request.content
    try:
        if payload.is_eof():
            body = payload.read_nowait()
            if payload.at_eof():
                if len(body) > limit:
                    raise too_large(limit)
                return body
            chunks = bytearray(body)
        else:
            _continue(request)
            chunks = bytearray()
        while chunk := await _next_chunk(payload, clock):
            chunks += chunk
            if len(chunks) > limit:
                raise too_large(limit)
        return bytes(chunks)
    except ConnectionError as error:
        raise ClientLeft from error
    except RequestPayloadError:
        raise _malformed() from None


async def body_chunks(request: BaseRequest, limit: int, clock: Clock) -> AsyncIterator[bytes]:
    """Give the body as it arrives; the same refusals as `read_body`."""
    _check_declared(request, limit)
    payload = request.content
    if not payload.is_eof():
        _continue(request)
    size = 0
    try:
        while chunk := await _next_chunk(payload, clock):
            size += len(chunk)
            if size > limit:
                raise too_large(limit)
            yield chunk
    except ConnectionError as error:
        raise ClientLeft from error
    except RequestPayloadError:
        raise _malformed() from None


def _check_declared(request: BaseRequest, limit: int) -> None:
    declared = request.headers.get("Content-Length")
    if declared is not None and int(declared) > limit:
        raise too_large(limit)


def _malformed() -> Problem:
    return Problem("BAD_REQUEST", "The body does not have the form that its headers announce.")


def too_large(limit: int) -> Problem:
    """Return the 413 of a body over `limit` bytes."""
    return Problem("BODY_TOO_LARGE", f"The body is larger than {limit} bytes.", meta={"limitBytes": limit})


def _continue(request: BaseRequest) -> None:
    """Tell a client that asked first that its body is welcome."""
    if request.headers.get("Expect", "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def _next_chunk(payload: StreamReader, clock: Clock) -> bytes:
    """Return what arrived next, empty at the end; 408 when nothing comes in time."""
    if payload.at_eof():
        return b""
    reader = asyncio.current_task()
    assert reader is not None  # noqa: S101 - a coroutine on an event loop always runs in a task
    idle = False

    def give_up() -> None:
        nonlocal idle
        idle = True
        reader.cancel()

    timer = clock.call_at(clock.monotonic() + IDLE_SECONDS, give_up)
    try:
        return await payload.readany()
    except asyncio.CancelledError:
        if not idle:
            raise
        reader.uncancel()
        raise Problem("BAD_REQUEST", "The body stopped arriving.", status=408) from None
    finally:
        timer.cancel()
