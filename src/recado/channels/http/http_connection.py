"""One HTTP/1.1 connection that we opened: one request at a time, and of an answer only what is needed.

Lean on purpose: the status decides; of the body as much is kept as is asked for, and at most 64 KiB are read. Whatever
is doubtful about where a body ends costs only the connection, which is then not used again.
"""

import asyncio
import re
import select
from typing import cast

from recado.channels.http.answer import Answer

LONGEST_READ = 64 * 1024  # bytes, of a head and of a body
ENDED = getattr(select, "POLLRDHUP", select.POLLHUP)  # the first is of Linux alone
MOST_INTERIM = 16  # answers before the answer; more would only keep us busy
_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?")
_LENGTH = re.compile(rb"[0-9]{1,18}")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(?:;[^\r\n]*)?")


class ConnectionBroke(Exception):
    """The connection ended without an answer. `began`: something of an answer had come."""

    def __init__(self, reason: str, *, began: bool) -> None:
        super().__init__(reason)
        self.began = began


class TooLate(TimeoutError):
    """No complete answer in time. `answer`: as much as came, once its status is there."""

    def __init__(self, answer: Answer | None) -> None:
        super().__init__()
        self.answer = answer


class HttpConnection(asyncio.Protocol):
    """`address`: where it goes to; `kept`: bytes of an answer's body, at most those that are read.

    `reusable` while it can carry another request; `idle_since`: monotonic seconds.
    """

    def __init__(self, address: str, kept: int) -> None:
        self.address = address
        self._kept = kept
        self.reusable = True
        self.idle_since = 0.0
        self._transport: asyncio.Transport | None = None
        self._end: select.poll | None = None  # tells whether the peer has closed it
        self._waiter: asyncio.Future[Answer] | None = None
        self._reset()

    def _reset(self) -> None:
        self._buffer = bytearray()
        self._interim = 0
        self._status = 0
        self._retry_after: str | None = None
        self._length: int | None = None  # of the body; None: until the end of the connection
        self._chunked = False
        self._doubtful = False  # nobody can tell where the body ends
        self._at = 0  # in the buffer: where the next chunk begins
        self._body = bytearray()  # of chunks, as much as is kept
        self._unfinished = b""  # what has come of the chunk under way, as much as is kept

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        if (connected := transport.get_extra_info("socket")) is not None:
            self._end = select.poll()
            self._end.register(connected.fileno(), ENDED)

    @property
    def usable(self) -> bool:
        """Whether it can carry a request now, as far as we know.

        The system is asked, too: what the peer closed a moment ago the loop has not told yet, and a request written
        there is in doubt.
        """
        return self._open and not (self._end is not None and self._end.poll(0))

    @property
    def _open(self) -> bool:
        return self.reusable and self._transport is not None and not self._transport.is_closing()

    def exchange(self, request: bytes) -> "asyncio.Future[Answer]":
        """Send a whole request; the future has the answer, or raises ConnectionBroke."""
        assert self._transport is not None and self._waiter is None  # noqa: S101, PT018 - taken from the pool
        self._waiter = waiter = asyncio.get_running_loop().create_future()
        if not self._open:
            self._break("the connection was closed")
        else:
            self._transport.write(request)
        return waiter

    def close(self) -> None:
        """End the connection at once: what is still to be written to a hanging peer is not waited for."""
        self.reusable = False
        self._waiter = None
        if self._transport is not None:
            self._transport.abort()

    def give_up(self) -> None:
        """End the connection because the answer was not complete in time; the future raises `TooLate`."""
        came = self._answer(self._beginning(), complete=False) if self._status else None
        self._end_with(TooLate(came))
        self.close()

    # The peer ---------------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._waiter is None:  # nobody asked
            self.close()
            return
        self._buffer += data
        if self._status == 0 and not self._read_head():
            return
        self._read_body()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self.reusable = False
        if self._waiter is not None:
            if self._status:  # a status that came stands, even when the connection broke inside its body
                endless = self._length is None and not self._chunked and not self._doubtful
                self._finish(self._beginning(), complete=endless and exc is None, keep=False)
            else:
                self._break("the connection was closed without an answer" if exc is None else "the connection broke")

    # The answer -------------------------------------------------------------------------------------------------------

    def _read_head(self) -> bool:
        """Whether the head is complete; interim answers are passed over."""
        while True:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > LONGEST_READ:
                    self._break("the answer has no end to its head")
                return False
            first, *lines = bytes(self._buffer[:end]).split(b"\r\n")
            match = _STATUS.fullmatch(first)
            if match is None:
                self._break("the answer is not HTTP/1.1")
                return False
            status = int(match[2])
            del self._buffer[: end + 4]
            if status >= 200:
                break
            self._interim += 1
            if status == 101 or self._interim > MOST_INTERIM:
                self._break("the answer is not HTTP/1.1" if status == 101 else "the answer has no end to its head")
                return False
        self._status = status
        if match[1] == b"0":
            self.reusable = False
        self._read_headers(lines)
        return True

    def _read_headers(self, lines: list[bytes]) -> None:
        for line in lines:
            name, _, value = line.partition(b":")
            match name.strip().lower():
                case b"content-length":
                    length = value.strip()
                    known = int(length) if _LENGTH.fullmatch(length) else None
                    if known is None or self._length not in (None, known):
                        self.reusable, self._doubtful = False, True
                    self._length = known
                case b"transfer-encoding":
                    self._chunked = value.strip().lower() == b"chunked"
                    self.reusable = self.reusable and self._chunked
                    self._doubtful = self._doubtful or not self._chunked
                case b"connection":
                    if b"close" in value.lower():
                        self.reusable = False
                case b"retry-after":
                    self._retry_after = value.strip().decode("latin-1")
        if self._status in (204, 304):
            self._length, self._chunked, self._doubtful = 0, False, False
        if self._chunked:
            self._length = None

    def _read_body(self) -> None:
        if self._doubtful:  # the status is clear; its end may never come
            self._finish(self._beginning(), complete=False, keep=False)
        elif self._chunked:
            self._read_chunks()
        elif self._length is not None and len(self._buffer) >= self._length:
            self._finish(self._beginning(), complete=True, keep=len(self._buffer) == self._length)
        elif len(self._buffer) > LONGEST_READ:
            self._finish(self._beginning(), complete=False, keep=False)

    def _read_chunks(self) -> None:
        buffer = self._buffer
        while True:
            end = buffer.find(b"\r\n", self._at)
            if end < 0:
                break
            match = _CHUNK.fullmatch(buffer, self._at, end)
            if match is None:
                self._finish(bytes(self._body), complete=False, keep=False)
                return
            size = int(match[1], 16)
            if size == 0:
                # With trailers, or something behind it, the connection is not worth the reading.
                if len(buffer) >= end + 4:
                    self._finish(bytes(self._body), complete=True, keep=buffer[end + 2 :] == b"\r\n")
                    return
                break
            # A byte more than is kept: it shows that there was more.
            content = buffer[end + 2 : end + 2 + min(size, self._kept + 1)] if len(self._body) <= self._kept else b""
            if end + 2 + size + 2 > len(buffer):
                self._unfinished = bytes(content)
                break
            self._body += content
            self._unfinished = b""
            self._at = end + 2 + size + 2
        if len(buffer) > LONGEST_READ:
            self._finish(self._beginning(), complete=False, keep=False)

    def _beginning(self) -> bytes:
        return bytes(self._body) + self._unfinished if self._chunked else bytes(self._buffer[: self._length])

    def _finish(self, body: bytes, *, complete: bool, keep: bool) -> None:
        answer = self._answer(body, complete=complete)
        self._reset()
        self._end_with(answer)
        if not keep or not self.reusable:
            self.close()

    def _answer(self, body: bytes, *, complete: bool) -> Answer:
        return Answer(self._status, self._retry_after, body[: self._kept], complete and len(body) <= self._kept)

    def _break(self, reason: str) -> None:
        self._end_with(ConnectionBroke(reason, began=bool(self._buffer)))
        self.close()

    def _end_with(self, outcome: Answer | Exception) -> None:
        """Tell whoever waits; it goes on when this pass of the loop is over."""
        waiter, self._waiter = self._waiter, None
        if waiter is None or waiter.done():
            return
        if isinstance(outcome, Answer):
            waiter.set_result(outcome)
        else:
            waiter.set_exception(outcome)
