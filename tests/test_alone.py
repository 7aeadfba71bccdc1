"""The part of a run that is marked `alone` collects every file that holds such a test."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.alone import PART, places, pytest_ignore_collect, pytest_itemcollected

HERE = Path(__file__).parent
MARKED = HERE / "acceptance" / "sandbox" / "test_pace.py"
PLAIN = HERE / "acceptance" / "sandbox" / "test_wallet.py"


def test_files_that_mark_a_test_and_the_folders_above_them_are_found(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").mkdir()
    marked = tmp_path / "a" / "b" / "test_marked.py"
    marked.write_text("@pytest." + "mark.alone\ndef test_it(): ...")
    (tmp_path / "c" / "test_plain.py").write_text("def test_it(): ...")

    found = {place for place in places(tmp_path) if tmp_path in place.parents}

    assert found == {tmp_path / "a", tmp_path / "a" / "b", marked}


@pytest.mark.parametrize(
    ("part", "path", "left_out"),
    [("alone", MARKED, None), ("alone", PLAIN, True), ("alone", HERE / "domain", True), ("", PLAIN, None)],
)
def test_only_the_part_of_those_alone_leaves_files_out(
    monkeypatch: pytest.MonkeyPatch, part: str, path: Path, left_out: bool | None
) -> None:
    assert path.exists()
    monkeypatch.setenv(PART, part)
    assert pytest_ignore_collect(path) is left_out


def test_a_marker_that_the_file_does_not_show_is_refused() -> None:
    def item(path: Path) -> Any:
        return SimpleNamespace(path=path, nodeid="it", get_closest_marker={"alone": True}.get)

    pytest_itemcollected(item(MARKED))
    with pytest.raises(pytest.UsageError, match="it is marked alone"):
        pytest_itemcollected(item(PLAIN))
