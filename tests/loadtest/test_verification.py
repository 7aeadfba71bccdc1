"""The check at the end of a load test must find what is wrong."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.loadtest.verification import ListedMessage, busiest_second, verify

START = datetime(2026, 3, 14, tzinfo=UTC)
LIMITS = {"num_1": 2}


def row(message_id: str, milliseconds: float | None, status: str = "sent", reason: str | None = None) -> ListedMessage:
    sent_at = None if milliseconds is None else START + timedelta(milliseconds=milliseconds)
    return ListedMessage(message_id, "num_1", status, START, sent_at, reason)


def test_everything_that_left_once_and_in_pace_is_right() -> None:
    rows = [row("a", 0), row("b", 500, "delivered"), row("c", 1000, "read")]

    outcome = verify(["a", "b", "c"], rows, LIMITS, unanswered=0)

    assert outcome.problems == []
    assert outcome.left == 3
    assert outcome.seconds_to_sent == outcome.sent_at == [0, 0.5, 1]
    assert (outcome.numbers[0].left, outcome.numbers[0].peak) == (3, 2)


def test_a_pace_that_nobody_knows_is_no_fault_and_is_told() -> None:
    rows = [row("a", 0), row("b", 1), row("c", 2)]
    outcome = verify(["a", "b", "c"], rows, dict.fromkeys(LIMITS), unanswered=0)
    assert outcome.problems == []
    assert [(figures.per_second, figures.peak) for figures in outcome.numbers] == [(None, 3)]


def test_an_accepted_message_that_is_not_listed_is_found() -> None:
    assert verify(["a", "b"], [row("a", 0)], LIMITS, unanswered=0).problems == ["1 accepted message is not listed"]


def test_a_message_that_is_listed_twice_is_found() -> None:
    assert verify(["a"], [row("a", 0), row("a", 5)], LIMITS, unanswered=0).problems == ["1 message is listed twice"]


def test_one_id_for_two_requests_is_found() -> None:
    outcome = verify(["a"], [row("a", 0)], LIMITS, unanswered=0, repeated_ids=1)

    assert outcome.problems == ["1 answer repeated the id of another message"]


@pytest.mark.parametrize(
    ("status", "reason", "told"),
    [("queued", None, "queued"), ("failed", "expired", "failed (expired)"), ("archived", None, "archived")],
)
def test_an_accepted_message_that_did_not_leave_is_found(status: str, reason: str | None, told: str) -> None:
    outcome = verify(["a"], [row("a", None, status, reason)], LIMITS, unanswered=0)

    assert outcome.problems == [f"1 accepted message did not leave: {told}"]


def test_more_messages_than_requests_are_found() -> None:
    rows = [row("a", 0), row("b", 1000)]

    assert verify(["a"], rows, LIMITS, unanswered=1).problems == []
    assert len(verify(["a"], rows, LIMITS, unanswered=0).problems) == 1


def test_a_number_that_went_too_fast_is_found() -> None:
    rows = [row("a", 0), row("b", 500), row("c", 998)]

    outcome = verify(["a", "b", "c"], rows, LIMITS, unanswered=0)

    assert outcome.problems == ["num_1 sent 3 messages within a second; its limit is 2"]


def test_a_message_through_a_foreign_number_is_found() -> None:
    rows = [ListedMessage("a", "num_2", "sent", START, START)]

    assert verify(["a"], rows, LIMITS, unanswered=0).problems == [
        "num_2 sent 1 message within a second; its limit is 0"
    ]


@given(moments=st.lists(st.integers(0, 3_000), max_size=60))
def test_the_busiest_second_is_what_looking_at_every_second_finds(moments: list[int]) -> None:
    slow = max((sum(start <= moment < start + 999 for moment in moments) for start in moments), default=0)

    assert busiest_second(moments) == slow
