"""The catalogue of a contact's fields: the standard ones, and the keys of attributes in use (C12.8)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from recado.domain.audience.segment import OPERATORS, Field
from recado.domain.contacts.contact import FIELDS, ContactFieldSpec, Kind

MOST_KEYS: Final = 500


@dataclass(frozen=True, slots=True)
class AttributeKey:
    """An attribute key that contacts have. `type`: text, number, boolean, list, or mixed."""

    key: str
    type: str
    uses: int


_TYPES: Final = {Kind.TAGS: "list", Kind.MOMENT: "date"}
_CONDITIONS: Final = {"tags": Field.TAG, "opt_in": Field.OPT_IN, "last_interaction_at": Field.LAST_INTERACTION}


def catalogue(keys: Iterable[AttributeKey]) -> list[dict[str, Any]]:
    """The catalogue as callers see it; `keys` most used first."""
    attributes = [
        _entry(each.key, each.key, each.type, "attribute", OPERATORS[Field.ATTRIBUTE], f"attributes.{each.key}")
        for each in keys
    ]
    return [*(_standard(each, each.label) for each in FIELDS if each.label is not None), *attributes]


def _standard(field: ContactFieldSpec, label: str) -> dict[str, Any]:
    key = "optIn.status" if field.kind is Kind.CONSENT else field.key
    condition = _CONDITIONS.get(field.name)
    operators = () if condition is None else OPERATORS[condition]
    return _entry(key, label, _TYPES.get(field.kind, "text"), "standard", operators, key)


def _entry(key: str, label: str, kind: str, origin: str, operators: Iterable[Any], variable: str) -> dict[str, Any]:
    return {
        "key": key,
        "label": label,
        "type": kind,
        "origin": origin,
        "operators": [operator.value for operator in operators],
        "journeyVariable": variable,
    }
