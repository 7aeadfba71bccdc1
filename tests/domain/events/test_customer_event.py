"""What may be told of customers, and when; how far an event is from the message that is credited (C21)."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.domain.core.errors import Problem
from recado.domain.events.customer_event import Touch, check_moment, check_period, is_event_name

NOW = datetime(2026, 11, 26, 12, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


@pytest.mark.parametrize("text", ["a", "order.paid", "A-Z_0:9", "7", "x" * 100])
def test_a_name_is_of_letters_digits_and_a_few_signs(text: str) -> None:
    assert is_event_name(text)


@pytest.mark.parametrize("text", ["", "order paid", "pedido.não", "a/b", "x" * 101, "order\n", "٣"])
def test_other_names_are_refused(text: str) -> None:
    assert not is_event_name(text)


@pytest.mark.parametrize(
    ("ahead", "code"),
    [
        (timedelta(minutes=5), None),
        (timedelta(minutes=5) + MOMENT, "EVENT_IN_FUTURE"),
        (timedelta(days=-365), None),
        (timedelta(days=-365) - MOMENT, "EVENT_TOO_OLD"),
    ],
)
def test_an_event_lies_within_a_year_and_five_minutes(ahead: timedelta, code: str | None) -> None:
    if code is None:
        check_moment(NOW + ahead, NOW)
        return
    with pytest.raises(Problem) as refused:
        check_moment(NOW + ahead, NOW)
    assert (refused.value.code, [error.path for error in refused.value.errors]) == (code, ["/occurredAt"])


def test_a_list_goes_over_ninety_two_days() -> None:
    check_period(NOW - timedelta(days=92), NOW)
    with pytest.raises(Problem) as refused:
        check_period(NOW - timedelta(days=92) - MOMENT, NOW)
    assert (refused.value.code, refused.value.status) == ("INVALID_PERIOD", 400)


@pytest.mark.parametrize(("minutes", "hours"), [(0, 0.0), (150, 2.5), (20, 0.33), (40, 0.67), (43_200, 720.0)])
def test_the_distance_is_told_in_hours_with_two_decimals(minutes: int, hours: float) -> None:
    touch = Touch("msg_1", "sms", NOW - timedelta(minutes=minutes), None, None)
    assert touch.hours_until(NOW) == hours


@settings(max_examples=examples(200))
@given(st.integers(0, 720 * 3_600_000))
def test_the_distance_is_never_more_than_half_a_hundredth_off(milliseconds: int) -> None:
    touch = Touch("msg_1", "sms", NOW - timedelta(milliseconds=milliseconds), None, None)
    assert abs(touch.hours_until(NOW) - milliseconds / 3_600_000) <= 0.005 + 1e-9
