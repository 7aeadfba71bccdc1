"""Bytes that are gathered: in memory while they are few, else in a file without a name, gone with its last use."""

import errno
import os
import tempfile
from contextlib import suppress
from io import BytesIO
from typing import IO, Final

AHEAD: Final = 4 * 1024 * 1024  # bytes


class GatheredBytes:
    """`folder`: where a file is, None: the system's own; `in_memory`: bytes that need none. OSError without room.

    `stays`: the file is to get a name. The disk begins with its bytes while others come, and who waits at the end until
    it has all of them waits for the last ones.
    """

    __slots__ = ("_begun", "_folder", "_in_memory", "_stays", "file")

    def __init__(self, folder: str | None, in_memory: int, *, stays: bool = False) -> None:
        self._folder = folder
        self._in_memory = in_memory
        self._stays = stays
        self._begun = 0  # bytes that the disk was told of
        self.file: IO[bytes] = BytesIO()

    def write(self, piece: bytes | memoryview) -> None:
        """Add to the end."""
        file = self.file
        if isinstance(file, BytesIO) and file.tell() + len(piece) > self._in_memory:
            with file:
                self.file = nameless_file(self._folder)
                self.file.write(file.getbuffer())
        self.file.write(piece)
        if self._stays and not isinstance(self.file, BytesIO):
            self._begin(self.file)

    def _begin(self, file: IO[bytes]) -> None:
        """Let the disk begin: a kernel that is told that nobody needs these bytes begins to write them. Until they are
        written it keeps them in memory, so who reads them soon does not wait for the disk.
        """
        come = file.tell()
        if come - self._begun >= AHEAD:
            file.flush()
            with suppress(OSError):  # a file system that takes no advice writes later
                os.posix_fadvise(file.fileno(), self._begun, come - self._begun, os.POSIX_FADV_DONTNEED)
            self._begun = come

    def close(self) -> None:
        """Forget them."""
        self.file.close()


def nameless_file(folder: str | None) -> IO[bytes]:
    """One that may get a name later, where the system has such files: those of `tempfile` never may."""
    try:
        descriptor = os.open(folder or tempfile.gettempdir(), os.O_RDWR | os.O_TMPFILE | os.O_CLOEXEC, 0o600)
    except IsADirectoryError:  # a kernel without them
        return tempfile.TemporaryFile(dir=folder)
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:  # a file system without them
            raise
        return tempfile.TemporaryFile(dir=folder)
    return os.fdopen(descriptor, "w+b")
