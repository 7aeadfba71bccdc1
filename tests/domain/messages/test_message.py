"""A message's states, reports, failures (C14.6, C15.4)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.channels.chatapp import MACHINE as MESSAGE_MACHINE
from recado.domain.channels.chatapp import POLICY
from recado.domain.messages.message import (
    CLASS_OF,
    CLASSES,
    Cause,
    FailureCode,
    MessageEvent,
    MessageStatus,
    Priority,
    Report,
    last_error,
)

S, E = MessageStatus, MessageEvent
report_moves = POLICY.report_moves
PROGRESS = [S.QUEUED, S.SENDING, S.SENT, S.DELIVERED, S.READ]


@pytest.mark.parametrize(
    ("state", "event", "target"),
    [
        ("queued", "claim", "sending"),
        ("sending", "accepted", "sent"),
        ("sending", "return_to_queue", "queued"),
        ("sending", "refused", "failed"),
        ("sending", "unanswered", "sending"),
        ("sending", "outcome_unknown", "failed"),
        ("queued", "expired", "failed"),
        ("queued", "window_closed", "failed"),
        ("queued", "template_unavailable", "failed"),
        ("queued", "opted_out", "failed"),
        ("queued", "withdrawn", "archived"),
        ("sent", "report_delivered", "delivered"),
        ("sent", "report_read", "read"),
        ("delivered", "report_read", "read"),
        ("sent", "report_failed", "failed"),
        ("failed", "archive", "archived"),
        ("failed", "late_sent", "sent"),
        ("failed", "late_delivered", "delivered"),
        ("failed", "late_read", "read"),
        ("delivered", "opened", "read"),
    ],
)
def test_a_message_moves_as_the_contract_says(state: str, event: str, target: str) -> None:
    assert MESSAGE_MACHINE.move(S(state), E(event)) is S(target)


def test_a_message_whose_call_may_have_left_is_never_refused_back_out_of_a_later_state() -> None:
    assert MESSAGE_MACHINE.sources(E.RETURN_TO_QUEUE) == {S.SENDING}
    assert MESSAGE_MACHINE.sources(E.CLAIM) == {S.QUEUED}


def test_only_a_failure_is_revived_by_a_late_report() -> None:
    late = (E.LATE_SENT, E.LATE_DELIVERED, E.LATE_READ)
    assert {source for event in late for source in MESSAGE_MACHINE.sources(event)} == {S.FAILED}


@pytest.mark.parametrize("report", Report)
@pytest.mark.parametrize("status", MessageStatus)
@pytest.mark.parametrize("uncertain", [False, True])
def test_every_report_in_every_state_is_a_legal_path_or_nothing(
    status: MessageStatus, report: Report, uncertain: bool
) -> None:
    state = status
    for event in report_moves(status, report, uncertain=uncertain):
        state = MESSAGE_MACHINE.move(state, event)
    if status in PROGRESS and state is not S.FAILED:
        assert PROGRESS.index(state) >= PROGRESS.index(status)  # backward moves are ignored


@pytest.mark.parametrize(
    ("status", "report", "uncertain", "target"),
    [
        ("sending", "sent", False, "sent"),
        ("sending", "delivered", False, "delivered"),
        ("sending", "read", False, "read"),
        ("sending", "failed", False, "failed"),
        ("sent", "failed", False, "failed"),
        ("sent", "sent", False, "sent"),
        ("delivered", "failed", False, "delivered"),
        ("delivered", "sent", False, "delivered"),
        ("read", "delivered", False, "read"),
        ("failed", "delivered", False, "failed"),
        ("failed", "sent", True, "sent"),
        ("failed", "delivered", True, "delivered"),
        ("failed", "read", True, "read"),
        ("failed", "failed", True, "failed"),
        ("queued", "delivered", False, "queued"),
        ("archived", "delivered", True, "archived"),
    ],
)
def test_a_report_leads_to(status: str, report: str, uncertain: bool, target: str) -> None:
    state = S(status)
    for event in report_moves(S(status), Report(report), uncertain=uncertain):
        state = MESSAGE_MACHINE.move(state, event)
    assert state is S(target)


def test_a_report_on_an_unsettled_message_makes_it_sent_first() -> None:
    assert report_moves(S.SENDING, Report.READ)[0] is E.REPORT_SENT


@given(st.lists(st.sampled_from([Report.SENT, Report.DELIVERED, Report.READ, Report.FAILED]), max_size=8))
def test_reports_in_any_order_end_where_the_furthest_one_points(reports: list[Report]) -> None:
    positive = [report for report in reports if report is not Report.FAILED]
    state = S.SENT
    for report in positive:
        for event in report_moves(state, report):
            state = MESSAGE_MACHINE.move(state, event)
    assert state is max([S.SENT, *(S(report.value) for report in positive)], key=PROGRESS.index)


def test_a_failure_is_told_as_code_and_text() -> None:
    assert last_error(FailureCode.EXPIRED, "too old") == "expired: too old"
    assert Cause(FailureCode.EXPIRED, "too old").last_error == "expired: too old"


def test_the_class_of_a_priority_is_its_place() -> None:
    assert CLASS_OF == {Priority.CRITICAL: 0, Priority.NORMAL: 1, Priority.BULK: 2}
    assert [CLASS_OF[priority] for priority in CLASSES] == [0, 1, 2]
