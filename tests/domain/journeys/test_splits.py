"""A split sends each execution the same way each time, and all of them by the weights (C9.4.2)."""

from collections import Counter
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.journeys.splits import branch_of
from recado.domain.journeys.steps import Branch, Split

names = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=25)
weights = st.lists(st.integers(1, 1_000), min_size=2, max_size=10)


def split(*weighted: int, step_id: str = "s") -> Split:
    return Split(step_id, tuple(Branch(str(place), weight, "next") for place, weight in enumerate(weighted)))


@given(names, names, weights)
def test_the_branch_is_the_one_whose_stretch_holds_the_digest(execution: str, step: str, weighted: list[int]) -> None:
    first_bytes = sha256((execution + ":" + step).encode()).hexdigest()[:16]
    row = [place for place, weight in enumerate(weighted) for _ in range(weight)]
    assert branch_of(split(*weighted, step_id=step), execution).name == str(row[int(first_bytes, 16) % len(row)])


def test_a_known_execution_goes_the_known_way() -> None:
    # Written down, so that no change of the code moves anybody who is under way.
    assert [branch_of(split(1, 1, 1, 1), f"exe_{number}").name for number in range(8)] == list("00030112")


def test_shares_follow_the_weights() -> None:
    ways = split(70, 20, 10)
    taken = Counter(branch_of(ways, f"exe_{number}").name for number in range(10_000))
    assert abs(taken["0"] - 7_000) < 200
    assert abs(taken["1"] - 2_000) < 200
    assert abs(taken["2"] - 1_000) < 200


def test_two_splits_of_a_journey_are_drawn_apart() -> None:
    first, second = split(1, 1, step_id="a"), split(1, 1, step_id="b")
    executions = [f"exe_{number}" for number in range(4_000)]
    both = Counter((branch_of(first, each).name, branch_of(second, each).name) for each in executions)
    assert all(abs(count - 1_000) < 150 for count in both.values())
    assert len(both) == 4
