"""Wall-clock times of monotonic readings."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.clock import TimerHandle
from recado.domain.moments import TOLERANCE, Moments

START = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)


class TwoClocks:
    """A wall clock and a monotonic clock that a test moves apart."""

    def __init__(self) -> None:
        self.wall = START
        self.elapsed = 5_000.0

    def now(self) -> datetime:
        return self.wall

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
    first, second = clock.elapsed + since, clock.elapsed + since + apart
    clock.wall = START + timedelta(seconds=since)
    one = moments.at(first)
    clock.wall = START + timedelta(seconds=since + apart)
    assert moments.at(second) - one >= timedelta(seconds=1)


def test_a_small_drift_is_left_alone() -> None:
    clock = TwoClocks()
    moments = Moments(clock)
    clock.wall = START + timedelta(seconds=10) + TOLERANCE
    assert moments.at(clock.elapsed + 10) == START + timedelta(seconds=10)


def test_a_clock_that_was_set_is_followed() -> None:
    clock = TwoClocks()
    moments = Moments(clock)
    clock.wall = START + timedelta(hours=1)
    assert moments.at(clock.elapsed + 10) == START + timedelta(hours=1)
    assert moments.at(clock.elapsed + 10.5) == START + timedelta(hours=1, seconds=0.5)
