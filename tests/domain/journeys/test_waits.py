"""Waits end at the minute that the clock on the wall shows, whatever is done to that clock (C9.4.1)."""

from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domain.journeys.cases import BERLIN, LORD_HOWE, SAO_PAULO
from tests.examples import examples

from recado.domain.journeys.steps import WaitForStep, WaitUntilStep
from recado.domain.journeys.waits import local_moment, wait_end

MINUTE = timedelta(minutes=1)
MONDAY, SUNDAY = 1, 7

# Where clocks were changed: forward and back.
CHANGES = [
    (SAO_PAULO, datetime(2018, 11, 4, 3, tzinfo=UTC)),  # at midnight, on a Sunday
    (SAO_PAULO, datetime(2018, 2, 18, 2, tzinfo=UTC)),
    (BERLIN, datetime(2026, 3, 29, 1, tzinfo=UTC)),
    (BERLIN, datetime(2026, 10, 25, 1, tzinfo=UTC)),
    (LORD_HOWE, datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),  # by half an hour
    (LORD_HOWE, datetime(2026, 4, 4, 15, tzinfo=UTC)),
    (ZoneInfo("Antarctica/Troll"), datetime(2026, 3, 29, 1, tzinfo=UTC)),  # by two hours
    (ZoneInfo("America/Nuuk"), datetime(2024, 3, 31, 1, tzinfo=UTC)),  # from 22:00 to 23:00
    (ZoneInfo("America/Toronto"), datetime(1919, 3, 31, 4, 30, tzinfo=UTC)),  # from 23:30 into the next day
    (ZoneInfo("Asia/Kathmandu"), datetime(2026, 3, 29, 1, tzinfo=UTC)),  # none
]


def at(zone: ZoneInfo, text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)


def until(hour: str, zone: ZoneInfo, arrived: datetime, *weekdays: int, hurried: bool = False) -> datetime:
    step = WaitUntilStep("w", time.fromisoformat(hour), "next", frozenset(weekdays))
    return wait_end(step, zone, arrived, hurried=hurried)


def searched(step: WaitUntilStep, zone: ZoneInfo, arrived: datetime) -> datetime:
    """The definition, minute by minute: the clock is looked at, and what it jumps over is put off by an hour."""
    first = arrived.replace(second=0, microsecond=0)
    put_off: set[datetime] = set()
    shown = set()
    minute = first - timedelta(days=1, hours=4)  # what was put off, and what was shown once already
    before = (minute - MINUTE).astimezone(zone).replace(tzinfo=None)
    while True:
        wall = minute.astimezone(zone).replace(tzinfo=None)
        jumped = before + MINUTE
        while jumped < wall:
            if matches(step, jumped) or jumped in put_off:
                put_off.add(jumped + timedelta(hours=1))
            jumped += MINUTE
        if wall not in shown and (matches(step, wall) or wall in put_off) and minute >= first:
            return max(minute, arrived)
        shown.add(wall)
        before = wall
        minute += MINUTE


def matches(step: WaitUntilStep, wall: datetime) -> bool:
    return wall.time() == step.hour and (not step.weekdays or wall.isoweekday() in step.weekdays)


@st.composite
def arrivals(draw: st.DrawFn) -> tuple[WaitUntilStep, ZoneInfo, datetime]:
    """Within two days before a change or a day after it; the hour mostly where the clock is changed."""
    zone, change = draw(st.sampled_from(CHANGES))
    arrived = change + timedelta(seconds=draw(st.integers(-2 * 86_400, 86_400)))
    if draw(st.booleans()):
        near = (change + timedelta(minutes=draw(st.integers(-150, 150)))).astimezone(zone)
        hour = time(near.hour, near.minute)
    else:
        hour = time(draw(st.integers(0, 23)), draw(st.integers(0, 59)))
    weekdays = draw(st.frozensets(st.integers(1, 7), max_size=3))
    return WaitUntilStep("w", hour, "next", weekdays), zone, arrived


@given(arrivals())
@settings(max_examples=examples(600))
def test_a_wait_ends_where_a_search_minute_by_minute_ends(case: tuple[WaitUntilStep, ZoneInfo, datetime]) -> None:
    step, zone, arrived = case
    assert wait_end(step, zone, arrived, hurried=False) == searched(step, zone, arrived)


@given(arrivals())
def test_whoever_comes_at_the_end_of_a_wait_does_not_wait(case: tuple[WaitUntilStep, ZoneInfo, datetime]) -> None:
    step, zone, arrived = case
    end = wait_end(step, zone, arrived, hurried=False)
    assert arrived <= end <= arrived + timedelta(days=9)
    assert wait_end(step, zone, end, hurried=False) == end
    assert wait_end(step, zone, end + MINUTE, hurried=False) > end + MINUTE


def test_the_next_matching_weekday_ends_the_wait() -> None:
    friday = at(SAO_PAULO, "2026-03-13T18:20:31")
    assert until("09:00", SAO_PAULO, friday, MONDAY) == at(SAO_PAULO, "2026-03-16T09:00")
    assert until("09:00", SAO_PAULO, friday) == at(SAO_PAULO, "2026-03-14T09:00")
    assert until("18:30", SAO_PAULO, friday, 5) == at(SAO_PAULO, "2026-03-13T18:30")


