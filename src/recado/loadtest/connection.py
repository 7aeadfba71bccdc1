"""One HTTP/1.1 connection that is kept alive and carries one request at a time.

Lean on purpose: what a general client spends on a request, a server under test on the same machine would lack.
"""

import asyncio
from collections.abc import Callable
from typing import cast

Answered = Callable[[int, bytes], None]


class LoadConnection(asyncio.Protocol):
    """Reads answers with a Content-Length; anything else closes the connection, as an error would."""

    def __init__(self, lost: "Callable[[LoadConnection], None]") -> None:
        """`lost` is called once, when the connection has ended; a request without an answer was never answered then."""
        self._lost = lost
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._answered: Answered | None = None

    @property
    def waiting(self) -> bool:
        """Whether a request is under way."""
        return self._answered is not None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class

    def send(self, request: bytes, answered: Answered) -> None:
        """Send a whole request; `answered` is called with status and body."""
        assert self._transport is not None  # noqa: S101 - the protocol was connected
        self._answered = answered
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        answer = parse_answer(self._buffer)
        if answer is None:
            return
        status, body, keeps, rest = answer
        answered, self._answered = self._answered, None
        self._buffer = bytearray()
        if rest or not keeps or answered is None:
            self.close()
        if answered is not None:
            answered(status, body)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost(self)

    def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()


def parse_answer(buffer: bytes | bytearray) -> tuple[int, bytes, bool, int] | None:
    """Return status, body, whether the connection stays, and the bytes beyond the answer; None while it is incomplete.

    An answer of unknown length counts as one without a body that ends the connection.
    """
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    head = bytes(buffer[:end]).lower()
    status = int(head[9:12]) if head[9:12].isdigit() else 0
    start = end + 4
    at = head.find(b"\r\ncontent-length:")
    if at < 0:
        return status, b"", status in (204, 304), len(buffer) - start
    length = int(head[at + 17 :].partition(b"\r\n")[0])
    if len(buffer) < start + length:
        return None
    keeps = b"\r\nconnection: close" not in head
    return status, bytes(buffer[start : start + length]), keeps, len(buffer) - start - length
