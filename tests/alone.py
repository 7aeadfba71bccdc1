"""Which files hold tests marked `alone`: their part of a run collects these, and no thousands of tests to leave out."""

import os
from functools import cache
from pathlib import Path

import pytest

PART = "TEST_PART"  # alone: see tools/run-tests
_TESTS = Path(__file__).parent


def places(tests: Path) -> frozenset[Path]:
    """The files below a folder that mark tests so, and the folders that lead to them."""
    files = [file for file in tests.rglob("test_*.py") if "mark.alone" in file.read_text()]
    return frozenset(place for file in files for place in (file, *file.parents))


_places = cache(places)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if os.environ.get(PART) == "alone" and _TESTS in collection_path.parents:
        return collection_path not in _places(_TESTS) or None
    return None


def pytest_itemcollected(item: pytest.Item) -> None:
    """A marker that a file does not show would keep its test out of both parts."""
    if item.get_closest_marker("alone") and item.path not in _places(_TESTS):
        raise pytest.UsageError(f"{item.nodeid} is marked alone, which its file does not show")
