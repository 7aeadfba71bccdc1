"""A small file that is replaced as a whole: whoever looks finds the old text or the new one, also after a crash.

Written in place, a file is empty for a moment, and stays so when the disk is full.
"""

import os
from pathlib import Path


def replace(path: Path, text: str, *, owner: tuple[int, int] | None = None) -> None:
    """Put the text there, in a file of mode 0600 that belongs to us or to `owner` (uid, gid). Raises OSError.

    The folder may belong to somebody else: no link that was planted there is followed.
    """
    new = path.with_name(f".{path.name}.new")
    new.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
            if owner is not None:
                os.fchown(file.fileno(), *owner)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.rename(path)
    except BaseException:
        new.unlink(missing_ok=True)
        raise


def read(path: Path) -> str | None:
    """The text of a file, or None where there is no file that we may read; a link is none."""
    try:
        with os.fdopen(
            os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), errors="replace"
        ) as file:
            return file.read()
    except OSError:
        return None
