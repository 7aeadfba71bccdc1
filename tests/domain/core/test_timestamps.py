"""One output form, any offset as input (C2.3.5)."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.timestamps import EARLIEST, LATEST, format_milliseconds, format_timestamp, parse_timestamp

offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))
moments = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=offsets)


@given(moments)
def test_a_timestamp_is_utc_with_milliseconds_cut_off(at: datetime) -> None:
    text = format_timestamp(at)
    assert len(text) == 24
    assert text[-1] == "Z"
    assert parse_timestamp(text) == at.replace(microsecond=at.microsecond // 1000 * 1000)


@given(moments)
def test_a_moment_in_milliseconds_has_the_same_form(at: datetime) -> None:
    since_1970 = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
    assert format_milliseconds(since_1970) == format_timestamp(at)


@given(moments)
def test_every_offset_is_understood(at: datetime) -> None:
    parsed = parse_timestamp(at.isoformat())
    assert parsed == at
    assert parsed.tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-11-20T12:00:00Z", datetime(2026, 11, 20, 12, tzinfo=UTC)),
        ("2026-11-20t12:00:00z", datetime(2026, 11, 20, 12, tzinfo=UTC)),
        ("2026-11-20 12:00:00-03:00", datetime(2026, 11, 20, 15, tzinfo=UTC)),
        ("2026-11-20T12:00:00.5+00:00", datetime(2026, 11, 20, 12, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-11-20T12:00:00.123456789Z", datetime(2026, 11, 20, 12, 0, 0, 123_456, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2017, 1, 1, tzinfo=UTC)),
        ("2026-11-20T12:00:00-00:00", datetime(2026, 11, 20, 12, tzinfo=UTC)),
    ],
)
def test_the_forms_of_rfc_3339_are_understood(text: str, expected: datetime) -> None:
    assert parse_timestamp(text) == expected


@pytest.mark.parametrize(
    ("text", "moment", "shown"),
    [
        ("0001-01-01T00:00:00Z", EARLIEST, "0001-01-01T00:00:00.000Z"),
        ("0001-01-01T01:00:00.000+01:00", EARLIEST, "0001-01-01T00:00:00.000Z"),
        ("9999-12-31T23:59:59.9999999Z", LATEST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_the_ends_of_time_are_moments_that_the_database_can_tell_from_infinity(
    text: str, moment: datetime, shown: str
) -> None:
    assert datetime.min.replace(tzinfo=UTC) < moment < datetime.max.replace(tzinfo=UTC)
    assert parse_timestamp(text) == moment
    assert format_timestamp(moment) == shown


@pytest.mark.parametrize(
    "text",
    ["", "now", "2026-11-20", "2026-11-20T12:00:00", "2026-11-20T12:00Z", "2026-11-20T12:00:00+03",
     "2026-13-01T00:00:00Z", "2026-11-20T12:00:00+0300", "2026-02-30T00:00:00Z", "2026-11-20T24:00:00Z",
     "2026-11-20T12:00:61Z",
     "0001-01-01T00:00:00+10:00", "9999-12-31T23:59:60Z", "２026-11-20T12:00:00Z", "2026-11-20T12:00:00.Z",
     "2026-11-20T12:00:00+24:00", "2026-11-20T12:00:00+01:60", "20261120T120000Z", "2026-11-20T12:00:00Z\n"],
)  # fmt: skip
def test_a_date_time_without_offset_or_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"RFC 3339|no such moment"):
        parse_timestamp(text)
