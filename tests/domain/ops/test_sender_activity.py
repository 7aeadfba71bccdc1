"""What went through a sender by minute: rings that forget (C34.1)."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from recado.domain.ops.sender_activity import (
    FAILURES,
    LATELY,
    MINUTES,
    MOST_CODES,
    OTHER,
    MinuteFigures,
    SenderActivity,
    SenderFailure,
    every_and_failed,
    joined_errors,
    joined_lately,
)

NOW = 29_000_000
AT = datetime(2026, 1, 31, tzinfo=UTC)


def failure(code: str = "rejected", message_id: str = "msg_1") -> SenderFailure:
    return SenderFailure(AT, message_id, code)


def test_a_minute_tells_what_left_what_failed_what_waits_and_how_long_calls_took() -> None:
    seen = SenderActivity(NOW)
    for _ in range(95):
        seen.left(NOW, 10)
    for _ in range(5):
        seen.left(NOW, 2_000)
    seen.fell(NOW, failure())
    seen.waits(NOW, 7)
    assert seen.hour.series(NOW)[-1] == MinuteFigures(NOW, 100, 1, 7, 10)


def test_the_hour_has_no_gap_and_ends_with_the_present_minute() -> None:
    seen = SenderActivity(NOW)
    seen.left(NOW, 1)
    seen.left(NOW + 30, 1)
    series = seen.hour.series(NOW + 59)
    assert [each.minute for each in series] == list(range(NOW, NOW + MINUTES))
    assert [each.minute for each in series if each.sent] == [NOW, NOW + 30]
    assert (series[1].queued, series[1].p95_ms) == (None, None)


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=300))
def test_what_is_counted_is_what_happened_in_the_window(steps: list[tuple[int, bool]]) -> None:
    seen, minute, happened = SenderActivity(NOW), NOW, []
    for later, failed in steps:
        minute += later
        happened.append((minute, failed))
        if failed:
            seen.fell(minute, failure())
        else:
            seen.left(minute, 3)

    def counted(minutes: int, failed: bool) -> int:
        return sum(fell is failed for at, fell in happened if at > minute - minutes)

    failures = counted(LATELY, True)
    assert every_and_failed(seen.lately(minute)) == (counted(LATELY, False) + failures, failures)
    assert sum(seen.errors(minute).values()) == counted(LATELY, True)
    series = seen.hour.series(minute)
    assert sum(each.sent for each in series) == counted(MINUTES, False)
    assert sum(each.failed for each in series) == counted(MINUTES, True)


def test_it_keeps_the_last_failures_the_newest_first() -> None:
    seen = SenderActivity(NOW)
    for number in range(FAILURES + 5):
        seen.fell(NOW + number, failure(message_id=str(number)))
    assert [each.message_id for each in seen.hour.failures] == [str(n) for n in range(FAILURES + 4, 4, -1)]


def test_codes_beyond_a_bound_are_counted_together() -> None:
    seen = SenderActivity(NOW)
    for number in range(MOST_CODES + 10):
        seen.fell(NOW, failure(str(number)))
    errors = seen.errors(NOW)
    assert errors[OTHER] == 10
    assert len(errors) == MOST_CODES + 1


def test_it_is_idle_after_an_hour_in_which_nothing_left_failed_or_waited() -> None:
    seen = SenderActivity(NOW)
    seen.left(NOW + 1, 3)
    for minute in range(NOW + 2, NOW + 10):
        seen.waits(minute, 0)
    assert not seen.idle(NOW + MINUTES)
    assert seen.idle(NOW + 1 + MINUTES)
    seen.waits(NOW + 70, 1)
    assert not seen.idle(NOW + 71)


def test_the_ring_does_not_grow_beyond_an_hour() -> None:
    seen = SenderActivity(NOW)
    for minute in range(NOW, NOW + 500):
        seen.left(minute, 3)
    assert len(seen._past) <= 6 * MINUTES


def test_a_message_that_left_and_failed_later_counts_once() -> None:
    seen = SenderActivity(NOW)
    for _ in range(4):
        seen.left(NOW, 3)
    seen.fell(NOW + 1, failure(), late=True)
    seen.fell(NOW + 1, failure())
    assert every_and_failed(seen.lately(NOW + 1)) == (5, 2)
    assert every_and_failed(seen.lately(NOW + LATELY)) == (2, 2)  # that it left lies before


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["left", "fell", "late"]), st.booleans()), max_size=200))
def test_what_two_processes_know_of_a_sender_is_what_one_would(steps: list[tuple[int, str, bool]]) -> None:
    minute, one, parts = NOW, SenderActivity(NOW), (SenderActivity(NOW), SenderActivity(NOW))
    for number, (later, what, where) in enumerate(steps):
        minute += later
        failed = SenderFailure(AT + timedelta(seconds=number), f"msg_{number}", what)
        for each in (one, parts[where]):
            if what == "left":
                each.left(minute, 3)
            else:
                each.fell(minute, failed, late=what == "late")
    one.waits(minute, 7)
    parts[0].waits(minute, 7)
    here, there = parts
    assert here.hour.joined(there.hour).series(minute) == one.hour.series(minute)
    assert here.hour.joined(there.hour).failures == one.hour.failures
    assert joined_lately(here.lately(minute), there.lately(minute)) == one.lately(minute)
    assert joined_errors(here.errors(minute), there.errors(minute)) == one.errors(minute)


def test_codes_of_two_processes_are_counted_together_beyond_the_same_bound() -> None:
    one, other = ({f"{which}{number}": 1 for number in range(MOST_CODES - 10)} for which in "ab")
    joined = joined_errors(one, other)
    assert len(joined) == MOST_CODES + 1
    assert sum(joined.values()) == 2 * (MOST_CODES - 10)
