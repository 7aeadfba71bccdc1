"""Locks between processes on files, by `flock`: the kernel drops them when their holder dies, however it dies."""

import errno
import fcntl
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from recado.domain.core.clock import Clock

_POLL = 0.02


class LockTimeout(Exception):
    """Another process held a lock longer than the limit."""


class FileLock:
    """One lock on one file, made when it is missing. Two locks on a file exclude each other in one process too."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def try_take(self, *, shared: bool = False) -> bool:
        """Takes the lock, or turns a held one from shared to exclusive, without waiting; False when another holds it.

        When turning a held lock fails, it is no longer held.
        """
        if self._descriptor is None:
            self._descriptor = self._open()
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            self.release()
            if error.errno in (errno.EWOULDBLOCK, errno.EINTR):
                return False
            raise
        return True

    def release(self) -> None:
        """Gives the lock back; safe when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    @contextmanager
    def held_now(self) -> Iterator[None]:
        """Exclusive for a short piece of work; waits as long as it takes, blocking the thread."""
        descriptor = self._open()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @asynccontextmanager
    async def held(self, clock: Clock, limit: float) -> AsyncIterator[None]:
        """Exclusive; waits up to `limit` seconds, then raises LockTimeout."""
        give_up_at = clock.monotonic() + limit
        while not self.try_take():
            if clock.monotonic() >= give_up_at:
                raise LockTimeout(f"another process has held {self._path} for more than {limit:g} seconds")
            await clock.sleep(_POLL)
        try:
            yield
        finally:
            self.release()

    def _open(self) -> int:
        # Without O_TRUNC and never unlinked: every process must lock the same inode.
        return os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
