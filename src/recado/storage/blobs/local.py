"""Files under a folder (C30.4). All work on them is done by a few threads of its own, never by the event loop."""

import asyncio
import errno
import os
import secrets
import shutil
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import IO, Final, ParamSpec, TypeVar

import structlog

from recado.storage.blobs.blobs import (
    BLOCK,
    PIECE,
    SIGNED_SECONDS,
    BlobMissing,
    HashedFile,
    blocks,
    owner_of,
    storage_failed,
)
from recado.storage.blobs.signed_links import SignedLinks
from recado.storage.core.shares.fair_threads import FairThreads

_PARTIAL: Final = ".partial"
_COPIED: Final = frozenset({errno.EXDEV, errno.ENOENT, errno.EPERM, errno.EACCES, errno.EINVAL, errno.EOPNOTSUPP})
"""Why a file cannot be named where it is."""
_OWN: Final = ""  # the service itself

P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger(__name__)


class LocalBlobs:
    """A binary is written under another name, and has its own when all of it is on the disk."""

    def __init__(self, folder: Path, links: SignedLinks) -> None:
        self._folder = folder
        self._links = links
        self._threads = FairThreads("media")

    async def start(self) -> None:
        """Forget what a process before us had not written to its end."""
        await self._threads.start()
        await self._run(_OWN, self._tidy)

    async def stop(self) -> None:
        await self._threads.stop()

    async def write(self, key: str, content: AsyncIterable[bytes | memoryview], file: HashedFile | None = None) -> None:
        owner, place = owner_of(key), self._folder / key
        if file is not None and await self._run(owner, _name, file.file, place):
            return
        partial = _Partial(self._folder / _PARTIAL / secrets.token_hex(16))
        try:
            await self._run(owner, partial.create)
            async for block in blocks(content, BLOCK):
                await self._run(owner, partial.write, block)
            await self._run(owner, partial.finish, place)
        except BaseException:
            await asyncio.shield(self._run(owner, partial.drop))
            raise

    async def read(self, key: str, first: int, length: int) -> AsyncGenerator[bytes]:
        # Opened for each piece: a reader who takes its time holds no descriptor.
        place, end = self._folder / key, first + length
        while first < end:
            piece = await self._run(owner_of(key), _read, place, first, min(PIECE, end - first))
            if piece is None:
                raise BlobMissing
            if not piece:
                raise storage_failed()
            first += len(piece)
            yield piece

    async def delete(self, key: str, *, written: bool = False) -> None:
        await self._run(owner_of(key), _unlink, self._folder / key)

    async def signed_url(self, key: str, content_type: str, disposition: str, now: datetime) -> str:
        return self._links.url(key, content_type, disposition, int(now.timestamp()) + SIGNED_SECONDS)

    async def check(self) -> None:
        await self._run(_OWN, writable, self._folder)

    async def _run(self, owner: str, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await self._threads.run(owner, work, *args, **kwargs)
        except OSError as error:
            log.error("storage_failed", storage="local", cause=error.strerror)
            raise storage_failed() from None

    def _tidy(self) -> None:
        shutil.rmtree(self._folder / _PARTIAL, ignore_errors=True)
        (self._folder / _PARTIAL).mkdir(parents=True, mode=0o700, exist_ok=True)


def writable(folder: Path) -> None:
    """Raises OSError unless files can be made in the folder, or in the nearest one above it that is there."""
    while not folder.exists():
        folder = folder.absolute().parent
    if not folder.is_dir() or not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


class _Partial:
    """A file that is being written. Its work is done by threads, one after the other."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def create(self) -> None:
        self._path.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        self._descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def write(self, block: bytes) -> None:
        assert self._descriptor is not None  # noqa: S101 - it is created
        left = memoryview(block)
        while left:
            left = left[os.write(self._descriptor, left) :]

    def finish(self, place: Path) -> None:
        """All of it is on the disk, under the name that it keeps."""
        assert self._descriptor is not None  # noqa: S101 - it is created
        os.fsync(self._descriptor)
        self._close()
        place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
        os.replace(self._path, place)
        _sync_folder(place.parent)

    def drop(self) -> None:
        """Nothing of it is left, unless it has its name."""
        self._close()
        _unlink(self._path)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)


def _name(file: IO[bytes], place: Path) -> bool:
    """Give a file without a name one, when all of it is on the disk; False where it must be copied instead.

    That is where it lies on another disk, or in memory, and where the system cannot name it.
    """
    try:
        descriptor = file.fileno()
    except OSError:
        return False
    file.flush()
    os.fsync(descriptor)
    place.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    try:
        # A folder's descriptor, which a whole path does not need, makes Python follow the link to the file.
        os.link(f"/proc/self/fd/{descriptor}", place, src_dir_fd=0)
    except OSError as error:
        if error.errno not in _COPIED:
            raise
        return False
    _sync_folder(place.parent)
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read(path: Path, first: int, length: int) -> bytes | None:
    """None: it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return os.pread(descriptor, length, first)
    finally:
        os.close(descriptor)


def _unlink(path: Path) -> None:
    with suppress(FileNotFoundError):
        path.unlink()
