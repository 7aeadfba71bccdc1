"""A journey as it is run: its steps by id, made of the graph that a caller wrote (C9.4, C9.8).

Only a definition without problems becomes one, and each of those does. What it refers to may be gone meanwhile: that is
found out where a step comes to it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time, timedelta
from typing import Final, TypeVar

from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.journeys.graph import (
    DEFAULT_WINDOW,
    FieldOperator,
    FrequencyCap,
    JourneyDefinition,
    JourneyStep,
    RcsContent,
    Reentry,
    Silence,
    StepMode,
    StepSignal,
    TriggerKind,
    VariableOrigin,
    VariableSource,
)
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
    SendContent,
    SendStep,
    SignalCondition,
    SmsSend,
    Split,
    Step,
    Variable,
    WaitForStep,
    WaitUntilStep,
    WebhookStep,
)

T = TypeVar("T")

DEFAULT_SMS_ROUTE: Final = "premium"
DEFAULT_RCS_ROUTE: Final = "easy_rcs"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnableJourney:
    """What an execution goes by. `interval`: the least time between two entries of a contact; None: it enters once.

    `silence`: its window, in the journey's zone. `goal`: the customer event that ends executions.
    """

    first: str
    steps: Mapping[str, Step]
    interval: timedelta | None
    silence: QuietHours | None
    cap: FrequencyCap | None
    goal: str | None


def runnable(definition: JourneyDefinition) -> RunnableJourney:
    """What a definition without problems does; ValueError for one that lacks what a step needs.

    Whoever is in a list enters once, whatever the definition says of that (C9.7.3).
    """
    again = definition.reentrada is Reentry.APOS_CONCLUIR and definition.gatilho.tipo is not TriggerKind.LISTA
    return RunnableJourney(
        first=definition.inicio,
        steps={step.id: runnable_step(step, definition.meta_evento) for step in definition.passos},
        interval=timedelta(hours=definition.intervalo_reentrada_horas) if again else None,
        silence=None if definition.silencio is None else _window(definition.silencio),
        cap=definition.teto_de_frequencia,
        goal=definition.meta_evento,
    )


def runnable_step(step: JourneyStep, goal: str | None) -> Step:
    """What one step does. `goal`: the event that converts where a condition on conversion names none."""
    if len(step.modes) != 1:
        raise ValueError(f"the step {step.id} has no mode, or more than one")
    match step.modes[0]:
        case StepMode.WAIT_FOR:
            return WaitForStep(step.id, _there(step.minutos), _there(step.proximo))
        case StepMode.WAIT_UNTIL:
            hour = time.fromisoformat(_there(step.hora))
            return WaitUntilStep(step.id, hour, _there(step.proximo), frozenset(step.dias))
        case StepMode.ON_SIGNAL:
            return SignalCondition(
                step.id,
                _there(step.sobre),
                StepSignal(_there(step.sinal)),
                _there(step.sim),
                _there(step.nao),
                DEFAULT_WINDOW if step.janela_minutos is None else step.janela_minutos,
                step.evento or goal,
            )
        case StepMode.ON_FIELD:
            operator = FieldOperator(_there(step.operador))
            return FieldCondition(step.id, _there(step.campo), operator, _there(step.sim), _there(step.nao), step.valor)
        case StepMode.SPLIT:
            branches = (Branch(_there(each.nome), _there(each.peso), _there(each.proximo)) for each in step.ramos)
            return Split(step.id, tuple(branches))
        case StepMode.CALL:
            return WebhookStep(step.id, _there(step.webhook_id), _there(step.proximo), step.se_falhar)
        case StepMode.END:
            return EndStep(step.id)
        case mode:
            variables = {name: _variable(source) for name, source in step.variaveis.items()}
            return SendStep(step.id, _content(step, mode), _there(step.proximo), variables)


def _content(step: JourneyStep, mode: StepMode) -> SendContent:
    match mode:
        case StepMode.SEND_CHATAPP:
            return ChatappSend(_there(step.template_id), _there(step.number_id))
        case StepMode.SEND_SMS:
            return SmsSend(_there(step.texto), step.sms_route or DEFAULT_SMS_ROUTE)
        case StepMode.SEND_EMAIL:
            return EmailSend(_there(step.template_id))
        case StepMode.SEND_RCS:
            return _rcs(_there(step.rcs))
    raise AssertionError(f"{mode} sends nothing")


def _rcs(content: RcsContent) -> RcsSend:
    return RcsSend(_there(content.text), content.rota or DEFAULT_RCS_ROUTE, content.fallback_text, content.card)


def _variable(source: VariableSource) -> Variable:
    match source.de:
        case VariableOrigin.CONTATO:
            return ContactVariable(_there(source.campo), source.padrao)
        case VariableOrigin.ENTRADA:
            return EntryVariable(_there(source.campo), source.padrao)
        case VariableOrigin.FIXO:
            return FixedVariable(_there(source.valor), source.padrao)
    raise ValueError("a variable has no known source")


def _window(silence: Silence) -> QuietHours:
    return QuietHours(time.fromisoformat(_there(silence.inicio)), time.fromisoformat(_there(silence.fim)))


def _there(value: T | None) -> T:
    """What a definition without problems has."""
    if value is None:
        raise ValueError("a step lacks a field that its kind needs")
    return value
