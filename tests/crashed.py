"""Tests whose process ended by itself: `tools/run-tests` tries them once more, when nothing else failed.

An interpreter that crashes takes the test that it happened to run with it, which may have nothing to do with it.
"""

import os
from pathlib import Path

import pytest

FILE = "TEST_CRASHED"  # the variable that has the path: see tools/run-tests

_crashed: list[str] = []


def pytest_handlecrashitem(crashitem: str) -> None:
    _crashed.append(crashitem)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the tests down, one a line, where they are all that failed."""
    path = os.environ.get(FILE)
    if path and _crashed and session.testsfailed == len(_crashed):
        Path(path).write_text("\n".join(_crashed) + "\n")
