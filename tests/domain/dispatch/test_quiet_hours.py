"""Quiet hours by the local clock, across midnight and across changes of the clock (C14.5)."""

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from recado.domain.dispatch.quiet_hours import QuietHours, quiet_overlap, quiet_until

SAO_PAULO = ZoneInfo("America/Sao_Paulo")
NEW_YORK = ZoneInfo("America/New_York")
TICK = timedelta(microseconds=1)

ZONES = [
    "America/Sao_Paulo",  # until 2019 its clocks jumped at midnight
    "America/New_York",
    "Europe/Lisbon",
    "Australia/Lord_Howe",  # by half an hour
    "Asia/Kathmandu",
    "Africa/Casablanca",  # back and forth around Ramadan
    "Pacific/Apia",  # dropped 30 December 2011
    "Antarctica/Troll",  # by two hours
    "UTC",
]
zones = st.sampled_from(ZONES).map(ZoneInfo)
times = st.one_of(
    st.times(),
    st.builds(time, st.integers(0, 23), st.integers(0, 59)),
    st.builds(time, st.integers(0, 3), st.sampled_from([0, 15, 30, 45])),  # where clocks are changed
)
changes = st.sampled_from(
    [
        datetime(2018, 2, 18, 2, tzinfo=UTC),  # São Paulo, back
        datetime(2018, 11, 4, 3, tzinfo=UTC),  # São Paulo, forward at midnight
        datetime(2026, 3, 8, 7, tzinfo=UTC),  # New York, forward
        datetime(2026, 11, 1, 6, tzinfo=UTC),  # New York, back
        datetime(2026, 3, 29, 1, tzinfo=UTC),  # Lisbon and Troll, forward
        datetime(2026, 10, 25, 1, tzinfo=UTC),  # Lisbon and Troll, back
        datetime(2026, 4, 4, 15, tzinfo=UTC),  # Lord Howe, back
        datetime(2011, 12, 30, 10, tzinfo=UTC),  # Apia, a day dropped
    ]
)
moments = st.one_of(
    st.datetimes(datetime(2005, 1, 1), datetime(2036, 12, 31), timezones=st.just(UTC)),
    st.builds(
        lambda change, around: change + around, changes, st.timedeltas(timedelta(hours=-30), timedelta(hours=30))
    ),
)
windows = st.builds(QuietHours, times, times)


def is_quiet(quiet: QuietHours, zone: ZoneInfo, at: datetime) -> bool:
    """The definition, written out: what does the clock on the wall show?"""
    local = at.astimezone(zone).time()
    if quiet.start < quiet.end:
        return quiet.start <= local < quiet.end
    if quiet.start > quiet.end:
        return local >= quiet.start or local < quiet.end
    return False


@given(windows, zones, moments)
def test_quiet_ends_at_the_first_moment_after_which_it_is_not(quiet: QuietHours, zone: ZoneInfo, at: datetime) -> None:
    until = quiet_until(quiet, zone, at)
    if until is None:
        assert not is_quiet(quiet, zone, at)
        return
    assert is_quiet(quiet, zone, at)
    assert until > at
    assert is_quiet(quiet, zone, until - TICK)
    assert not is_quiet(quiet, zone, until)


@given(windows, zones, moments, st.data())
def test_everything_before_the_end_is_quiet(
    quiet: QuietHours, zone: ZoneInfo, at: datetime, data: st.DataObject
) -> None:
    until = quiet_until(quiet, zone, at)
    assume(until is not None)
    assert until is not None
    between = data.draw(st.datetimes(at.replace(tzinfo=None), until.replace(tzinfo=None), timezones=st.just(UTC)))
    assert between == until or is_quiet(quiet, zone, between)


