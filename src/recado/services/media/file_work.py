"""Work on files that would hold the event loop: done by a few threads (C31)."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import IO, Final, ParamSpec, TypeVar

from recado.domain.core.errors import Unavailable
from recado.domain.media.media_types import Bytes

THREADS: Final = 4
_PIECE: Final = 256 * 1024  # bytes

P = ParamSpec("P")
T = TypeVar("T")


class FileWork:
    """A service (`start`, `stop`)."""

    def __init__(self) -> None:
        self._threads: ThreadPoolExecutor | None = None

    async def start(self) -> None:
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="files")

    async def stop(self) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)

    async def do(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._threads is None:
            raise Unavailable("The service stops.")
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(work, *args, **kwargs))

    async def content(self, file: IO[bytes]) -> AsyncGenerator[bytes]:
        """All of a file, from its beginning."""
        at = 0
        while piece := await self.do(read_at, file, at, _PIECE):
            at += len(piece)
            yield piece


def read_at(file: IO[bytes], at: int, length: int) -> bytes:
    """Whoever reads a file alone may go back and forth in it."""
    file.seek(at)
    return file.read(length)


def bytes_of(file: IO[bytes]) -> Bytes:
    return partial(read_at, file)
