"""What a journey looks at in a contact: the fields of its conditions and of its messages (C9.17)."""

from collections.abc import Mapping

from recado.domain.journeys.field_values import OF_ENTRY
from recado.domain.journeys.steps import ContactVariable, EmailSend, FieldCondition, SendStep, Step


def fields_of(steps: Mapping[str, Step]) -> tuple[str, ...]:
    """Their names, as callers write them, in order; what a contact entered with is none of them."""
    found = set()
    for step in steps.values():
        match step:
            case FieldCondition() if not step.field.startswith(OF_ENTRY):
                found.add(step.field)
            case SendStep():
                found |= {each.field for each in step.variables.values() if isinstance(each, ContactVariable)}
                if isinstance(step.content, EmailSend):
                    found.add("email")
    return tuple(sorted(found))
