"""Parts of a binary on their way to a bucket, each with the hash that its request is signed with (C31).

Threads hash them, and read what the system has not in memory; what it has is read without one.
"""

import asyncio
import errno
import os
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from hashlib import sha256
from typing import IO, Concatenate, Final, ParamSpec, Protocol, TypeVar

from recado.storage.blobs.blobs import BLOCK, blocks
from recado.storage.core.cached_reads import read_cached
from recado.storage.core.shares.fair_threads import FairThreads
from recado.storage.core.turn import others_run

SENT: Final = 512 * 1024  # bytes of a part that are read and sent at once
_HASHED: Final = 256 * 1024  # bytes that are read at once to be hashed: they stay in the processor's own memory

P = ParamSpec("P")
T = TypeVar("T")


class UploadPart(Protocol):
    """The body of a request. `sha256`: in hexadecimal digits."""

    sha256: str

    def __len__(self) -> int: ...

    def __aiter__(self) -> AsyncGenerator[bytes | memoryview]:
        """From its beginning, each time."""

    def seek(self, at: int) -> None:
        """What is asked before a body is sent again: each sending begins at the beginning."""


class FileParts:
    """A file that has a descriptor, and changes no more. `owner`: whose share of the threads it takes."""

    def __init__(self, threads: FairThreads, owner: str, file: IO[bytes]) -> None:
        self._threads = threads
        self._owner = owner
        self._descriptor = file.fileno()
        self._under_way = set[asyncio.Task[object]]()
        self._left = False

    async def each(self, size: int, most: int, hashes: Sequence[str] = ()) -> AsyncGenerator["FilePart"]:
        """All its `size` bytes in parts of `most`, in order; at least one. Raises OSError.

        `hashes`: of these parts, where they are known; else the next part is hashed while one is used.
        """
        parts = [(at, min(most, size - at)) for at in range(0, size, most)]
        if len(hashes) == len(parts):
            for (at, length), digest in zip(parts, hashes, strict=True):
                yield FilePart(self, at, length, digest)
            return
        ahead = self._hashing(*parts[0])
        try:
            for next_part in parts[1:]:
                part = await ahead
                ahead = self._hashing(*next_part)
                yield part
            yield await ahead
        finally:
            ahead.cancel()

    def _hashing(self, at: int, length: int) -> "asyncio.Task[FilePart]":
        async def hashed() -> FilePart:
            return FilePart(self, at, length, await self._run(_digest, at, length))

        task = asyncio.ensure_future(hashed())
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # perhaps nobody asks any more
        return task

    async def read(self, at: int, length: int) -> bytes | memoryview:
        """All of these bytes. Raises OSError."""
        self._check()
        cached = read_cached(self._descriptor, at, length)
        if cached is None:
            return await self._run(_read, at, length)
        await others_run()  # whoever sends to a socket that takes everything lets others run
        return cached

    async def leave(self) -> None:
        """Wait until no thread has its descriptor, and let none have it again: it may be another file's soon. Whoever
        sends a part may have been broken off within a piece.
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


class FilePart:
    """Of which a piece is in memory at a time."""

    def __init__(self, parts: FileParts, at: int, length: int, digest: str) -> None:
        self._parts = parts
        self._at = at
        self._length = length
        self.sha256 = digest

    def __len__(self) -> int:
        return self._length

    async def __aiter__(self) -> AsyncGenerator[bytes | memoryview]:
        for at in range(0, self._length, SENT):
            yield await self._parts.read(self._at + at, min(SENT, self._length - at))

    def seek(self, at: int) -> None:
        assert at == 0  # noqa: S101 - nothing else is asked


class MemoryPart:
    """All of which is in memory: of a binary that is in no file."""

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


def _digest(descriptor: int, at: int, length: int) -> str:
    digest, block, end = sha256(), memoryview(bytearray(_HASHED)), at + length
    while at < end:
        size = os.preadv(descriptor, [block[: end - at]], at)
        if not size:
            raise _cut()
        digest.update(block[:size])
        at += size
    return digest.hexdigest()


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


def _cut() -> OSError:
    return OSError(errno.EIO, os.strerror(errno.EIO))
