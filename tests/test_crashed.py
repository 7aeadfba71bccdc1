"""A run of tests whose process crashed: it is written down only when nothing else failed."""

from pathlib import Path

import pytest
from tests import crashed
from tests.inner_run import inner_run

CRASHES = "import os\n\ndef test_crashes() -> None:\n    os.abort()\n"
FAILS = "\ndef test_fails() -> None:\n    raise AssertionError\n"


@pytest.mark.parametrize(
    ("text", "noted"), [(CRASHES, "test_it.py::test_crashes\n"), (CRASHES + FAILS, ""), (FAILS, "")]
)
def test_a_test_whose_process_crashed_is_noted_where_nothing_else_failed(text: str, noted: str, tmp_path: Path) -> None:
    file = tmp_path / "crashed"
    ended = inner_run(tmp_path, text, "-p", "xdist", "-p", "tests.crashed", "-n1", **{crashed.FILE: str(file)})
    assert ended.returncode == 1, ended.stdout
    assert (file.read_text() if file.exists() else "") == noted
