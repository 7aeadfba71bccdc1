"""Ids sort by creation and carry its time (C2.1)."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.clock import TimerHandle
from recado.domain.core.ids import MESSAGE, IdSource, base62, created_at, is_id, lowest_id

NOW = datetime(2026, 11, 20, 12, 34, 56, 789_999, tzinfo=UTC)
MS = timedelta(milliseconds=1)
moments = st.datetimes(datetime(1970, 1, 1), datetime(8000, 1, 1), timezones=st.just(UTC))


class SetClock:
    """A clock that shows what it is told."""

    def __init__(self, at: datetime = NOW) -> None:
        self.at = at
        self.asked = 0

    def now(self) -> datetime:
        return self.at

    def monotonic(self) -> float:
        """Far enough from the last time that any millisecond is over."""
        self.asked += 1
        return float(self.asked)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        raise NotImplementedError


def source(clock: SetClock, seed: int = 1) -> IdSource:
    return IdSource(clock, random.Random(seed))


@given(moments, st.integers())
def test_an_id_carries_its_millisecond(at: datetime, seed: int) -> None:
    record_id = source(SetClock(at), seed).new(MESSAGE)
    assert is_id(MESSAGE, record_id)
    assert created_at(record_id) == at.replace(microsecond=at.microsecond // 1000 * 1000)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.integers())
def test_ids_strictly_increase(steps: list[int], seed: int) -> None:
    clock = SetClock()
    ids = source(clock, seed)
    made = []
    for step in steps:
        clock.at += step * MS
        made.append(ids.new(MESSAGE))
    assert all(earlier < later for earlier, later in pairwise(made))


def test_many_ids_of_one_millisecond_increase_although_their_tail_overflows() -> None:
    ids = source(SetClock())
    made = [ids.new(MESSAGE) for _ in range(300_000)]  # steps of half a million on average overflow 62^6 twice
    assert len({record_id[: len(MESSAGE) + 15] for record_id in made}) > 1
    assert all(earlier < later for earlier, later in pairwise(made))
    assert {created_at(record_id) for record_id in made} == {NOW.replace(microsecond=789_000)}


def test_ids_increase_although_the_clock_steps_back_a_little() -> None:
    clock = SetClock()
    ids = source(clock)
    first = ids.new(MESSAGE)
    clock.at -= timedelta(milliseconds=900)
    second = ids.new(MESSAGE)
    assert first < second
    assert created_at(second) == created_at(first)


def test_ids_increase_while_the_clock_is_less_than_a_day_behind_them_and_follow_it_beyond() -> None:
    clock = SetClock()
    ids = source(clock)
    first = ids.new(MESSAGE)
    clock.at -= timedelta(hours=23)
    assert first < ids.new(MESSAGE)
    clock.at -= timedelta(hours=2)
    assert created_at(ids.new(MESSAGE)) == clock.at.replace(microsecond=789_000)


def test_ids_continue_after_those_of_a_process_whose_clock_was_ahead() -> None:
    clock = SetClock()
    before = source(clock, 1)
    newest = [before.new(MESSAGE) for _ in range(1000)][-1]
    clock.at -= timedelta(hours=1)
    ids = source(clock, 2)
    assert ids.continue_after(newest)
    made = [ids.new(MESSAGE) for _ in range(1000)]
    assert newest < made[0]
    assert made == sorted(made)
    clock.at += timedelta(hours=1, seconds=1)
    assert created_at(ids.new(MESSAGE)) == clock.at.replace(microsecond=789_000)


def test_the_moment_of_what_is_made_is_the_present_while_ids_run_ahead_of_the_clock() -> None:
    clock = SetClock()
    newest = source(clock).new(MESSAGE)
    clock.at -= timedelta(hours=2)
    ids = source(clock, 2)
    assert ids.continue_after(newest)
    made = ids.new(MESSAGE)
    assert created_at(made) > clock.at
    assert ids.moment_of(made) == clock.at
    clock.at += timedelta(hours=2, seconds=1)
    made = ids.new(MESSAGE)
    assert ids.moment_of(made) == created_at(made) == clock.at.replace(microsecond=789_000)


def test_ids_do_not_stand_still_for_a_day_or_more() -> None:
    clock = SetClock()
    newest = source(clock).new(MESSAGE)
    clock.at -= timedelta(days=1)
    ids = source(clock)
    assert not ids.continue_after(newest)
    assert ids.new(MESSAGE) < newest


def test_two_processes_do_not_mint_the_same_id() -> None:
    one, other = source(SetClock(), 1), source(SetClock(), 2)
    assert not {one.new(MESSAGE) for _ in range(1000)} & {other.new(MESSAGE) for _ in range(1000)}


@given(moments, st.timedeltas(-3 * MS, 3 * MS), st.integers())
def test_an_id_lies_in_a_period_exactly_when_its_creation_time_does(
    bound: datetime, difference: timedelta, seed: int
) -> None:
    born = max(bound + difference, datetime(1970, 1, 1, tzinfo=UTC))
    record_id = source(SetClock(born), seed).new(MESSAGE)
    assert (record_id >= lowest_id(MESSAGE, bound)) == (created_at(record_id) >= bound)


def test_periods_outside_the_range_of_ids_meet_its_ends() -> None:
    assert lowest_id(MESSAGE, datetime(1900, 1, 1, tzinfo=UTC)) == MESSAGE + "0" * 21
    assert lowest_id(MESSAGE, datetime.max.replace(tzinfo=UTC)) == MESSAGE + "z" * 8 + "0" * 13


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("msg_" + "0aZ" * 7, True),
        ("msg_" + "0aZ" * 7 + "0", False),
        ("msg_" + "0aZ" * 6, False),
        ("num_" + "0aZ" * 7, False),
        ("msg_" + "0aZ" * 6 + "0a-", False),
        ("msg_" + "0aZ" * 6 + "0aé", False),
        ("msg_" + "0aZ" * 6 + "0a\n", False),
        ("", False),
    ],
)
def test_the_form_of_an_id_is_checked(text: str, valid: bool) -> None:
    assert is_id(MESSAGE, text) is valid


@pytest.mark.parametrize("text", ["", "msg_", "msg_" + "-" * 21, "msg_" + "0" * 7 + "é" + "0" * 13])
def test_text_that_is_no_id_has_no_creation_time(text: str) -> None:
    with pytest.raises(ValueError, match="not an id"):
        created_at(text)


@given(st.integers(0, 62**8 - 1), st.integers(0, 62**8 - 1))
def test_base_62_keeps_the_order(one: int, other: int) -> None:
    assert (base62(one, 8) < base62(other, 8)) == (one < other)
