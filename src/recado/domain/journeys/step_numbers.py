"""The numbers of a step, by what is counted of it (C9.10)."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntFlag, StrEnum
from typing import Final

from recado.domain.journeys.execution import TrailResult
from recado.domain.journeys.graph import JourneyStep, StepKind


class StepCount(StrEnum):
    """What is counted of a step, beside its results and the outcomes of its messages."""

    ENTERED = "entrou"
    LEFT = "saiu"  # its execution ended there, and the step had no part in it
    CONVERSIONS = "conversoes"  # events that are attributed to its messages


class MessageOutcome(IntFlag):
    """What came of a message, each counted once."""

    SENT = 1
    DELIVERED = 2
    READ = 4
    CLICKED = 8
    REPLIED = 16
    FAILED = 32


OUTCOMES: Final = {
    MessageOutcome.SENT: "enviadas",
    MessageOutcome.DELIVERED: "entregues",
    MessageOutcome.READ: "lidas",
    MessageOutcome.CLICKED: "clicadas",
    MessageOutcome.REPLIED: "respondidas",
    MessageOutcome.FAILED: "falhas",
}
"""What each is counted as, and how it is shown."""

_RESULT: Final = "resultado "
_BRANCH: Final = "ramo "  # the name of a branch is anything, also the word of a result


def counted_result(kind: str, result: str, *, ended: bool) -> str:
    """As what a passed step is counted; `ended`: its execution ended in it."""
    of_branch = kind == StepKind.DIVIDIR and not ended
    return f"{_BRANCH if of_branch else _RESULT}{result}"


@dataclass(frozen=True, slots=True)
class StepNumbers:
    """What is counted of one step."""

    counts: Mapping[str, int]

    @property
    def entered(self) -> int:
        return self.counts.get(StepCount.ENTERED, 0)

    @property
    def skipped(self) -> int:
        return self.result(TrailResult.SKIPPED)

    @property
    def errors(self) -> int:
        return self.result(TrailResult.ERROR)

    @property
    def passed(self) -> int:
        """How many went on, or came to the end, by the step itself, and did not leave it out."""
        return self._through - self.skipped - self.errors

    @property
    def waiting(self) -> int:
        """How many stand there."""
        return self.entered - self._through - self.counts.get(StepCount.LEFT, 0)

    def result(self, result: str) -> int:
        return self.counts.get(_RESULT + result, 0)

    def branch(self, name: str) -> int:
        return self.counts.get(_BRANCH + name, 0)

    def messages(self) -> dict[str, int]:
        """What came of its messages."""
        names = (*OUTCOMES.values(), StepCount.CONVERSIONS.value)
        return {name: self.counts.get(name, 0) for name in names}

    @property
    def _through(self) -> int:
        return sum(count for name, count in self.counts.items() if name.startswith((_RESULT, _BRANCH)))


def branch_names(step: JourneyStep) -> list[str]:
    """The branches of a split, in order."""
    return [branch.nome for branch in step.ramos if branch.nome is not None]
