"""Which of many failed messages can be sent again, and why the others cannot (C15.4)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson

from recado.domain.core.errors import Problem
from recado.domain.messages.message import MessageStatus
from recado.services.batches.batch_rules import LeftOut
from recado.services.messages.acceptance_rules import REFUSED
from recado.services.messages.chatapp_rules import TemplateShapes, check_state, unavailable
from recado.storage.messages.resends import Old
from recado.storage.senders.numbers import Number
from recado.storage.templates.templates import Template

NOT_FOUND: Final = "NOT_FOUND"
UNCERTAIN: Final = "OUTCOME_UNKNOWN"
NUMBER_UNAVAILABLE: Final = "NUMBER_UNAVAILABLE"

_TEXTS: Final = {
    **REFUSED,
    NOT_FOUND: "There is no such chat-app message.",
    "INVALID_STATE": "Only an outbound message that failed less than 12 months ago can be sent again.",
    "ALREADY_REPLACED": "The message was sent again before.",
    UNCERTAIN: "The message may have left: its outcome is unknown.",
    "RECIPIENT_MISSING": "Its recipient was deleted with its contact.",
    "REFERENCE_NOT_FOUND": "Its number or template does not exist (any more), or the template is of another number.",
    "TEMPLATE_NOT_APPROVED": "Its template is not approved.",
    "TEMPLATE_VARS_MISMATCH": "Its template takes other variables now.",
    "WINDOW_CLOSED": "The recipient has not written to this number in the last 24 hours.",
}


@dataclass(slots=True)
class Surroundings:
    """What the messages need, by the ids that they name: the number that would send, and the template it would send."""

    numbers: Mapping[str, Number]
    templates: Mapping[str, Template]
    target: Number | None  # the new number of all of them
    include_uncertain: bool
    first_id: str  # older ones have lost their content (C32)
    shapes: TemplateShapes = field(default_factory=TemplateShapes)

    def number_of(self, old: Old) -> Number | None:
        if self.target is not None:
            return self.target
        return None if old.sender_id is None else self.numbers.get(old.sender_id)

    def template_of(self, old: Old) -> Template | None:
        return None if old.template_id is None else self.templates.get(old.template_id)


def skip(left_out: LeftOut, path: str, code: str, message_id: str, number: Number | None = None) -> None:
    """Count a message that is not sent again. `number`: that would send it."""
    text = unavailable(number) if code == NUMBER_UNAVAILABLE and number is not None else _TEXTS[code]
    left_out.add(path, code, f"{message_id}: {text}")


def reason_to_skip(old: Old, around: Surroundings) -> str | None:
    """Why `old` is not sent again; None when it can be, but for the window of a free-form message."""
    if old.direction != "outbound" or old.status != MessageStatus.FAILED or old.id < around.first_id:
        return "INVALID_STATE"
    if old.replaced_by is not None:
        return "ALREADY_REPLACED"
    if old.uncertain and not around.include_uncertain:
        return UNCERTAIN
    if old.recipient_hash is None:
        return "RECIPIENT_MISSING"
    number, template = around.number_of(old), around.template_of(old)
    if number is None or (template is None and old.template_id is not None):
        return "REFERENCE_NOT_FOUND"
    try:
        check_state(number, template)
    except Problem as problem:
        return problem.code
    if template is not None and not _fits(old, template, around.shapes):
        return "TEMPLATE_VARS_MISMATCH"
    return None


def common(values: Sequence[Any]) -> tuple[Any, list[Any] | None]:
    """One value for all, or None and each its own."""
    first = values[0] if values else None
    return (first, None) if all(value == first for value in values) else (None, list(values))


def _fits(old: Old, template: Template, shapes: TemplateShapes) -> bool:
    count, header = shapes.of(template)
    given = 0 if old.template_vars is None else len(orjson.loads(old.template_vars))
    payload = {} if old.payload is None else orjson.loads(old.payload)
    return given == count and header == ("text" in (payload.get("header") or ()))
