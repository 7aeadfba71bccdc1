"""The few tests of a run that failed: `tools/run-tests` tries them once more, in a process of their own.

Thousands of tests share a process, its loop and its server. One may fail for what another left behind, and an
interpreter that crashes takes the test that it happened to run with it. A test that fails alone, too, fails the run.
In rounds of crashes, faults and attacks a rare failure is what they look for: it is none of the busy machine.
"""

import os
from pathlib import Path

import pytest

FILE = "TEST_FAILED"  # the variable that has the path: see tools/run-tests
MOST = 3  # more than these are no accident

_ROUNDS = ("tests/crash/", "tests/faults/", "tests/abuse/")

_failed = dict[str, None]()  # as they came
_crashed = set[str]()


def pytest_handlecrashitem(crashitem: str) -> None:
    _crashed.add(crashitem)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _failed[report.nodeid] = None


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the tests down, one a line, where they are all that failed."""
    path = os.environ.get(FILE)
    beside_others = hasattr(session.config, "workerinput")  # not the process that has all reports
    if path and not beside_others and worth_another_try(list(_failed), _crashed):
        Path(path).write_text("\n".join(_failed) + "\n")


def worth_another_try(failed: list[str], crashed: set[str]) -> bool:
    """Whether these may be accidents: few, and of rounds only those whose process ended by itself."""
    return 0 < len(failed) <= MOST and all(each in crashed or not each.startswith(_ROUNDS) for each in failed)
