"""What an execution does next, as values: whoever asked `decide` carries one out, in one commit with the move."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from recado.domain.journeys.execution import (
    EXECUTION_MACHINE,
    Awaited,
    EndReason,
    ExecutionStatus,
    SkipReason,
    TrailResult,
)
from recado.domain.journeys.steps import SendContent


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Make this message, and go on to `next`. Trail: `enviado`.

    `content`: its texts have their values already. `values`: what a template takes, by the names of its placeholders.
    """

    content: SendContent
    values: Mapping[str, str]
    next: str


@dataclass(frozen=True, slots=True)
class SkipSend:
    """Send nothing, and go on to `next`. Trail: `pulado`, with the reason as its detail."""

    reason: SkipReason
    next: str


@dataclass(frozen=True, slots=True)
class Advance:
    """Go on to `next`. `result`: for the trail, a `TrailResult` or the name of a branch."""

    next: str
    result: str


@dataclass(frozen=True, slots=True)
class Await:
    """Stay in the step, and decide again at `until`, or when one of the facts changes.

    `until` is None where only a change ends it: a message that is queued still.
    """

    what: Awaited
    until: datetime | None


@dataclass(frozen=True, slots=True)
class CallWebhook:
    """Make the call, and decide again with its answer. `attempt`: 1 for the first."""

    attempt: int


@dataclass(frozen=True, slots=True)
class RetryStep:
    """The step failed for a cause of our own: try it again at `at`. `failures`: in a row, this one included."""

    at: datetime
    failures: int


@dataclass(frozen=True, slots=True)
class EndExecution:
    """The execution is over."""

    reason: EndReason

    @property
    def status(self) -> ExecutionStatus:
        """The state that it ends in."""
        return EXECUTION_MACHINE.move(ExecutionStatus.ATIVA, self.reason)

    @property
    def result(self) -> TrailResult | None:
        """How the step is told in the trail; None: the step had no part in it."""
        if self.reason is EndReason.FINISHED:
            return TrailResult.FINISHED
        return TrailResult.ERROR if self.status is ExecutionStatus.ERRO else None


Decision = SendMessage | SkipSend | Advance | Await | CallWebhook | RetryStep | EndExecution
