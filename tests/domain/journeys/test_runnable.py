"""The steps of a graph as they are run: what each kind and mode becomes, and that no sound journey is refused."""

from datetime import time, timedelta
from typing import Any

import pytest
from hypothesis import given
from tests.domain.journeys.definitions import EMAIL_TEMPLATE, NUMBER, TEMPLATE, WEBHOOK, codes, document, with_step
from tests.domain.journeys.test_problem_properties import HOSTILE, graphs

from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.journeys.graph import FieldOperator, FrequencyCap, StepSignal, definition_of, step_of
from recado.domain.journeys.runnable import RunnableJourney, runnable, runnable_step
from recado.domain.journeys.steps import (
    Branch,
    ChatappSend,
    ContactVariable,
    EmailSend,
    EndStep,
    EntryVariable,
    FieldCondition,
    FixedVariable,
    RcsSend,
    SendStep,
    SignalCondition,
    SmsSend,
    Split,
    WaitForStep,
    WaitUntilStep,
    WebhookStep,
)

CARD = {
    "title": "News", "description": "Long", "mediaUrl": "https://example.org/a.png",
    "suggestions": [{"type": "reply", "text": "Yes", "value": "yes"}],
}  # fmt: skip


def run(given: dict[str, Any]) -> RunnableJourney:
    return runnable(definition_of(given))


def test_each_kind_and_mode_becomes_its_step() -> None:
    chat = {"1": ContactVariable("name"), "2": EntryVariable("order", "-")}
    expected = [
        SendStep("chat", ChatappSend(TEMPLATE, NUMBER), "read", chat),
        SignalCondition("read", "chat", StepSignal.LIDO, "split", "wait"),
        WaitForStep("wait", 60, "sms"),
        SendStep("sms", SmsSend("Hello {{1}}", "premium"), "until", {"1": FixedVariable("you")}),
        WaitUntilStep("until", time(9, 30), "mail", frozenset({1, 5})),
        SendStep("mail", EmailSend(EMAIL_TEMPLATE), "rcs", {"name": ContactVariable("name")}),
        SendStep("rcs", RcsSend("Hello", "easy_rcs", "Plain", CARD), "bought"),
        SignalCondition("bought", "sms", StepSignal.CONVERTEU, "end", "field", 1_440, "order"),
        FieldCondition("field", "attributes.city", FieldOperator.IGUAL, "split", "end", "Recife"),
        Split("split", (Branch("A", 1, "call"), Branch("B", 3, "end"))),
        WebhookStep("call", WEBHOOK, "end", "end"),
        EndStep("end"),
    ]
    made = run(document())
    assert list(made.steps.values()) == expected
    assert list(made.steps) == [step.id for step in expected]
    assert made.first == "chat"


def test_what_a_step_leaves_out_has_the_usual_value() -> None:
    sms = {"id": "a", "tipo": "enviar", "canal": "sms", "texto": "Hi", "smsRoute": "otp", "proximo": "b"}
    rcs = {"id": "a", "tipo": "enviar", "canal": "rcs", "rcs": {"conteudo": {"text": "Hi"}}, "proximo": "b"}
    until = {"id": "a", "tipo": "esperar", "hora": "09:00", "proximo": "b"}
    call = {"id": "a", "tipo": "webhook", "webhookId": WEBHOOK, "proximo": "b"}
    there = {"id": "a", "tipo": "condicao", "campo": "name", "operador": "existe", "sim": "b", "nao": "c"}
    assert [runnable_step(step_of(each), None) for each in (sms, rcs, until, call, there)] == [
        SendStep("a", SmsSend("Hi", "otp"), "b"),
        SendStep("a", RcsSend("Hi", "easy_rcs"), "b"),
        WaitUntilStep("a", time(9), "b"),
        WebhookStep("a", WEBHOOK, "b"),
        FieldCondition("a", "name", FieldOperator.EXISTE, "b", "c"),
    ]


def test_a_conversion_without_an_event_of_its_own_is_the_goal() -> None:
    given = with_step("bought", evento=None, janelaMinutos=30)
    assert run({**given, "meta": {"evento": "paid"}}).steps["bought"] == SignalCondition(
        "bought", "sms", StepSignal.CONVERTEU, "end", "field", 30, "paid"
    )
    assert run(document(meta={"evento": "paid"})).steps["bought"] == run(document()).steps["bought"]


def test_the_rules_of_the_whole_journey_come_along() -> None:
    by_api = {"tipo": "api"}
    made = run(document(gatilho=by_api, meta={"evento": "paid"}, reentrada="apos_concluir", intervaloReentradaHoras=48))
    assert made.silence == QuietHours(time(21), time(8))
    assert made.cap == FrequencyCap(3, 7)
    assert made.goal == "paid"
    assert made.interval == timedelta(hours=48)
    by_list = {"tipo": "lista", "listId": "lst_1"}
    assert run(document(gatilho=by_list, reentrada="apos_concluir")).interval is None  # a list brings in once
    plain = run(document(silencio=None, tetoDeFrequencia=None))
    assert (plain.silence, plain.cap, plain.goal, plain.interval) == (None, None, None, None)


@given(graphs())
def test_each_graph_without_problems_becomes_its_steps_and_leads_to_no_other(given: dict[str, Any]) -> None:
    if codes(given):
        return
    made = run(given)
    assert made.first in made.steps
    assert set(made.steps) == {step["id"] for step in given["passos"]}
    assert {way_out.target for step in definition_of(given).passos for way_out in step.exits} - {None} <= set(
        made.steps
    )


@given(HOSTILE)
def test_a_definition_that_cannot_be_run_has_a_problem(given: dict[str, Any]) -> None:
    try:
        run(given)
    except ValueError:
        assert codes(given)


@pytest.mark.parametrize(
    ("step", "without"),
    [
        ("chat", "templateId"), ("chat", "numberId"), ("chat", "canal"), ("chat", "proximo"), ("sms", "texto"),
        ("mail", "templateId"), ("rcs", "rcs"), ("wait", "minutos"), ("until", "hora"), ("bought", "sobre"),
        ("bought", "sinal"), ("field", "campo"), ("field", "operador"), ("field", "nao"), ("call", "webhookId"),
    ],
)  # fmt: skip
def test_a_step_that_lacks_what_it_needs_is_refused(step: str, without: str) -> None:
    with pytest.raises(ValueError, match=r"a step lacks|has no mode"):
        run(with_step(step, **{without: None}))