@pytest.mark.parametrize(
    ("at", "until"),
    [
        ("2026-06-01T21:59:59", None),
        ("2026-06-01T22:00:00", "2026-06-02T08:00:00"),
        ("2026-06-02T00:00:00", "2026-06-02T08:00:00"),
        ("2026-06-02T07:59:59", "2026-06-02T08:00:00"),
        ("2026-06-02T08:00:00", None),
    ],
)
def test_a_window_across_midnight_lasts_until_the_morning(at: str, until: str | None) -> None:
    quiet = QuietHours(time(22), time(8))
    found = quiet_until(quiet, SAO_PAULO, datetime.fromisoformat(at).replace(tzinfo=SAO_PAULO))
    expected = until and datetime.fromisoformat(until).replace(tzinfo=SAO_PAULO)
    assert found == expected or (found is None and expected is None)


def test_equal_ends_are_never_quiet() -> None:
    assert quiet_until(QuietHours(time(9), time(9)), SAO_PAULO, datetime(2026, 6, 1, 12, tzinfo=UTC)) is None


def test_a_jump_of_the_clock_over_the_end_ends_the_quiet() -> None:
    # On 8 March 2026 the clocks of New York go from 01:59:59 to 03:00.
    quiet = QuietHours(time(22), time(2, 30))
    at = datetime(2026, 3, 8, 1, tzinfo=NEW_YORK)
    assert quiet_until(quiet, NEW_YORK, at) == datetime(2026, 3, 8, 3, tzinfo=NEW_YORK)


def test_an_hour_that_comes_twice_is_quiet_twice() -> None:
    # On 1 November 2026 the clocks of New York go from 01:59:59 back to 01:00.
    quiet = QuietHours(time(1, 15), time(1, 45))
    first = datetime(2026, 11, 1, 1, 20, tzinfo=NEW_YORK)
    again = first.replace(fold=1)
    assert quiet_until(quiet, NEW_YORK, first) == datetime(2026, 11, 1, 5, 45, tzinfo=UTC)
    assert quiet_until(quiet, NEW_YORK, again) == datetime(2026, 11, 1, 6, 45, tzinfo=UTC)


def test_a_clock_set_back_before_the_start_ends_the_quiet_early() -> None:
    quiet = QuietHours(time(1, 30), time(5))
    at = datetime(2026, 11, 1, 1, 40, tzinfo=NEW_YORK)
    assert quiet_until(quiet, NEW_YORK, at) == datetime(2026, 11, 1, 6, tzinfo=UTC)


def test_the_quiet_part_of_two_days_is_two_nights() -> None:
    start = datetime(2026, 6, 1, 12, tzinfo=SAO_PAULO)
    quiet = QuietHours(time(22), time(8))
    assert quiet_overlap(quiet, SAO_PAULO, start, start + timedelta(days=2)) == timedelta(hours=20)


def test_a_day_of_a_clock_change_has_a_shorter_night() -> None:
    start = datetime(2026, 3, 7, 12, tzinfo=NEW_YORK)
    quiet = QuietHours(time(22), time(8))
    assert quiet_overlap(quiet, NEW_YORK, start, datetime(2026, 3, 8, 12, tzinfo=NEW_YORK)) == timedelta(hours=9)


@given(windows, zones, moments, st.lists(st.timedeltas(timedelta(0), timedelta(hours=40)), min_size=1, max_size=3))
def test_parts_of_an_overlap_add_up(quiet: QuietHours, zone: ZoneInfo, at: datetime, spans: list[timedelta]) -> None:
    whole = quiet_overlap(quiet, zone, at, at + sum(spans, timedelta()))
    parts = timedelta()
    for span in spans:
        parts += quiet_overlap(quiet, zone, at, at + span)
        at += span
    assert parts == whole


@given(
    st.builds(QuietHours, *[st.builds(time, st.integers(0, 23), st.sampled_from([0, 15, 30, 45]))] * 2),
    zones,
    moments,
    st.integers(1, 180),
)
def test_an_overlap_is_the_sum_of_its_quiet_quarters(quiet: QuietHours, zone: ZoneInfo, at: datetime, n: int) -> None:
    quarter = timedelta(minutes=15)
    at = at.replace(minute=0, second=0, microsecond=0)
    counted = sum(is_quiet(quiet, zone, at + index * quarter) for index in range(n))
    assert quiet_overlap(quiet, zone, at, at + n * quarter) == counted * quarter
