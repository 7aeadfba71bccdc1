"""How many processes a service is where no setting says it."""

import os
from pathlib import Path

import pytest

from recado.cores import usable_cores, workers_by_connections, workers_by_cores


@pytest.mark.parametrize(
    ("cores", "workers"), [(0.5, 1), (1, 1), (2, 1), (3.9, 1), (4, 2), (5, 2), (6, 3), (8, 4), (9, 4), (64, 4)]
)
def test_two_cores_have_one_process_and_none_has_more_than_four(cores: float, workers: int) -> None:
    assert workers_by_cores(cores) == workers


@pytest.mark.parametrize(("allowed", "workers"), [(10, 1), (64, 1), (65, 2), (82, 3), (98, 3), (99, 4), (167, 8)])
def test_as_many_processes_as_have_their_connections(allowed: int, workers: int) -> None:
    assert workers_by_connections(allowed) == workers


@pytest.mark.parametrize(
    ("own", "quotas", "cores"),
    [
        ("0::/a.slice/b\n", {}, None),
        ("0::/a.slice/b\n", {"a.slice/b": "max 100000"}, None),
        ("0::/a.slice/b\n", {"a.slice/b": "50000 100000"}, 0.5),
        ("0::/a.slice/b\n", {"a.slice/b": "max 100000", "a.slice": "25000 100000"}, 0.25),
        ("0::/\n", {".": "75000 100000"}, 0.75),  # in a container
        ("0::/../x\n", {}, None),
        ("3:cpu:/x\n", {".": "75000 100000"}, None),  # only of the groups as they were before
        ("", {}, None),
        (None, {".": "75000 100000"}, None),
    ],
)
def test_time_that_control_groups_give_counts_as_cores(
    tmp_path: Path, own: str | None, quotas: dict[str, str], cores: float | None
) -> None:
    groups, group = tmp_path / "groups", tmp_path / "group"
    if own is not None:
        group.write_text(own)
    for name, quota in quotas.items():
        (groups / name).mkdir(parents=True, exist_ok=True)
        (groups / name / "cpu.max").write_text(quota + "\n")
    assert usable_cores(groups, group) == (len(os.sched_getaffinity(0)) if cores is None else cores)


def test_a_process_that_is_bound_to_one_core_has_one(tmp_path: Path) -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert usable_cores(tmp_path, tmp_path / "none") == 1.0
    finally:
        os.sched_setaffinity(0, before)
