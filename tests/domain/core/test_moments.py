"""Wall-clock times of monotonic readings."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.clock import TimerHandle
from recado.domain.core.moments import TOLERANCE, Moments

START = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


class TwoClocks:
    """A wall clock and a monotonic clock that a test moves apart."""

    def __init__(self) -> None:
        self.wall = START
        self.elapsed = 5_000.0
        self.held_up = 0.0

    def now(self) -> datetime:
        """The process may be held up for a while before it has the answer."""
        self.pass_by(self.held_up)
        return self.wall

    def pass_by(self, seconds: float) -> None:
        self.elapsed += seconds
        self.wall += timedelta(seconds=seconds)

    def monotonic(self) -> float:
        return self.elapsed

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        raise NotImplementedError


@given(st.floats(0, 10_000), st.floats(1.0, 60.0))
def test_moments_a_second_apart_on_one_clock_are_so_on_the_other(since: float, apart: float) -> None:
    clock = TwoClocks()
    moments = Moments(clock)
    clock.pass_by(since)
    first = clock.elapsed
    one = moments.at(first)
    clock.pass_by(apart)
    assert moments.at(first + apart) - one >= timedelta(seconds=1)


def test_a_small_drift_is_left_alone() -> None:
    clock = TwoClocks()
    moments = Moments(clock)
    clock.pass_by(10)
    clock.wall += TOLERANCE
    assert moments.at(clock.elapsed) == START + timedelta(seconds=10)


def test_a_clock_that_was_set_is_followed() -> None:
    clock = TwoClocks()
    moments = Moments(clock)
    clock.pass_by(10)
    clock.wall = START + timedelta(hours=1)
    assert moments.at(clock.elapsed) == START + timedelta(hours=1)
    assert moments.at(clock.elapsed + 0.5) == START + timedelta(hours=1, seconds=0.5)


def test_a_process_that_is_held_up_between_the_clocks_sees_no_clock_that_was_set() -> None:
    clock = TwoClocks()
    moments = Moments(clock)
    clock.pass_by(10)
    asked = clock.elapsed
    clock.held_up = TOLERANCE.total_seconds() * 2
    assert moments.at(asked) == START + timedelta(seconds=10)
    clock.held_up = 0.0
    assert moments.at(asked + 1.0) == START + timedelta(seconds=11)


def test_a_reading_that_is_old_when_the_clocks_are_looked_at_keeps_its_own_moment() -> None:
    clock = TwoClocks()
    moments = Moments(clock)
    asked = clock.elapsed + 10
    clock.pass_by(10.1)
    assert moments.at(asked) == START + timedelta(seconds=10)
