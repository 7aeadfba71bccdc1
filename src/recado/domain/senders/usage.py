"""Windows of usage and their buckets: whole hours in UTC, days of the organization's zone (C14.4)."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

Window = Literal["24h", "7d", "30d"]
Bucket = Literal["hour", "day"]

LENGTHS: Final[dict[Window, timedelta]] = {
    "24h": timedelta(hours=24),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}


def since(window: Window, until: datetime) -> datetime:
    """The start of the window that ends at `until`, cut to the minute."""
    return (until - LENGTHS[window]).replace(second=0, microsecond=0)


def default_bucket(window: Window) -> Bucket:
    return "hour" if window == "24h" else "day"


def bucket_starts(first: datetime, until: datetime, bucket: Bucket, zone: ZoneInfo) -> list[datetime]:
    """The starts, in UTC and ascending, of the buckets that hold some part of [first, until).

    The first bucket may start before `first`. A day of 23 or 25 hours (clock change) is one bucket all the same.
    """
    if bucket == "hour":
        start = first.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        hours = -((start - until) // timedelta(hours=1))
        return [start + timedelta(hours=hour) for hour in range(hours)]
    starts = []
    day = first.astimezone(zone).date()
    while (start := _midnight(day, zone)) < until:
        starts.append(start)
        day += timedelta(days=1)
    return starts


def _midnight(day: date, zone: ZoneInfo) -> datetime:
    return datetime.combine(day, time(), zone).astimezone(UTC)
