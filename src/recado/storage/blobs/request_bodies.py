"""Bodies of requests that bring binaries to a bucket, each with the hash that its request is signed with (C31).

What is in a file is sent whole: by the system, where nothing has to encrypt it. Else threads read what the system has
not in memory; what it has is read without one.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from hashlib import sha256
from typing import Concatenate, Final, ParamSpec, TypeVar

from recado.storage.blobs.blobs import BLOCK, HashedFile, blocks
from recado.storage.core.cached_reads import read_cached
from recado.storage.core.shares.fair_threads import FairThreads
from recado.storage.core.turn import others_run

SENT: Final = 512 * 1024  # bytes of a file that are read and sent at once
AT_ONCE: Final = 1024 * 1024  # bytes of a file that a thread sends, without reading them
FURTHER: Final = 16 * 1024 * 1024  # bytes of a file, after each of which whoever waits for the whole is told

P = ParamSpec("P")
T = TypeVar("T")


class FileBody:
    """A file that has a descriptor, and changes no more: a piece of it is in memory at a time. `owner`: whose share of
    the threads it takes; `further`: called each time that so many bytes more have gone as never before.
    """

    def __init__(
        self, threads: FairThreads, owner: str, file: HashedFile, size: int, further: Callable[[], object]
    ) -> None:
        self._threads = threads
        self._owner = owner
        self._descriptor = file.file.fileno()
        self._size = size
        self._further = further
        self._next = FURTHER
        self._under_way = set[asyncio.Task[object]]()
        self._left = False
        self.sha256 = file.sha256

    def __len__(self) -> int:
        return self._size

    async def __aiter__(self) -> AsyncGenerator[bytes | memoryview]:
        """From its beginning, each time. Raises OSError."""
        for at in range(0, self._size, SENT):
            self._come_to(at)
            yield await self._read(at, min(SENT, self._size - at))

    def seek(self, at: int) -> None:
        """What is asked before it is sent again: each sending begins at the beginning."""
        assert at == 0  # noqa: S101 - nothing else is asked

    async def send(self, socket: int, at: int) -> int:
        """Send what follows `at`, from where the system has it, to a socket that holds nobody up; how many bytes went.
        Raises OSError: `BlockingIOError` while the socket takes none.
        """
        went = await self._run(_send, socket, at, min(AT_ONCE, self._size - at))
        self._come_to(at + went)
        return went

    def _come_to(self, at: int) -> None:
        if at >= self._next:
            self._next += FURTHER
            self._further()

    async def _read(self, at: int, length: int) -> bytes | memoryview:
        """All of these bytes."""
        self._check()
        cached = read_cached(self._descriptor, at, length)
        if cached is None:
            return await self._run(_read, at, length)
        await others_run()  # whoever sends to a socket that takes everything lets others run
        return cached

    async def leave(self) -> None:
        """Wait until no thread has its descriptor, and let none have it again: it may be another file's soon. Whoever
        sends it may have been broken off within a piece.
        """
        self._left = True
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def _run(self, work: Callable[Concatenate[int, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        self._check()
        task = asyncio.ensure_future(self._threads.run(self._owner, work, self._descriptor, *args, **kwargs))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return await task

    def _check(self) -> None:
        if self._left:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))


class MemoryPart:
    """Of a binary that is in no file: all of it is in memory."""

    def __init__(self, pieces: Sequence[bytes], digest: str) -> None:
        self._pieces = pieces
        self.sha256 = digest

    def __len__(self) -> int:
        return sum(map(len, self._pieces))

    async def __aiter__(self) -> AsyncGenerator[bytes | memoryview]:
        for piece in self._pieces:
            yield piece
            await others_run()  # as above

    def seek(self, at: int) -> None:
        assert at == 0  # noqa: S101 - as above


async def parts_of(
    threads: FairThreads, owner: str, content: AsyncIterable[bytes | memoryview], size: int, digest: str | None = None
) -> AsyncGenerator[MemoryPart]:
    """What comes, in parts of `size`, a multiple of a block; the last one, which may be empty, is shorter or the only
    one. Whoever lets go of each before the next has one in memory. `digest`: of all of it, where that is known.
    """
    held, length, several = list[bytes](), 0, False
    async for block in blocks(content, BLOCK):
        held.append(block)
        length += len(block)
        if length == size:
            taken, held, length, several = held, [], 0, True
            part = MemoryPart(taken, await threads.run(owner, _digest_of, taken))
            del taken
            yield part
            del part
    if held or not several:
        if several or digest is None:
            digest = await threads.run(owner, _digest_of, held)
        yield MemoryPart(held, digest)


def _digest_of(pieces: Sequence[bytes]) -> str:
    digest = sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def _read(descriptor: int, at: int, length: int) -> bytes:
    piece = os.pread(descriptor, length, at)
    if len(piece) < length:
        raise _cut()
    return piece


def _send(descriptor: int, socket: int, at: int, length: int) -> int:
    went = os.sendfile(socket, descriptor, at, length)
    if not went:
        raise _cut()
    return went


def _cut() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))
