"""Files that are replaced as a whole."""

import errno
import os
from pathlib import Path

import pytest
from tests.required import as_root

from recado.storage.core import whole_file


def test_a_file_is_replaced_and_closed_to_others(tmp_path: Path) -> None:
    file = tmp_path / "a"
    whole_file.replace(file, "old\n")
    whole_file.replace(file, "new\n")
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new\n", 0o600)
    assert list(tmp_path.iterdir()) == [file]


def test_what_cannot_be_written_leaves_the_old_text_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    file = tmp_path / "a"
    whole_file.replace(file, "old\n")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        whole_file.replace(file, "new\n")
    assert file.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [file]


def test_what_a_crash_left_beside_it_is_replaced_and_no_link_is_followed(tmp_path: Path) -> None:
    secret, file = tmp_path / "secret", tmp_path / "a"
    secret.write_text("7\nsecret\n")
    (tmp_path / ".a.new").symlink_to(secret)
    whole_file.replace(file, "new\n")
    assert (file.read_text(), secret.read_text()) == ("new\n", "7\nsecret\n")
    file.unlink()
    file.symlink_to(secret)
    assert whole_file.read(file) is None
    assert whole_file.read(tmp_path / "missing") is None


@as_root
def test_a_file_can_be_made_for_somebody_else(tmp_path: Path) -> None:
    file = tmp_path / "a"
    whole_file.replace(file, "text\n", owner=(65534, 65534))
    assert (file.stat().st_uid, file.stat().st_gid, whole_file.read(file)) == (65534, 65534, "text\n")
