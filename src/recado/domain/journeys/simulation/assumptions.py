"""What a dry run assumes of people and providers: rates of signals, and branches that are chosen (C9.17.2)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Final

from recado.domain.journeys.execution import TrailResult
from recado.domain.journeys.graph import StepSignal
from recado.domain.journeys.outcomes import Advance
from recado.domain.journeys.runnable import RunnableJourney
from recado.domain.journeys.steps import FieldCondition, SendStep, SignalCondition, Split, Step, WebhookStep


class Rate(StrEnum):
    """What is assumed with a share from 0 to 1. The names are those that callers write."""

    ENTREGUE = "entregue"  # of what left: delivered
    FALHA = "falha"  # of what left: failed for certain
    INDETERMINADO = "indeterminado"  # of what left: nobody ever hears what became of it
    LIDO = "lido"  # this and the following of what was delivered
    RESPONDEU = "respondeu"
    CLICOU = "clicou"
    CONVERTEU = "converteu"
    OPT_OUT = "optOut"
    WEBHOOK = "webhook"  # of the calls of a webhook step: taken by the endpoint


DEFAULTS: Final[Mapping[Rate, float]] = {
    **dict.fromkeys(Rate, 0.0),
    Rate.ENTREGUE: 1.0,
    Rate.WEBHOOK: 1.0,
}
"""Nothing is made up: what left arrives, endpoints answer, and nobody does anything."""

OF_WHAT_LEFT: Final = (Rate.ENTREGUE, Rate.FALHA, Rate.INDETERMINADO)
"""Three ways in which a message may go; the rest is accepted, and no report comes."""

OF_SIGNAL: Final[Mapping[StepSignal, Rate]] = {
    StepSignal.LIDO: Rate.LIDO,
    StepSignal.RESPONDEU: Rate.RESPONDEU,
    StepSignal.CLICOU: Rate.CLICOU,
    StepSignal.CONVERTEU: Rate.CONVERTEU,
}
"""The rates of what people do with a message that was delivered."""

DELAYS: Final[Mapping[StepSignal, timedelta]] = {
    StepSignal.ENTREGUE: timedelta(seconds=1),
    StepSignal.LIDO: timedelta(seconds=2),
    StepSignal.RESPONDEU: timedelta(seconds=3),
    StepSignal.CLICOU: timedelta(seconds=4),
    StepSignal.CONVERTEU: timedelta(seconds=5),
}
"""How long after its departure each is seen: as in the sandbox (C29.4), and within every window."""

FAILS_AFTER: Final = DELAYS[StepSignal.ENTREGUE]
OPTS_OUT_AFTER: Final = DELAYS[StepSignal.RESPONDEU]


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Rates of all steps, and over them those of single ones, by step. `branches`: by step, the way that all take."""

    rates: Mapping[Rate, float] = field(default_factory=dict)
    of_steps: Mapping[str, Mapping[Rate, float]] = field(default_factory=dict)
    branches: Mapping[str, str] = field(default_factory=dict)

    def rates_of(self, step_id: str) -> dict[Rate, float]:
        """Every rate, as it is for a step."""
        return {**DEFAULTS, **self.rates, **self.of_steps.get(step_id, {})}


def exceeds(rates: Mapping[Rate, float]) -> bool:
    """Whether more messages would arrive, fail and stay unknown than leave."""
    return sum(rates[rate] for rate in OF_WHAT_LEFT) > 1.0 + 1e-9


def has_rates(step: Step) -> bool:
    """Whether rates of its own say anything of the step."""
    return isinstance(step, SendStep | WebhookStep)


def ways(step: Step) -> dict[str, Advance]:
    """By the names that a trail has for them, the ways out of a step among which one can be chosen."""
    match step:
        case SignalCondition() | FieldCondition():
            ways_out = [Advance(step.yes, TrailResult.YES), Advance(step.no, TrailResult.NO)]
        case Split():
            ways_out = [Advance(branch.next, branch.name) for branch in step.branches]
        case WebhookStep():
            failed = step.if_failed or step.next
            ways_out = [Advance(step.next, TrailResult.WEBHOOK_OK), Advance(failed, TrailResult.WEBHOOK_FAILED)]
        case _:
            ways_out = []
    return {str(each.result): each for each in ways_out}


def asked_of(plan: RunnableJourney, send_id: str) -> list[tuple[StepSignal, str | None]]:
    """What the journey asks of a send: the signals of its conditions, a conversion with its event; or else its goal."""
    asked = [
        (step.signal, step.event if step.signal is StepSignal.CONVERTEU else None)
        for step in plan.steps.values()
        if isinstance(step, SignalCondition) and step.about == send_id
    ]
    if plan.goal is not None and all(signal is not StepSignal.CONVERTEU for signal, _ in asked):
        asked.append((StepSignal.CONVERTEU, plan.goal))
    return list(dict.fromkeys(asked))
