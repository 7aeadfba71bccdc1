"""Bytes that are gathered: in memory while they are few, else in a file without a name, gone with its last use."""

import errno
import os
import tempfile
from io import BytesIO
from typing import IO


class GatheredBytes:
    """`folder`: where a file is, None: the system's own; `in_memory`: bytes that need none. OSError without room."""

    __slots__ = ("_folder", "_in_memory", "file")

    def __init__(self, folder: str | None, in_memory: int) -> None:
        self._folder = folder
        self._in_memory = in_memory
        self.file: IO[bytes] = BytesIO()

    def write(self, piece: bytes) -> None:
        """Add to the end."""
        file = self.file
        if isinstance(file, BytesIO) and file.tell() + len(piece) > self._in_memory:
            with file:
                self.file = nameless_file(self._folder)
                self.file.write(file.getbuffer())
        self.file.write(piece)

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
