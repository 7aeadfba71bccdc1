"""Timestamps at the edge: one output form, any RFC 3339 offset as input (C2.3.5)."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_RFC3339 = re.compile(
    r"(\d{4}-\d{2}-\d{2})[Tt ](\d{2}:\d{2}):(\d{2})(\.\d+)?([Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_USUAL = len("2026-03-10T12:00:00Z")

# The database takes the first and the last microsecond that there are for infinite ones, which belong to no time zone.
# Callers do write them: as "never", and as the zero of their language.
EARLIEST = datetime.min.replace(microsecond=1, tzinfo=UTC)
LATEST = datetime.max.replace(microsecond=999_998, tzinfo=UTC)

# Every answer renders several times; put together from these, one takes a third of what isoformat does.
_SECONDS = [f":{minute:02}:{second:02}" for minute in range(60) for second in range(60)]
_MILLISECONDS = [f".{millisecond:03}Z" for millisecond in range(1000)]


def format_timestamp(at: datetime) -> str:
    """An aware time as `YYYY-MM-DDTHH:MM:SS.sssZ`; what is finer than a millisecond is cut."""
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    hour = _hour_text(at.year, at.month, at.day, at.hour)
    return hour + _SECONDS[at.minute * 60 + at.second] + _MILLISECONDS[at.microsecond // 1000]


def to_the_millisecond(at: datetime) -> datetime:
    """A moment as it is shown: what is finer than a millisecond is cut."""
    return at.replace(microsecond=at.microsecond // 1000 * 1000)


def format_milliseconds(since_1970: int) -> str:
    """As `format_timestamp`, of a moment as milliseconds, which cost half as much as one that is made of them first."""
    hours, rest = divmod(since_1970, 3_600_000)
    second, millisecond = divmod(rest, 1000)
    return _text_of_hour(hours) + _SECONDS[second] + _MILLISECONDS[millisecond]


@lru_cache(maxsize=1024)
def _text_of_hour(hours: int) -> str:
    at = _EPOCH + timedelta(hours=hours)
    return _hour_text(at.year, at.month, at.day, at.hour)


@lru_cache(maxsize=1024)
def _hour_text(year: int, month: int, day: int, hour: int) -> str:
    return f"{year:04}-{month:02}-{day:02}T{hour:02}"


def parse_timestamp(text: str) -> datetime:
    """The UTC time of an RFC 3339 date-time; digits finer than a microsecond are cut.

    The first and the last moment of all are taken for a microsecond nearer. ValueError when the text has another form,
    names no offset, or no such moment exists.
    """
    return _parse_usual(text) if len(text) == _USUAL else _parse(text)


def _parse(text: str) -> datetime:
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise ValueError("not an RFC 3339 date-time with an offset")
    day, minute, second, fraction, offset = match.groups()
    leap = timedelta(0)
    if second == "60":  # a leap second: clocks here count it as the second that follows
        second, leap = "59", timedelta(seconds=1)
    digits = (fraction or ".0")[1:7]
    try:
        at = datetime.fromisoformat(f"{day}T{minute}:{second}.{digits:0<6}{offset.upper().replace('Z', '+00:00')}")
        return min(max(at.astimezone(UTC) + leap, EARLIEST), LATEST)
    except (ValueError, OverflowError):
        raise ValueError("no such moment exists") from None


# Much is scheduled for the same moment. Other forms may be as long as a body.
_parse_usual = lru_cache(maxsize=1024)(_parse)
