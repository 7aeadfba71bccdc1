"""The present never runs back, and follows no jump of the machine's clock that nothing confirms."""

from datetime import UTC, datetime, timedelta

import pytest

from recado.engine.clock import SystemClock
from recado.engine.steady_time import BELIEVED_AFTER, SET

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)


class Machine:
    """Its clock, which somebody sets, and its seconds, which nobody can."""

    def __init__(self) -> None:
        self.seconds = 1_000.0
        self.off = timedelta()
        self.clock = SystemClock(self.wall, lambda: self.seconds)

    def wall(self) -> datetime:
        return START + self.off + timedelta(seconds=self.seconds - 1_000)

    def after(self, seconds: float) -> timedelta:
        """What the clock shows so many seconds later, since its start."""
        self.seconds += seconds
        return self.clock.now() - START


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_it_is_the_machines_clock_while_nobody_sets_that(machine: Machine) -> None:
    assert [machine.after(seconds) for seconds in (0, 0.5, 29, 600, 86_400)] == [
        timedelta(seconds=seconds) for seconds in (0, 0.5, 29.5, 629.5, 87_029.5)
    ]
    assert machine.clock.set_by == timedelta()


@pytest.mark.parametrize("back", [HOUR, 10 * SECOND, timedelta(days=400)])
def test_set_back_it_goes_on_from_where_it_was_at_its_own_pace(machine: Machine, back: timedelta) -> None:
    machine.after(10)
    machine.off -= back
    assert [machine.after(1) for _ in range(3)] == [timedelta(seconds=seconds) for seconds in (11, 12, 13)]
    assert machine.clock.set_by == -back


def test_whose_clock_is_another_ones_goes_on_from_there_and_believes_no_jump_by_itself(machine: Machine) -> None:
    machine.after(10)
    machine.off += HOUR
    assert machine.after(10) == 20 * SECOND
    beside = SystemClock(machine.wall, lambda: machine.seconds, (machine.clock.now(), machine.seconds))
    machine.after(10)
    assert beside.now() - START == 30 * SECOND
    assert beside.set_by == HOUR
    machine.after(BELIEVED_AFTER)
    assert beside.now() == machine.clock.now() - HOUR
    beside.follow()
    assert beside.now() == machine.clock.now()


def test_set_back_and_right_again_it_is_the_machines_clock_again(machine: Machine) -> None:
    machine.off -= HOUR
    machine.after(10)
    machine.off += HOUR
    assert machine.after(10) == timedelta(seconds=20)
    assert machine.clock.set_by == timedelta()


@pytest.mark.parametrize("pause", [0.001, 1, 29, 31, 3_600])
def test_a_jump_forward_is_not_followed(machine: Machine, pause: float) -> None:
    machine.after(10)
    machine.off += HOUR
    assert machine.after(pause) == timedelta(seconds=10 + pause)
    assert machine.after(5) == timedelta(seconds=15 + pause)
    assert machine.clock.set_by == HOUR


def test_a_jump_that_is_taken_back_leaves_nothing(machine: Machine) -> None:
    machine.off += HOUR
    machine.after(60)
    machine.off -= HOUR
    assert machine.after(60) == timedelta(seconds=120)
    assert machine.clock.set_by == timedelta()


def test_a_jump_that_is_confirmed_is_followed(machine: Machine) -> None:
    machine.off += HOUR
    machine.after(60)
    machine.clock.follow()
    assert machine.after(0) == HOUR + timedelta(seconds=60)
    assert machine.after(60) == HOUR + timedelta(seconds=120)


def test_a_jump_is_believed_when_nobody_sets_the_clock_for_a_day(machine: Machine) -> None:
    machine.off += HOUR
    machine.after(1)
    machine.off += 2 * HOUR  # again
    assert machine.after(BELIEVED_AFTER - 1) == timedelta(days=1)
    assert machine.after(1) == timedelta(days=1, seconds=1)
    assert machine.after(BELIEVED_AFTER) == timedelta(days=2, seconds=1) + 3 * HOUR


def test_small_corrections_forward_are_followed(machine: Machine) -> None:
    machine.after(10)
    machine.off += SET
    assert machine.after(31) == timedelta(seconds=41) + SET
    machine.off += SECOND
    assert machine.after(1) == timedelta(seconds=43) + SET


def test_a_small_correction_back_makes_it_wait_and_not_run_back(machine: Machine) -> None:
    machine.after(10)
    machine.off -= SECOND
    assert machine.after(0) == timedelta(seconds=10)
    assert machine.after(0.5) == timedelta(seconds=10.5)
    machine.off += SECOND
    machine.after(0)
    machine.off -= SECOND
    assert machine.after(1.5) == timedelta(seconds=11)  # nobody asked before it had come so far again


def test_a_machine_that_slept_shows_the_time_of_its_waking(machine: Machine) -> None:
    """Its seconds include its sleep."""
    machine.after(10)
    assert machine.after(8 * 3_600) == timedelta(seconds=10 + 8 * 3_600)


def test_the_systems_own_clock_is_the_present() -> None:
    clock = SystemClock()
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=5)
    assert clock.now() <= clock.now()
