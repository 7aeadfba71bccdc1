"""Tests that wait for programs and browsers: what only waited too long is tried once more, in the same run.

What the service does happens each time, what a busy machine does not. Nothing else is tried again: a wrong answer, an
error or a crash fails at once. In rounds of crashes and of faults a wait without an end is what they look for.
"""

from functools import cache
from pathlib import Path

import pytest

WAITED = (
    r"still waiting until",  # tests/waiting.py
    r"^TimeoutError\b",  # of asyncio and of the browser
    r"^ServerTimeoutError\b",  # of a client
    r"^TimeoutExpired\b",  # of a program
)

_TESTS = Path(__file__).parent
PLACES = (_TESTS / "acceptance", _TESTS / "fronts")
_ROUNDS = (_TESTS / "crash", _TESTS / "faults", _TESTS / "abuse")  # the last has a rule of its own
_MARKS = ("long", "alone", "browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if waits(item.path, {each.name for each in item.iter_markers()}):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=list(WAITED)))


def waits(path: Path, marks: set[str]) -> bool:
    """Whether a test of the file with these markers has real programs beside it, and is no round."""
    return not within(path, *_ROUNDS) and (within(path, *PLACES) or not marks.isdisjoint(_MARKS))


@cache
def within(path: Path, *places: Path) -> bool:
    """Whether a file is below one of the folders: many thousand tests ask, of some hundred files."""
    return not set(places).isdisjoint(path.parents)
