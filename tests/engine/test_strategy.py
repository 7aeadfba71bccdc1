"""The pure rules of recovery: who, how often, how long."""

import random

from hypothesis import given
from hypothesis import strategies as st

from recado.engine.backoff import Backoff
from recado.engine.strategy import Intensity, Strategy, affected


def test_each_strategy_names_its_children_in_starting_order():
    children = ["a", "b", "c"]
    assert affected(Strategy.ONE_FOR_ONE, children, "b") == ("b",)
    assert affected(Strategy.REST_FOR_ONE, children, "b") == ["b", "c"]
    assert affected(Strategy.ONE_FOR_ALL, children, "b") == children


def test_a_child_that_left_meanwhile_restarts_nobody():
    assert affected(Strategy.ONE_FOR_ALL, ["a"], "gone") == ()


@given(
    st.lists(st.floats(0, 5, allow_nan=False), max_size=40),
    st.integers(0, 5),
    st.floats(0.5, 10, allow_nan=False),
)
def test_intensity_is_exceeded_exactly_when_more_restarts_fall_within_the_period(gaps, restarts, period):
    intensity = Intensity(restarts, period)
    times, now = [], 0.0
    for gap in gaps:
        now += gap
        times.append(now)
        within = sum(1 for at in times if at > now - period)
        assert intensity.exceeded_by(now) is (within > restarts)


def test_a_forgiven_count_begins_anew():
    intensity = Intensity(1, 10)
    assert [intensity.exceeded_by(at) for at in (1, 2)] == [False, True]
    intensity.forgive()
    assert intensity.exceeded_by(3) is False


def test_back_off_grows_to_its_ceiling():
    backoff = Backoff(first=1, ceiling=10, factor=3, jitter=0)
    assert [backoff.delay(failures, random.Random(1)) for failures in (1, 2, 3, 4, 10_000)] == [1, 3, 9, 10, 10]


@given(st.integers(1, 10_000), st.floats(0, 1), st.integers())
def test_jitter_takes_off_at_most_its_share(failures, jitter, seed):
    exact = Backoff(jitter=0).delay(failures, random.Random(seed))
    spread = Backoff(jitter=jitter).delay(failures, random.Random(seed))
    assert exact * (1 - jitter) - 1e-9 <= spread <= exact


def test_the_same_seed_gives_the_same_delays():
    delays = [[Backoff().delay(n, chance) for n in range(1, 6)] for chance in (random.Random(3), random.Random(3))]
    assert delays[0] == delays[1]
