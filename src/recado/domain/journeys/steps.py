"""The steps of a journey as values: one class for each kind and mode, with its exits (C9.4).

A step says which others follow it by their ids. What is not allowed, a missing exit or a cycle, is found before a
journey runs: these are steps without problems.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import time
from typing import Any, Final

from recado.domain.audience.segment import Scalar
from recado.domain.journeys.graph import FieldOperator, StepKind, StepSignal

# What a send says ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContactVariable:
    """The value is a field of the contact. `default` (`padrao`) stands for one that is empty."""

    field: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class EntryVariable:
    """The value is a member of the entry's data."""

    key: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class FixedVariable:
    """The value is this text for everyone."""

    value: str
    default: str | None = None


Variable = ContactVariable | EntryVariable | FixedVariable


@dataclass(frozen=True, slots=True)
class ChatappSend:
    """An approved template, from this number."""

    template_id: str
    number_id: str


@dataclass(frozen=True, slots=True)
class SmsSend:
    """A text with placeholders, `{{n}}`."""

    text: str
    route: str = "premium"


@dataclass(frozen=True, slots=True)
class EmailSend:
    """A template, from the default sender."""

    template_id: str


@dataclass(frozen=True, slots=True)
class RcsSend:
    """A text, and perhaps a card; `fallback`: the text of the SMS for phones without RCS. All have placeholders."""

    text: str
    route: str = "easy_rcs"
    fallback: str | None = None
    card: Mapping[str, Any] | None = None


SendContent = ChatappSend | SmsSend | EmailSend | RcsSend


# The steps ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SendStep:
    """`enviar`: one message. `variables`: by the name of the placeholder, without braces."""

    id: str
    content: SendContent
    next: str
    variables: Mapping[str, Variable] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WaitForStep:
    """`esperar` for a time, in minutes."""

    id: str
    minutes: int
    next: str


@dataclass(frozen=True, slots=True)
class WaitUntilStep:
    """`esperar` until a weekday and hour, in the journey's zone. `weekdays`: 1 (Monday) to 7; none: every day."""

    id: str
    hour: time
    next: str
    weekdays: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class SignalCondition:
    """`condicao` on a signal. `about`: the id of the earlier send (`sobre`); `window_minutes`: from its dispatch.

    `event`: the customer event that converts, by default the journey's goal.
    """

    id: str
    about: str
    signal: StepSignal
    yes: str
    no: str
    window_minutes: int = 1_440
    event: str | None = None


@dataclass(frozen=True, slots=True)
class FieldCondition:
    """`condicao` on a field of the contact, or of the entry's data. `value` is None where nothing is compared."""

    id: str
    field: str
    operator: FieldOperator
    yes: str
    no: str
    value: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Branch:
    """One way out of a split. `weight`: relative to the others."""

    name: str
    weight: int
    next: str


@dataclass(frozen=True, slots=True)
class Split:
    """`dividir`: each execution takes one of the branches, by their weights."""

    id: str
    branches: tuple[Branch, ...]


@dataclass(frozen=True, slots=True)
class WebhookStep:
    """`webhook`: a signed call. `if_failed` (`seFalhar`): where to go when it failed; None: to `next`, too."""

    id: str
    webhook_id: str
    next: str
    if_failed: str | None = None


@dataclass(frozen=True, slots=True)
class EndStep:
    """`fim`: the path ends."""

    id: str


Step = SendStep | WaitForStep | WaitUntilStep | SignalCondition | FieldCondition | Split | WebhookStep | EndStep

KIND_OF: Final[Mapping[type[Step], StepKind]] = {
    SendStep: StepKind.ENVIAR,
    WaitForStep: StepKind.ESPERAR,
    WaitUntilStep: StepKind.ESPERAR,
    SignalCondition: StepKind.CONDICAO,
    FieldCondition: StepKind.CONDICAO,
    Split: StepKind.DIVIDIR,
    WebhookStep: StepKind.WEBHOOK,
    EndStep: StepKind.FIM,
}
"""What callers write as the `tipo` of each."""
