"""What an export may ask for, and what its rows say of each channel (C18)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.channels.exported import COLUMNS, EXPORTED, LONGEST_PERIOD, period, periods
from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import Problem
from recado.domain.core.timestamps import EARLIEST, LATEST
from recado.http.routes.messages.export_models import ExportedRow

AT = datetime(2026, 1, 31, 12, tzinfo=UTC)
MS = timedelta(milliseconds=1)
BY_CHANNEL = {each.channel: each for each in EXPORTED}


def test_both_ends_belong_to_a_period_and_count_to_the_millisecond() -> None:
    finer = timedelta(microseconds=999)
    assert period(AT, AT) == (AT, AT + MS)
    assert period(AT + finer, AT + MS + finer) == (AT, AT + 2 * MS)
    assert period(AT + finer, AT) == (AT, AT + MS)


@pytest.mark.parametrize(
    ("start", "end", "code", "path"),
    [
        (AT, AT - MS, "VALIDATION_ERROR", "from"),
        (AT, AT + LONGEST_PERIOD + MS, "PERIOD_TOO_LONG", "to"),
        (EARLIEST, LATEST, "PERIOD_TOO_LONG", "to"),
    ],
)
def test_a_period_ends_behind_its_begin_and_has_31_days_at_most(
    start: datetime, end: datetime, code: str, path: str
) -> None:
    with pytest.raises(Problem) as refused:
        period(start, end)
    assert (refused.value.status, refused.value.code) == (422, code)
    assert [error.path for error in refused.value.errors] == [path]


def test_31_days_to_the_millisecond_and_the_last_moments_of_all_are_taken() -> None:
    assert period(AT, AT + LONGEST_PERIOD) == (AT, AT + LONGEST_PERIOD + MS)
    for at in (EARLIEST, LATEST):
        first, before = period(at, at)
        assert first < before


@given(
    st.datetimes(datetime(2020, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),
    st.timedeltas(timedelta(0), timedelta(days=400)),
)
def test_the_parts_of_a_long_period_hold_each_of_its_milliseconds_once(start: datetime, length: timedelta) -> None:
    end = start + length
    parts = [period(*part) for part in periods(start, end)]
    first, before = start.replace(microsecond=start.microsecond // 1000 * 1000), parts[0][1]
    assert end < before <= end + MS
    assert [part[0] for part in parts[:-1]] == [part[1] for part in parts[1:]]
    assert parts[-1][0] == first
    assert len(parts) == 1 + (before - MS - first) // (LONGEST_PERIOD + MS)


def test_nothing_is_in_a_period_that_ends_before_it_begins() -> None:
    assert list(periods(AT, AT - MS)) == []


def test_every_channel_that_sends_is_exported_but_social() -> None:
    assert set(POLICIES) - {"social"} <= set(BY_CHANNEL)


def test_the_columns_are_the_fields_of_a_row_in_their_order() -> None:
    assert tuple(info.alias or name for name, info in ExportedRow.model_fields.items()) == COLUMNS


@pytest.mark.parametrize(
    ("channel", "code", "error", "reason"),
    [
        ("chatapp", "window_closed", "window_closed: the window is closed", "window_closed"),
        ("chatapp", None, "provider_error: refused for now", "provider_error"),
        ("chatapp", "window_closed", "replaced by msg_1", "window_closed"),
        ("chatapp", None, "replaced by msg_1", None),
        ("chatapp", None, None, None),
        ("sms", "opted_out", "opted_out: …", "abandoned"),
        ("sms", "carrier_rejected", "carrier_rejected: …", "carrier_rejected"),
        ("sms", None, "provider_error: refused for now", None),
        ("rcs", "not_rcs_capable", "not_rcs_capable: …", "not_rcs_capable"),
        ("email", "mailbox_full", "mailbox_full: …", "mailbox_full"),
    ],
)
def test_the_reason_is_told_in_the_words_of_the_channel(
    channel: str, code: str | None, error: str | None, reason: str | None
) -> None:
    assert BY_CHANNEL[channel].reason(code, error) == reason


def test_what_went_by_sms_has_segments() -> None:
    segmented = {name: each.segmented({"deliveredVia": "rcs"}) for name, each in BY_CHANNEL.items()}
    assert segmented == {"chatapp": False, "sms": True, "rcs": False, "email": False}
    assert BY_CHANNEL["rcs"].segmented({"deliveredVia": "sms"})
