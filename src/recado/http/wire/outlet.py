"""The way around the task of an answer: whoever tells many the same writes it to each, and wakes nobody."""

from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_writer import StreamWriter


def chunk(content: bytes) -> bytes:
    """Return `content`, which is not empty, as one chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(content), content)


class Outlet:
    """Writes to an answer that is being sent piece by piece, while its task waits for the next piece.

    Nothing goes through until the answer has begun, nor where that is not chunked.
    """

    __slots__ = ("_writer",)

    def __init__(self) -> None:
        self._writer: StreamWriter | None = None

    def open(self, writer: AbstractStreamWriter) -> None:
        """The answer is sent with this."""
        if isinstance(writer, StreamWriter):
            self._writer = writer

    @property
    def left(self) -> bool:
        """Whether the client has left: a task that waits for the next piece is not told."""
        return self._writer is not None and self._writer.transport is None

    def push(self, framed: bytes, most: int) -> bool:
        """Write one chunk, or nothing where the client would have more than `most` bytes untaken, or takes none now."""
        writer = self._writer
        if writer is None or not writer.chunked:
            return False
        transport, size = writer.transport, len(framed)
        if (
            transport is None
            or transport.is_closing()
            or writer.protocol.writing_paused
            or transport.get_write_buffer_size() + size > most
        ):
            return False
        transport.write(framed)
        return True

    async def settled(self) -> None:
        """Wait until the client takes more, where it has too much already: the task knows nothing of what went through.

        ConnectionError when it has left.
        """
        if self._writer is not None:
            await self._writer.drain()
