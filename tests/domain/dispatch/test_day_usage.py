"""The rolling day of a number (C14.5, per day)."""

from collections import deque
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.dispatch.day_usage import DayUsage

START = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)
DAY = timedelta(hours=24)


def test_a_departure_counts_for_a_day_and_at_most_a_minute_more() -> None:
    day = DayUsage(START)
    day.add(START)
    assert day.used(START + DAY - timedelta(microseconds=1)) == 1
    assert day.used(START + DAY + timedelta(minutes=1)) == 0


def test_stored_minutes_count_from_the_start() -> None:
    day = DayUsage(START, [(START - timedelta(hours=23), 7), (START - timedelta(hours=25), 100)])
    assert day.used(START) == 7


def test_what_was_taken_back_does_not_count() -> None:
    day = DayUsage(START)
    day.add(START)
    day.add(START)
    day.take_back(START)
    assert day.used(START) == 1


def test_it_says_when_room_will_be_free() -> None:
    day = DayUsage(START)
    for minutes in (0, 0, 10):
        day.add(START + timedelta(minutes=minutes))
    now = START + timedelta(hours=1)
    first = day.frees_at(now, 2)
    assert START + DAY <= first <= START + DAY + timedelta(minutes=1)
    assert day.frees_at(now, 3) >= START + DAY + timedelta(minutes=10)
    assert day.used(first) == 1


@given(st.lists(st.tuples(st.integers(0, 200_000), st.booleans()), max_size=60))
def test_never_fewer_are_counted_than_left_in_the_last_24_hours(steps: list[tuple[int, bool]]) -> None:
    day, now, departures = DayUsage(START), START, deque[datetime]()
    for seconds, departs in steps:
        now += timedelta(seconds=seconds)
        if departs:
            day.add(now)
            departures.append(now)
        exact = sum(1 for at in departures if at > now - DAY)
        at_most = sum(1 for at in departures if at > now - DAY - timedelta(minutes=1))
        assert exact <= day.used(now) <= at_most
