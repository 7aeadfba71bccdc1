"""The body of a request that is passed on: a small one whole, a large one as it comes.

A connection to a cell costs more than all else that the entry does for a request. So none is opened for a body of which
a client sends a little now and then, until it is whole, or its first 64 KiB are there: a cell does nothing with it
sooner. After some seconds it is passed on as it comes: the cell may refuse it by its head.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, Self

from aiohttp.web_request import BaseRequest

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.entry.figures import REQUEST, EntryFigures
from recado.http.wire.body import UNCOUNTED, ClientLeft, body_chunks, body_with_head
from recado.http.wire.body_pace import BodyPace
from recado.http.wire.byte_budget import SMALL, ByteBudget, Room
from recado.http.wire.rendering import LARGE

HELD: Final = SMALL  # bytes
HELD_SECONDS: Final = 5.0
LETS_GO: Final = 1.0  # seconds, for what is cancelled
_SENT_ONCE: Final = frozenset({"POST", "PATCH"})
"""Of other methods the client sends whole bodies again where a connection at rest has ended."""


class PassedBody:
    """What a request brings: `whole`, or as it comes. `begun`: it cannot be sent once more. `length`: of what is sent,
    where it is known. Used as a context, which ends with the request.
    """

    def __init__(
        self,
        request: BaseRequest,
        clock: Clock,
        pace: BodyPace,
        caller: str,
        whole: bytes | None,
        budget: ByteBudget,
        figures: EntryFigures,
    ) -> None:
        """`budget`: of what is held of bodies that are not whole."""
        self.whole = whole
        self.begun = False
        self.error: BaseException | None = None
        self._request = request
        self._clock = clock
        self._pace = pace
        self._caller = caller
        self._budget = budget
        self._figures = figures
        self._at_once: bytes | None = None
        self._chunks: AsyncGenerator[bytes | memoryview] | None = None  # where not all has come with the head
        self._room: Room | None = None
        self._held = b""  # what has come of them, and is not passed on
        self._reading: asyncio.Future[None] | None = None  # done when nobody waits for the next of them
        if whole is not None:
            self.length: str | None = str(len(whole))
            return
        self.length = request.headers.get("Content-Length")
        if request.method in _SENT_ONCE and has_body(request):
            self._at_once = body_with_head(request, UNCOUNTED)
            if self._at_once is not None:
                self.length = str(len(self._at_once))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._room is not None:
            self._room.give_back()
        if self._chunks is not None and not self.begun:
            await self._chunks.aclose()
        if self._reading is not None:  # by what was cancelled with the answer: the connection reads the rest next
            await asyncio.wait((self._reading,), timeout=LETS_GO)

    async def gather(self) -> bool:
        """Wait until it is whole, its first bytes are there, or they have had their time; whether it waited.

        Where there is no memory for them they are passed on as they come.
        """
        if self.whole is not None or self._at_once is not None or self._chunks is not None:
            return False
        if not has_body(self._request):
            return False
        waits = not self._request.content.is_eof()
        room = self._room = self._budget.room(self._caller)
        until = self._clock.monotonic() + HELD_SECONDS
        held = bytearray()
        async for chunk in self._coming(HELD_SECONDS):
            held += chunk
            if not chunk or len(held) >= HELD or not _takes(room, len(chunk)) or self._clock.monotonic() >= until:
                self._held = bytes(held)
                return waits
        self._end(bytes(held))
        return waits

    def _end(self, content: bytes) -> None:
        """It is whole."""
        self.length = str(len(content))
        if self._request.method in _SENT_ONCE:
            self._at_once = content
        else:
            self._held = content

    def _coming(self, told_after: float | None) -> AsyncGenerator[bytes | memoryview]:
        if self._chunks is None:
            self._chunks = body_chunks(
                self._request, sys.maxsize, self._clock, self._pace, self._caller, told_after=told_after
            )
        return self._chunks

    async def _pieces(self) -> AsyncGenerator[bytes]:
        if self.begun:
            raise RuntimeError("a body comes once")
        self.begun = True
        chunks = self._coming(None)
        try:
            if self._held:
                held, self._held = self._held, b""
                self._figures.passed(REQUEST, len(held))
                yield held
                del held
                if self._room is not None:
                    self._room.give_back()
            while (chunk := await self._next(chunks)) is not None:
                if chunk:
                    self._figures.passed(REQUEST, len(chunk))
                    yield bytes(chunk)  # a block is used again
        except (Problem, ClientLeft) as error:
            self.error = error
            raise
        finally:
            await chunks.aclose()

    async def _next(self, chunks: AsyncGenerator[bytes | memoryview]) -> bytes | memoryview | None:
        reading = self._reading = asyncio.get_running_loop().create_future()
        try:
            return await anext(chunks, None)
        finally:
            self._reading = None
            reading.set_result(None)

    async def _slices(self, whole: bytes) -> AsyncGenerator[bytes]:
        for start in range(0, len(whole), LARGE):
            piece = whole[start : start + LARGE]
            self._figures.passed(REQUEST, len(piece))
            yield piece

    def to_send(self) -> AsyncIterator[bytes] | bytes:
        content = self._at_once
        if content is None:
            return self._pieces() if self.whole is None else self._slices(self.whole)
        self._figures.passed(REQUEST, len(content))
        return content  # it leaves with the head, without a task of its own


def _takes(room: Room, size: int) -> bool:
    """Whether there is memory for so many bytes more."""
    try:
        room.take(size)
    except Problem:
        return False
    return True


def has_body(request: BaseRequest) -> bool:
    """Whether one comes, be it an empty one."""
    return "Content-Length" in request.headers or "Transfer-Encoding" in request.headers
