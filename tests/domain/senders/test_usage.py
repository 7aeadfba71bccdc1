"""Windows of usage and their buckets (C14.4)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.senders.usage import LENGTHS, Bucket, Window, bucket_starts, default_bucket, since

MOMENTS = st.datetimes(datetime(2015, 1, 1), datetime(2030, 1, 1), timezones=st.just(UTC))
# Clock changes at midnight (São Paulo until 2019, Havana) and by half an hour (Lord Howe).
ZONES = st.sampled_from(["UTC", "America/Sao_Paulo", "America/Havana", "Australia/Lord_Howe", "Asia/Kolkata"]).map(
    ZoneInfo
)


@given(MOMENTS, st.sampled_from(list(LENGTHS)), st.sampled_from(["hour", "day"]), ZONES)
def test_buckets_cover_the_window_and_nothing_more(
    until: datetime, window: Window, bucket: Bucket, zone: ZoneInfo
) -> None:
    first = since(window, until)
    starts = bucket_starts(first, until, bucket, zone)
    assert starts[0] <= first
    assert starts[-1] < until
    assert all(first < start for start in starts[1:])  # one bucket, when the window is a whole day
    longest = timedelta(hours=1 if bucket == "hour" else 25)
    assert all(timedelta() < b - a <= longest for a, b in pairwise(starts))
    assert until - starts[-1] <= longest


@given(MOMENTS, st.sampled_from(list(LENGTHS)))
def test_a_window_begins_on_a_whole_minute_at_least_its_length_ago(until: datetime, window: Window) -> None:
    start = since(window, until)
    assert (start.second, start.microsecond) == (0, 0)
    assert timedelta() <= until - LENGTHS[window] - start < timedelta(minutes=1)


def test_a_day_of_a_clock_change_is_one_bucket() -> None:
    zone = ZoneInfo("Europe/Lisbon")
    starts = bucket_starts(datetime(2026, 3, 28, 12, tzinfo=UTC), datetime(2026, 3, 31, tzinfo=UTC), "day", zone)
    assert [f"{start:%d %H:%M}" for start in starts] == ["28 00:00", "29 00:00", "29 23:00", "30 23:00"]


def test_whole_hours_make_as_many_buckets() -> None:
    until = datetime(2026, 3, 31, tzinfo=UTC)
    assert len(bucket_starts(until - timedelta(days=30), until, "hour", ZoneInfo("UTC"))) == 720


@pytest.mark.parametrize(("window", "bucket"), [("24h", "hour"), ("7d", "day"), ("30d", "day")])
def test_a_day_is_shown_by_hours_and_more_by_days(window: Window, bucket: Bucket) -> None:
    assert default_bucket(window) == bucket
