"""The catalogue of a contact's fields: the standard ones, and the keys of attributes in use (C12.8)."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from recado.domain.audience.segment import OPERATORS, Field

MOST_KEYS: Final = 500


@dataclass(frozen=True, slots=True)
class AttributeKey:
    """An attribute key that contacts have. `type`: text, number, boolean, list, or mixed."""

    key: str
    type: str
    uses: int


_STANDARD: Final[tuple[tuple[str, str, str, Field | None], ...]] = (
    ("name", "Name", "text", None),
    ("phone", "Phone", "text", None),
    ("email", "E-mail", "text", None),
    ("chatappProfileName", "Chat-app profile name", "text", None),
    ("tags", "Tags", "list", Field.TAG),
    ("optIn.status", "Consent", "text", Field.OPT_IN),
    ("source", "Source", "text", None),
    ("externalId", "External id", "text", None),
    ("companyId", "Company", "text", None),
    ("papelNaEmpresa", "Role in the company", "text", None),
    ("createdAt", "Created at", "date", None),
    ("lastInteractionAt", "Last interaction at", "date", Field.LAST_INTERACTION),
)


def catalogue(keys: Iterable[AttributeKey]) -> list[dict[str, Any]]:
    """The catalogue as callers see it; `keys` most used first."""
    standard = [
        _entry(key, label, kind, "standard", () if field is None else OPERATORS[field], key)
        for key, label, kind, field in _STANDARD
    ]
    attributes = [
        _entry(each.key, each.key, each.type, "attribute", OPERATORS[Field.ATTRIBUTE], f"attributes.{each.key}")
        for each in keys
    ]
    return [*standard, *attributes]


def _entry(key: str, label: str, kind: str, origin: str, operators: Iterable[Any], variable: str) -> dict[str, Any]:
    return {
        "key": key,
        "label": label,
        "type": kind,
        "origin": origin,
        "operators": [operator.value for operator in operators],
        "journeyVariable": variable,
    }
