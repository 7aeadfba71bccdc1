"""What waits for programs comes one by one among what computes, and what shares a service stays together."""

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tests.order import mixed

TESTS = Path(__file__).parent
WAIT = ["acceptance/sandbox/test_pace.py", "acceptance/test_mistakes.py", "fronts/test_lives.py"]
COMPUTE = [str(file.relative_to(TESTS)) for file in sorted(TESTS.glob("domain/*/test_*.py"))[:20]]


def run_of(*files: str) -> list[Any]:
    """Two tests of each file."""
    return [SimpleNamespace(nodeid=f"tests/{file}::test_{n}", path=TESTS / file) for file in files for n in (1, 2)]


def order_of(items: list[Any]) -> list[str]:
    return [item.nodeid.removeprefix("tests/") for item in items]


def test_those_that_wait_begin_apart_from_each_other_and_none_of_them_last() -> None:
    order = order_of(mixed(run_of(*WAIT, *COMPUTE)))
    begins = [order.index(f"{file}::test_1") for file in WAIT]

    assert sorted(order) == sorted(order_of(run_of(*WAIT, *COMPUTE)))
    assert begins[0] == 0
    assert all(after - before > 8 for before, after in pairwise(begins))
    assert len(order) - begins[-1] > 12


def test_the_others_keep_their_order_and_files_that_share_a_service_stay_together() -> None:
    sharing = ["acceptance/sandbox/test_pace.py", "acceptance/sandbox/test_waits.py"]
    order = order_of(mixed(run_of(sharing[0], *COMPUTE, sharing[1])))

    assert order[:4] == order_of(run_of(*sharing))
    assert order[4:] == order_of(run_of(*COMPUTE))


def test_one_kind_may_be_missing() -> None:
    for files in (WAIT, COMPUTE, []):
        assert order_of(mixed(run_of(*files))) == order_of(run_of(*files))
