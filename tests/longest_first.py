"""A file that takes as long as all others together begins first: begun amid them, it would end long after them."""

from pathlib import Path

import pytest

LONGEST = (Path(__file__).parent / "acceptance" / "test_fuzz.py",)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.path not in LONGEST)
