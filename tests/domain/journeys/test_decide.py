"""One decision for each kind of step, and what comes before and after all of them (C9.4, C9.12)."""

from datetime import UTC, datetime, time, timedelta
from typing import Any

import pytest
from tests.domain.journeys.cases import BORN, SAO_PAULO, person

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.core.machine import IllegalMove
from recado.domain.journeys.decide import Facts, after_internal_failure, decide
from recado.domain.journeys.execution import (
    EXECUTION_MACHINE,
    WITHDRAWS,
    Awaited,
    EndReason,
    ExecutionStatus,
    TrailResult,
    goal_reached,
)
from recado.domain.journeys.graph import FieldOperator, StepSignal
from recado.domain.journeys.outcomes import Advance, Await, CallWebhook, EndExecution, RetryStep, SendMessage
from recado.domain.journeys.sends import SendFacts
from recado.domain.journeys.signal_conditions import EarlierSend, SendState
from recado.domain.journeys.steps import (
    Branch,
    EndStep,
    FieldCondition,
    SendStep,
    SignalCondition,
    SmsSend,
    Split,
    Step,
    WaitForStep,
    WaitUntilStep,
    WebhookStep,
)
from recado.domain.journeys.webhook_calls import LastCall

MINUTE = timedelta(minutes=1)


def facts(**given: Any) -> Facts:
    usual = {
        "execution_id": "exe_1", "arrived_at": BORN, "zone": SAO_PAULO, "contact": person(), "registered": False,
        "send": SendFacts(), "webhook_callable": True,
    }  # fmt: skip
    return Facts(**{**usual, **given})


STEPS: list[Step] = [
    SendStep("s", SmsSend("Oi"), "next"),
    WaitForStep("w", 10, "next"),
    WaitUntilStep("u", time(23, 40), "next"),
    SignalCondition("c", "s", StepSignal.LIDO, "yes", "no", window_minutes=10),
    FieldCondition("f", "source", FieldOperator.IGUAL, "yes", "no", "manual"),
    Split("d", (Branch("A", 1, "a"), Branch("B", 1, "b"))),
    WebhookStep("h", "wbh_1", "next", "failed"),
    EndStep("e"),
]


def test_each_kind_of_step_has_its_decision() -> None:
    earlier = EarlierSend(SendState.ACCEPTED, BORN)
    assert [decide(step, facts(earlier=earlier), BORN) for step in STEPS] == [
        SendMessage(SmsSend("Oi"), {}, "next"),
        Await(Awaited.TIME, BORN + 10 * MINUTE),
        Await(Awaited.TIME, BORN + 10 * MINUTE),
        Await(Awaited.SIGNAL, BORN + 10 * MINUTE),
        Advance("yes", "sim"),
        Advance("b", "B"),
        CallWebhook(1),
        EndExecution(EndReason.FINISHED),
    ]
    later = facts(earlier=earlier, last_call=LastCall(1, 204, BORN), contact=person(source="api"))
    assert [decide(step, later, BORN + 10 * MINUTE) for step in STEPS[1:7]] == [
        Advance("next", "esperou"),
        Advance("next", "esperou"),
        Advance("no", "nao"),
        Advance("no", "nao"),
        Advance("b", "B"),
        Advance("next", "webhook_ok"),
    ]


def test_a_wait_that_is_overdue_goes_on_when_it_is_looked_at() -> None:
    for step in STEPS[1:3]:
        assert decide(step, facts(), BORN + timedelta(days=40)) == Advance("next", "esperou")


def test_a_test_leaves_waits_out_only_when_it_is_asked_to() -> None:
    second = BORN + timedelta(seconds=1)
    for step in STEPS[1:3]:
        assert decide(step, facts(test=True), BORN) == Await(Awaited.TIME, BORN + 10 * MINUTE)
        assert decide(step, facts(test=True, hurried=True), BORN) == Await(Awaited.TIME, second)
        assert decide(step, facts(test=True, hurried=True), second) == Advance("next", "esperou")
    earlier = EarlierSend(SendState.ACCEPTED, BORN)
    assert decide(STEPS[3], facts(earlier=earlier, hurried=True), BORN) == Await(Awaited.SIGNAL, BORN + MINUTE)


@pytest.mark.parametrize("step", STEPS)
def test_whoever_refused_or_is_gone_goes_no_further(step: Step) -> None:
    opted_out, deleted = EndExecution(EndReason.OPTED_OUT), EndExecution(EndReason.CONTACT_DELETED)
    for test in (False, True):
        assert decide(step, facts(registered=True, test=test), BORN) == opted_out
        assert decide(step, facts(contact=person(opt_in_status=ConsentStatus.DENIED), test=test), BORN) == opted_out
        assert decide(step, facts(contact=None, registered=True, test=test), BORN) == deleted


def test_a_webhook_that_cannot_be_called_fails() -> None:
    assert decide(STEPS[6], facts(webhook_callable=False), BORN) == Advance("failed", "webhook_falhou")


def test_a_step_that_keeps_failing_is_tried_four_times_more() -> None:
    found = [after_internal_failure(failures, BORN) for failures in range(1, 6)]
    assert found == [
        RetryStep(BORN + timedelta(seconds=5), 1),
        RetryStep(BORN + timedelta(seconds=30), 2),
        RetryStep(BORN + timedelta(minutes=2), 3),
        RetryStep(BORN + timedelta(minutes=10), 4),
        EndExecution(EndReason.INTERNAL_FAILURE),
    ]


def test_an_end_says_its_state_and_how_the_trail_tells_it() -> None:
    ends = {reason: (EndExecution(reason).status, EndExecution(reason).result) for reason in EndReason}
    concluded, canceled, failed = ExecutionStatus.CONCLUIDA, ExecutionStatus.CANCELADA, ExecutionStatus.ERRO
    assert ends == {
        EndReason.FINISHED: (concluded, TrailResult.FINISHED),
        EndReason.GOAL_REACHED: (concluded, None),
        EndReason.OPTED_OUT: (canceled, None),
        EndReason.CONTACT_DELETED: (canceled, None),
        EndReason.JOURNEY_ARCHIVED: (canceled, None),
        EndReason.CANCELED_BY_CALLER: (canceled, None),
        EndReason.SEND_UNDETERMINED: (failed, TrailResult.ERROR),
        EndReason.INTERNAL_FAILURE: (failed, TrailResult.ERROR),
    }


def test_what_ended_moves_no_more() -> None:
    for state in ExecutionStatus:
        for reason in EndReason:
            if state is not ExecutionStatus.ATIVA:
                with pytest.raises(IllegalMove):
                    EXECUTION_MACHINE.move(state, reason)


def test_queued_messages_are_withdrawn_by_what_ends_an_execution_from_outside() -> None:
    assert set(EndReason) - WITHDRAWS == {
        EndReason.FINISHED,
        EndReason.SEND_UNDETERMINED,
        EndReason.INTERNAL_FAILURE,
    }


def test_the_goal_is_an_event_of_its_name_since_the_entry() -> None:
    start = datetime(2026, 3, 13, tzinfo=UTC)
    assert goal_reached("order", start, "order", start)
    assert not goal_reached("order", start, "order", start - timedelta(microseconds=1))
    assert not goal_reached("order", start, "visit", start)
    assert not goal_reached(None, start, "order", start)


@pytest.mark.parametrize(("step", "fact"), [(STEPS[0], "send"), (STEPS[6], "webhook_callable")])
def test_a_fact_that_nobody_read_is_no_permission(step: Step, fact: str) -> None:
    with pytest.raises(LookupError):
        decide(step, facts(**{fact: None}), BORN)
