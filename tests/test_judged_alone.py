"""The tests of a run that failed: they are written down when they are few, and are no rounds."""

from pathlib import Path

import pytest
from tests import judged_alone
from tests.inner_run import inner_run

CRASHES = "import os\n\ndef test_crashes() -> None:\n    os.abort()\n"
FAILS = "\ndef test_fails() -> None:\n    raise AssertionError\n"
FAILS_AT_ITS_END = """
import pytest

@pytest.fixture
def bad_end():
    yield
    raise OSError

def test_ends(bad_end) -> None:
    pass
"""
PASSES = "\ndef test_passes() -> None:\n    pass\n"
MANY_FAIL = "\n".join(FAILS.replace("fails", f"fails_{number}") for number in range(judged_alone.MOST + 1))


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
@pytest.mark.parametrize(
    ("text", "noted"),
    [
        (FAILS + PASSES, ["test_fails"]),
        (FAILS_AT_ITS_END, ["test_ends"]),
        (MANY_FAIL, []),
    ],
)
def test_the_few_that_failed_are_noted(text: str, noted: list[str], workers: str, tmp_path: Path) -> None:
    assert _noted(text, workers, tmp_path) == [f"test_it.py::{each}" for each in noted]


def test_those_whose_process_crashed_are_noted(tmp_path: Path) -> None:
    assert _noted(CRASHES + FAILS, "-n1", tmp_path) == ["test_it.py::test_crashes", "test_it.py::test_fails"]


@pytest.mark.parametrize(
    ("failed", "crashed", "worth"),
    [
        ([], [], False),
        (["tests/http/test_it.py::test_a"], [], True),
        (["tests/crash/test_it.py::test_a"], [], False),
        (["tests/http/test_it.py::test_a", "tests/faults/test_it.py::test_b"], [], False),
        (["tests/abuse/test_it.py::test_a"], ["tests/abuse/test_it.py::test_a"], True),
    ],
)
def test_rounds_are_tried_again_only_when_their_process_crashed(
    failed: list[str], crashed: list[str], worth: bool
) -> None:
    assert judged_alone.worth_another_try(failed, set(crashed)) is worth


def _noted(text: str, workers: str, folder: Path) -> list[str]:
    file = folder / "failed"
    ended = inner_run(
        folder, text, "-p", "xdist", "-p", "tests.judged_alone", workers, **{judged_alone.FILE: str(file)}
    )
    assert ended.returncode == 1, ended.stdout
    return file.read_text().splitlines() if file.exists() else []
