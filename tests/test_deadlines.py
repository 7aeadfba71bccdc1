"""What only waited too long is tried once more, and nothing else."""

from pathlib import Path

import pytest
from tests import deadlines
from tests.inner_run import inner_run

TESTS = Path(deadlines.__file__).parent

FIRST_TIME = """
import asyncio
import subprocess
import pytest
from tests import waiting
from tests.waiting import until

waiting.PATIENCE = 0.0
tried = []

@pytest.mark.long
def test_it() -> None:
    tried.append(1)
    if len(tried) <= {times}:
        {failure}
"""
WAITS = 'asyncio.run(until(lambda: False, "it is done"))'


@pytest.mark.parametrize(
    ("failure", "times", "outcome"),
    [
        (WAITS, 1, "1 passed, 1 rerun"),
        ("asyncio.run(asyncio.wait_for(asyncio.Event().wait(), 0))", 1, "1 passed, 1 rerun"),
        ('subprocess.run(["tail", "-f", "/dev/null"], timeout=0.01)', 1, "1 passed, 1 rerun"),
        (WAITS, 2, "1 failed, 1 rerun"),
        ("assert False", 1, "1 failed in"),
        ("raise OSError", 1, "1 failed in"),
    ],
)
def test_a_wait_is_tried_once_more(failure: str, times: int, outcome: str, tmp_path: Path) -> None:
    text = FIRST_TIME.format(failure=failure, times=times)
    plugins = "-p", "pytest_rerunfailures", "-p", "tests.deadlines"
    ended = inner_run(tmp_path, text, *plugins, "-W", "ignore::pytest.PytestUnknownMarkWarning")
    assert outcome in ended.stdout


@pytest.mark.parametrize(
    ("file", "marks", "waits"),
    [
        ("domain/test_it.py", set(), False),
        ("domain/test_it.py", {"long"}, True),
        ("acceptance/console/test_it.py", set(), True),
        ("fronts/test_it.py", {"asyncio"}, True),
        ("crash/test_it.py", {"long", "alone"}, False),
        ("faults/test_it.py", {"long"}, False),
        ("abuse/test_it.py", {"long"}, False),
    ],
)
def test_only_tests_with_programs_beside_them_are_tried_again(file: str, marks: set[str], waits: bool) -> None:
    assert deadlines.waits(TESTS / file, marks) == waits