def test_the_very_minute_does_not_wait_and_the_next_one_waits_a_week() -> None:
    begin = at(SAO_PAULO, "2026-03-16T09:00")
    last = begin + timedelta(seconds=59, microseconds=999_999)
    assert until("09:00", SAO_PAULO, begin, MONDAY) == begin
    assert until("09:00", SAO_PAULO, last, MONDAY) == last
    assert until("09:00", SAO_PAULO, begin + MINUTE, MONDAY) == begin + timedelta(days=7)
    assert until("09:00", SAO_PAULO, begin - timedelta(microseconds=1), MONDAY) == begin


@pytest.mark.parametrize(
    ("zone", "day", "hour", "shown"),
    [
        (SAO_PAULO, "2018-11-04", "00:30", "2018-11-04T01:30"),
        (SAO_PAULO, "2018-11-03", "23:59", "2018-11-03T23:59"),
        (BERLIN, "2026-03-29", "02:00", "2026-03-29T03:00"),
        (BERLIN, "2026-03-29", "02:59", "2026-03-29T03:59"),
        (BERLIN, "2026-03-29", "03:00", "2026-03-29T03:00"),
        (LORD_HOWE, "2026-10-04", "02:10", "2026-10-04T03:10"),
        (LORD_HOWE, "2026-10-04", "02:30", "2026-10-04T02:30"),
        (ZoneInfo("Antarctica/Troll"), "2026-03-29", "01:30", "2026-03-29T03:30"),
        (ZoneInfo("America/Toronto"), "1919-03-30", "23:40", "1919-03-31T00:40"),
        (ZoneInfo("Pacific/Apia"), "2011-12-30", "09:00", "2011-12-31T00:00"),
    ],
)
def test_a_time_that_the_clock_skips_is_taken_an_hour_later(zone: ZoneInfo, day: str, hour: str, shown: str) -> None:
    found = local_moment(date.fromisoformat(day), time.fromisoformat(hour), zone)
    assert found.astimezone(zone).replace(tzinfo=None) == datetime.fromisoformat(shown)


def test_a_skipped_time_may_be_taken_on_the_day_after() -> None:
    toronto = ZoneInfo("America/Toronto")
    arrived = datetime(1919, 3, 31, 4, 35, tzinfo=UTC)  # Monday, 00:35: five minutes after the jump from Sunday, 23:30
    assert until("23:40", toronto, arrived, SUNDAY) == arrived + timedelta(minutes=5)


@pytest.mark.parametrize(
    ("zone", "day", "hour", "first"),
    [
        (SAO_PAULO, "2018-02-17", "23:30", "2018-02-18T01:30"),
        (BERLIN, "2026-10-25", "02:30", "2026-10-25T00:30"),
        (LORD_HOWE, "2026-04-05", "01:45", "2026-04-04T14:45"),
    ],
)
def test_a_time_that_comes_twice_counts_the_first_time(zone: ZoneInfo, day: str, hour: str, first: str) -> None:
    moment = local_moment(date.fromisoformat(day), time.fromisoformat(hour), zone)
    assert moment == datetime.fromisoformat(first).replace(tzinfo=UTC)
    # Whoever comes between the two, or the second time, waits for the next day.
    assert until(hour, zone, moment + 2 * MINUTE) > moment + timedelta(hours=20)
    repeated = moment.astimezone(zone).replace(fold=1).astimezone(UTC)
    assert repeated > moment
    assert until(hour, zone, repeated) > repeated + timedelta(hours=20)


def test_a_wait_of_minutes_takes_no_notice_of_the_clock_on_the_wall() -> None:
    arrived = at(BERLIN, "2026-03-29T01:30")
    assert wait_end(WaitForStep("w", 60, "next"), BERLIN, arrived, hurried=False) == arrived + timedelta(hours=1)


def test_no_wait_lasts_more_than_ninety_days() -> None:
    arrived = at(SAO_PAULO, "2026-03-13T18:20")
    ninety = arrived + timedelta(days=90)
    assert wait_end(WaitForStep("w", 129_600, "next"), SAO_PAULO, arrived, hurried=False) == ninety
    assert wait_end(WaitForStep("w", 129_601, "next"), SAO_PAULO, arrived, hurried=False) == ninety


def test_a_test_that_leaves_waits_out_waits_a_second_at_most() -> None:
    arrived = at(SAO_PAULO, "2026-03-16T08:59:59.500000")
    assert wait_end(WaitForStep("w", 1, "next"), SAO_PAULO, arrived, hurried=True) == arrived + timedelta(seconds=1)
    assert until("18:00", SAO_PAULO, arrived, SUNDAY, hurried=True) == arrived + timedelta(seconds=1)
    assert until("09:00", SAO_PAULO, arrived, hurried=True) == at(SAO_PAULO, "2026-03-16T09:00")
