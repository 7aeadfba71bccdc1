"""Work on the files of uploads that would hold the event loop: done by a few threads (C31)."""

from collections.abc import AsyncGenerator
from functools import partial
from typing import IO, Final

from recado.domain.media.media_types import Bytes
from recado.storage.core.shares.fair_threads import FairThreads

_PIECE: Final = 512 * 1024  # bytes


class FileWork(FairThreads):
    """A service (`start`, `stop`)."""

    def __init__(self) -> None:
        super().__init__("files")

    async def content(self, owner: str, file: IO[bytes]) -> AsyncGenerator[bytes]:
        """All of a file, from its beginning."""
        at = 0
        while piece := await self.run(owner, read_at, file, at, _PIECE):
            at += len(piece)
            yield piece


def read_at(file: IO[bytes], at: int, length: int) -> bytes:
    """Whoever reads a file alone may go back and forth in it."""
    file.seek(at)
    return file.read(length)


def bytes_of(file: IO[bytes]) -> Bytes:
    return partial(read_at, file)
