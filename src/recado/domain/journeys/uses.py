"""What a definition uses: while a journey that is not archived does, nobody deletes it (C7.1, C11.1, C13.1, C14.1)."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from recado.domain.journeys.graph import StepChannel, StepKind, TriggerKind

_OF_A_TRIGGER: Final[Mapping[str, tuple[str, ...]]] = {
    TriggerKind.LISTA: ("listId",),
    TriggerKind.SEGMENTO: ("segmentId",),
}
_OF_A_SEND: Final[Mapping[str, tuple[str, ...]]] = {
    StepChannel.CHATAPP: ("templateId", "numberId"),
    StepChannel.EMAIL: ("templateId",),
}


def uses_of(trigger: Mapping[str, Any], steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """The ids of the list, the segment, the templates and the numbers that a trigger and steps work with, in order.

    Both are documents, as callers wrote them. What another kind of trigger or step would use is ignored (C9.4).
    """
    named = [trigger.get(member) for member in _OF_A_TRIGGER.get(trigger.get("tipo", ""), ())]
    for step in steps:
        if step["tipo"] == StepKind.ENVIAR:
            named += [step.get(member) for member in _OF_A_SEND.get(step.get("canal", ""), ())]
    return sorted({each for each in named if each is not None})
