"""The conditions of a segment as a tree of values: its fields, operators and bounds (C13.2, C13.3).

`segment_reading.py` reads trees from JSON; what they mean for contacts is in `segment_query.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from recado.domain.core.timestamps import format_timestamp

MAX_DEPTH: Final = 5
MAX_LEAVES: Final = 50
MAX_CHILDREN: Final = 20
MAX_VALUES: Final = 100
MAX_DAYS: Final = 3_650
MAX_SEGMENTS: Final = 500
ISO_DATE: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}"
"""What is compared as a date: text that begins with one."""


class Field(StrEnum):
    """What of a contact a condition looks at."""

    TAG = "tag"
    ATTRIBUTE = "attribute"
    OPT_IN = "optIn"
    LAST_INTERACTION = "lastInteraction"
    CHANNEL = "channel"


class Operator(StrEnum):
    """How it looks. The negative ones include contacts that have no value."""

    IS = "is"
    IS_NOT = "is_not"
    IN = "in"
    NOT_IN = "not_in"
    CONTAINS = "contains"
    NOT_CONTAINS = "not_contains"
    GT = "gt"
    GTE = "gte"
    LT = "lt"
    LTE = "lte"
    BEFORE = "before"
    AFTER = "after"
    WITHIN_DAYS = "within_days"
    NOT_WITHIN_DAYS = "not_within_days"
    EXISTS = "exists"
    NOT_EXISTS = "not_exists"


_O = Operator
_EQUALITY = (_O.IS, _O.IS_NOT, _O.IN, _O.NOT_IN)
_PRESENCE = (_O.EXISTS, _O.NOT_EXISTS)
_ORDER = (_O.GT, _O.GTE, _O.LT, _O.LTE)

OPERATORS: Final[Mapping[Field, tuple[Operator, ...]]] = {
    Field.TAG: (*_EQUALITY, *_PRESENCE),
    Field.ATTRIBUTE: (*_EQUALITY, _O.CONTAINS, _O.NOT_CONTAINS, *_ORDER, *_PRESENCE),
    Field.OPT_IN: _EQUALITY,
    Field.LAST_INTERACTION: (_O.BEFORE, _O.AFTER, _O.WITHIN_DAYS, _O.NOT_WITHIN_DAYS, *_PRESENCE),
    Field.CHANNEL: _EQUALITY,
}
"""The operators of each field."""

CHANNELS: Final = ("chatapp", "sms", "rcs", "email", "push", "social")
OPT_IN: Final = ("granted", "denied", "unknown")

NEGATIONS: Final[Mapping[Operator, Operator]] = {
    _O.IS_NOT: _O.IS,
    _O.NOT_IN: _O.IN,
    _O.NOT_CONTAINS: _O.CONTAINS,
    _O.NOT_WITHIN_DAYS: _O.WITHIN_DAYS,
    _O.NOT_EXISTS: _O.EXISTS,
}
"""Each negative operator holds exactly where its counterpart does not."""

Scalar = str | int | float | bool
Value = Scalar | datetime | tuple[Scalar, ...] | None


@dataclass(frozen=True, slots=True)
class Leaf:
    """One condition. `value` fits field and operator: a tuple for `in`, a moment for `before`, None for `exists`."""

    field: Field
    operator: Operator
    value: Value = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class And:
    """Every child holds."""

    children: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """At least one child holds."""

    children: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The child does not hold."""

    child: "Node"


Node = Leaf | And | Or | Not


def document(node: Node) -> dict[str, Any]:
    """The tree as JSON, from which `read_tree` makes the same tree."""
    match node:
        case Leaf():
            return {"kind": "leaf", "filter": condition(node)}
        case And(children):
            return {"kind": "and", "children": [document(child) for child in children]}
        case Or(children):
            return {"kind": "or", "children": [document(child) for child in children]}
        case Not(child):
            return {"kind": "not", "child": document(child)}


def condition(leaf: Leaf) -> dict[str, Any]:
    """One condition as JSON."""
    found: dict[str, Any] = {"field": leaf.field.value, "operator": leaf.operator.value}
    if leaf.key is not None:
        found["key"] = leaf.key
    match leaf.value:
        case None:
            pass
        case datetime() as moment:
            found["value"] = format_timestamp(moment)
        case tuple() as values:
            found["value"] = list(values)
        case value:
            found["value"] = value
    return found
