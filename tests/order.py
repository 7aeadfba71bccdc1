"""In which order the files of a run begin.

The longest one begins first: begun amid the others, it would end long after them. Files and folders whose tests wait
for programs and browsers (tests/deadlines.py) come one by one among those that compute: in the order of their names,
all processes would wait at first, and all would want the cores later.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import pytest
from tests.deadlines import PLACES, within
from tests.folders import taken_together

LONGEST = (Path(__file__).parent / "acceptance" / "test_fuzz.py",)
_SPREAD = 0.7  # of the run, in which those that wait begin: they take longer than the others, and none is to end alone


@pytest.hookimpl(trylast=True)  # of those that are left out, nobody needs the order
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):  # one process alone is better off with each folder's fixtures made once
        items[:] = mixed(items)
    items.sort(key=lambda item: item.path not in LONGEST)


def mixed(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """What processes take in turn (tests/folders.py), with those that wait spread among the others."""
    units = dict[str, list[pytest.Item]]()
    for file, found in groupby(items, lambda item: item.nodeid.partition("::")[0]):
        units.setdefault(taken_together(file), []).extend(found)
    waiting = [unit for unit in units.values() if within(unit[0].path, *PLACES)]
    others = [unit for unit in units.values() if not within(unit[0].path, *PLACES)]
    begins = [(_SPREAD * at / len(waiting), unit) for at, unit in enumerate(waiting)]
    begins += [(at / len(others), unit) for at, unit in enumerate(others)]
    return [item for _, unit in sorted(begins, key=lambda begin: begin[0]) for item in unit]
