"""Bytes gathered in memory, and beyond that in a file without a name."""

import errno
import os
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from recado.storage.core import gathered
from recado.storage.core.gathered import AHEAD, GatheredBytes


@pytest.mark.parametrize("refusal", [None, errno.EISDIR, errno.EOPNOTSUPP])
def test_what_is_too_much_for_memory_is_in_a_file_that_nobody_sees(
    refusal: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opens = os.open

    def open_or_fail(path: Any, flags: int, mode: int = 0o777) -> int:
        if refusal is not None and flags & os.O_TMPFILE == os.O_TMPFILE and not flags & os.O_EXCL:
            raise OSError(refusal, os.strerror(refusal))
        return opens(path, flags, mode)

    monkeypatch.setattr(gathered.os, "open", open_or_fail)
    held = GatheredBytes(str(tmp_path), 10)
    held.write(b"0123456789")
    assert isinstance(held.file, BytesIO)
    held.write(b"ab")
    held.write(b"c")
    held.file.seek(0)
    assert held.file.read() == b"0123456789abc"
    assert list(tmp_path.iterdir()) == []
    held.close()


def test_a_folder_that_is_not_there_is_an_error_only_when_a_file_is_needed(tmp_path: Path) -> None:
    held = GatheredBytes(str(tmp_path / "none"), 1)
    held.write(b"0")
    with pytest.raises(FileNotFoundError):
        held.write(b"1")


def advised(monkeypatch: pytest.MonkeyPatch, error: OSError | None = None) -> list[tuple[int, int]]:
    """Where the disk was told to begin, and with how many bytes; each time it fails with the error."""
    told = list[tuple[int, int]]()

    def note(descriptor: int, at: int, length: int, advice: int) -> None:
        assert os.fstat(descriptor).st_size >= at + length, "what is not written yet cannot begin"
        assert advice == os.POSIX_FADV_DONTNEED
        told.append((at, length))
        if error is not None:
            raise error

    monkeypatch.setattr(gathered.os, "posix_fadvise", note)
    return told


@pytest.mark.parametrize("error", [None, OSError(errno.EINVAL, "")])
def test_the_disk_begins_with_a_file_that_stays_while_it_grows(
    error: OSError | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = advised(monkeypatch, error)
    held = GatheredBytes(str(tmp_path), 10, stays=True)
    pieces = [os.urandom(size) for size in (9, AHEAD - 10, 1, AHEAD, 3, AHEAD + 1)]
    for piece in pieces:
        held.write(piece)
    held.file.seek(0)
    assert held.file.read() == b"".join(pieces)
    assert told == [(0, AHEAD), (AHEAD, AHEAD), (2 * AHEAD, AHEAD + 4)]
    held.close()


def test_the_disk_is_not_told_of_a_file_that_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = advised(monkeypatch)
    held = GatheredBytes(str(tmp_path), 10)
    held.write(bytes(2 * AHEAD))
    held.close()
    assert told == []
