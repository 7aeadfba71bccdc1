"""What the system has of a file in memory is read at once, and whoever asks for anything else is told to wait."""

import os
from pathlib import Path

from recado.storage.core.cached_reads import read_cached


def test_what_was_just_written_is_read(tmp_path: Path) -> None:
    content = os.urandom(700_000)
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        file.write(content)
        assert read_cached(file.fileno(), 5, 600_000) == content[5:600_005]


def test_where_bytes_are_missing_none_are_given(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        file.write(b"content")
        assert read_cached(file.fileno(), 5, 3) is None
    reader, writer = os.pipe()
    try:
        assert read_cached(reader, 0, 1) is None
    finally:
        os.close(reader)
        os.close(writer)
