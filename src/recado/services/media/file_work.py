"""Work on the files of uploads that would hold the event loop: done by a few threads (C31)."""

from collections.abc import AsyncGenerator
from functools import partial
from io import BytesIO
from typing import IO, Final

from recado.domain.media.media_types import Bytes
from recado.storage.core.cached_reads import read_cached
from recado.storage.core.shares.fair_threads import FairThreads
from recado.storage.core.turn import others_run

_PIECE: Final = 512 * 1024  # bytes


class FileWork(FairThreads):
    """A service (`start`, `stop`)."""

    def __init__(self) -> None:
        super().__init__("files")

    async def content(self, owner: str, file: IO[bytes], size: int) -> AsyncGenerator[bytes | memoryview]:
        """All `size` bytes of a file, from its beginning. A thread reads what the system has not in memory."""
        at = 0
        while at < size:
            piece = _at_hand(file, at, min(_PIECE, size - at))
            if piece is None:
                piece = await self.run(owner, read_at, file, at, _PIECE)
                if not piece:
                    return
            else:
                await others_run()  # who takes everything at once lets others run
            at += len(piece)
            yield piece


def _at_hand(file: IO[bytes], at: int, length: int) -> bytes | memoryview | None:
    return read_at(file, at, length) if isinstance(file, BytesIO) else read_cached(file.fileno(), at, length)


def read_at(file: IO[bytes], at: int, length: int) -> bytes:
    """Whoever reads a file alone may go back and forth in it."""
    file.seek(at)
    return file.read(length)


def bytes_of(file: IO[bytes]) -> Bytes:
    return partial(read_at, file)
