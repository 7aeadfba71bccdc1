"""The policy of e-mail: its states by reports in any order, and what it says of a failure (C10.3, C10.2.8)."""

from itertools import permutations

import pytest

from recado.domain.channels.chatapp import POLICY as CHATAPP
from recado.domain.channels.email import (
    MACHINE,
    POLICY,
    BounceType,
    EmailReason,
    bounce_code,
    bounce_type,
    reason_of,
    suppresses,
)
from recado.domain.channels.policy import MessageFacts
from recado.domain.email.suppression import SuppressionReason
from recado.domain.messages.message import FailureCode, MessageEvent, MessageStatus, Report, WaitReason

S, R = MessageStatus, Report


def after(state: MessageStatus, *reports: Report, uncertain: bool = False) -> MessageStatus:
    for report in reports:
        for event in POLICY.report_moves(state, report, uncertain=uncertain):
            state = MACHINE.move(state, event)
    return state


@pytest.mark.parametrize("state", [S.QUEUED, S.SENT])
@pytest.mark.parametrize("reports", [*permutations([R.SENT, R.DELIVERED, R.BOUNCED, R.COMPLAINED])])
def test_it_ends_as_the_first_bounce_or_complaint_says(state: MessageStatus, reports: tuple[Report, ...]) -> None:
    end = S(next(each for each in reports if each in (R.BOUNCED, R.COMPLAINED)).value)
    assert after(state, *reports) is end
    assert after(state, *reports, *reports) is end


def test_a_report_for_what_is_queued_makes_it_sent_first() -> None:
    for report in (R.DELIVERED, R.BOUNCED, R.COMPLAINED, R.FAILED):
        first, *_ = POLICY.report_moves(S.QUEUED, report)
        assert MACHINE.move(S.QUEUED, first) is S.SENT


@pytest.mark.parametrize("uncertain", [True, False])
def test_what_failed_moves_on_only_by_a_report_that_it_arrived_after_an_unknown_outcome(uncertain: bool) -> None:
    ends = {report: after(S.FAILED, report, uncertain=uncertain) for report in (R.SENT, R.DELIVERED, R.COMPLAINED)}
    assert ends == {report: S(report.value) if uncertain else S.FAILED for report in ends}
    assert after(S.FAILED, R.BOUNCED, R.FAILED, uncertain=uncertain) is S.FAILED


def test_it_is_subject_to_consent_unless_it_is_transactional() -> None:
    assert POLICY.subject_to_consent(None)
    assert not POLICY.subject_to_consent("transactional")


def test_every_code_has_a_reason() -> None:
    assert reason_of(None) is None
    assert reason_of(FailureCode.OUTCOME_UNKNOWN) is EmailReason.PROVIDER_ERROR
    assert {reason_of(code) for code in FailureCode} <= set(EmailReason)
    assert all(reason_of(reason) is reason for reason in EmailReason)


@pytest.mark.parametrize("code", [None, *EmailReason, "provider_error"])
@pytest.mark.parametrize("told", [None, *BounceType])
def test_the_code_of_a_bounce_says_what_its_provider_told(code: str | None, told: BounceType | None) -> None:
    kept = bounce_code(code, told)
    assert bounce_type(kept) is (told or bounce_type(code))
    if bounce_type(kept) is BounceType.TEMPORARY:
        assert kept in ("mailbox_full", "provider_error")


def test_a_permanent_bounce_and_a_complaint_suppress_the_address() -> None:
    assert suppresses("bounced", "invalid_address") is SuppressionReason.BOUNCE
    assert suppresses("complained", None) is SuppressionReason.COMPLAINT
    assert suppresses("bounced", "mailbox_full") is suppresses("failed", "invalid_address") is None


def test_an_event_tells_subject_and_sender_and_why_it_came_back() -> None:
    facts = MessageFacts("a@b.c", {"subject": "Hi", "from": "x@y.z", "bodyBytes": 3}, 1, "mailbox_full", None)
    assert POLICY.tells is not None
    told = {"subject": "Hi", "from": "x@y.z"}
    assert POLICY.tells("delivered", facts) == told
    assert POLICY.tells("bounced", facts) == {**told, "reason": "mailbox_full", "bounceType": "temporary"}
    assert POLICY.tells("complained", facts) == {**told, "reason": "complaint"}


def test_what_a_journey_queues_waits_for_its_pause_and_for_no_template_of_a_number() -> None:
    assert WaitReason.OWNER_PAUSED in [gate.reason for gate in POLICY.gates.gates]
    assert not POLICY.gates.asks_template
    assert CHATAPP.gates.asks_template
    assert MACHINE.move(S.QUEUED, MessageEvent.RETURN_TO_QUEUE) is S.QUEUED
    assert MACHINE.move(S.QUEUED, MessageEvent.EXPIRED) is S.FAILED
