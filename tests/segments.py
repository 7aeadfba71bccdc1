"""Trees of all shapes for property tests, and what each means for a contact, said plainly (C13.2)."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from recado.domain.audience.segment import CHANNELS, NEGATIONS, OPT_IN, And, Field, Leaf, Node, Not, Operator, Or

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
KEYS = ("city", "plan.name", "n-1", "Since")
# Few of them, so that conditions and contacts meet; hostile ones among them. Their case rules are the same everywhere.
TEXTS = (
    "a", "A", "ab", "São Paulo", "SÃO PAULO", "Ana", "%", "_", "\\", "'", "' or true --", "$1", ":key", "{condition}",
    "1", "true", "null", "2026-01-01", "2026-06-01T00:00:00Z", "2025-12-31", "2026", "x\u001fy", "💬", "[]", "\"",
)  # fmt: skip
NUMBERS = (0, 1, -1, 1.0, 1.5, 0.1, 10**15, 1e-7, 2**53)
LAST = tuple(NOW - timedelta(days=days) for days in (-1, 0, 1, 2, 30, 400))

_scalars = st.sampled_from(TEXTS) | st.sampled_from(NUMBERS) | st.booleans()
_several = st.lists(_scalars, min_size=1, max_size=4).map(tuple)
_texts = st.sampled_from(TEXTS)


@st.composite
def leaves(draw: st.DrawFn) -> Leaf:
    """A well-formed condition."""
    field = draw(st.sampled_from(list(Field)))
    key = draw(st.sampled_from(KEYS)) if field is Field.ATTRIBUTE else None
    operators = {
        Field.TAG: _operators("is is_not in not_in exists not_exists"),
        Field.ATTRIBUTE: _operators("is is_not in not_in contains not_contains gt gte lt lte exists not_exists"),
        Field.OPT_IN: _operators("is is_not in not_in"),
        Field.LAST_INTERACTION: _operators("before after within_days not_within_days exists not_exists"),
        Field.CHANNEL: _operators("is is_not in not_in"),
    }
    operator = draw(st.sampled_from(operators[field]))
    one: Any = {
        Field.TAG: _texts,
        Field.ATTRIBUTE: _scalars,
        Field.OPT_IN: st.sampled_from(OPT_IN),
        Field.LAST_INTERACTION: st.sampled_from(LAST),
        Field.CHANNEL: st.sampled_from(CHANNELS),
    }[field]
    if operator in _operators("exists not_exists"):
        one = st.none()
    elif operator in _operators("in not_in"):
        one = st.lists(one, min_size=1, max_size=4).map(tuple)
    elif operator in _operators("within_days not_within_days"):
        one = st.integers(1, 40)
    elif operator in _operators("contains not_contains"):
        one = _texts
    elif operator in _operators("gt gte lt lte"):
        one = st.sampled_from(NUMBERS) | st.sampled_from([text for text in TEXTS if _date(text)])
    return Leaf(field, operator, draw(one), key)


def trees() -> st.SearchStrategy[Node]:
    """A well-formed tree of at most five levels."""
    found: st.SearchStrategy[Any] = leaves()
    for _ in range(4):
        several = st.lists(found, min_size=1, max_size=3).map(tuple)
        found = leaves() | several.map(And) | several.map(Or) | found.map(Not)
    return found


@st.composite
def contacts(draw: st.DrawFn) -> dict[str, Any]:
    """The columns of a contact that conditions look at."""
    values = st.none() | _scalars | st.just("") | st.lists(_texts, max_size=3)
    return {
        "tags": draw(st.lists(_texts, max_size=3, unique_by=str.casefold)),
        "attributes": draw(st.dictionaries(st.sampled_from(KEYS), values, max_size=4)),
        "opt_in_status": draw(st.sampled_from(OPT_IN)),
        "last_interaction_at": draw(st.none() | st.sampled_from(LAST)),
        "email": draw(st.none() | st.just("ana@example.com")),
        "unreachable": draw(st.lists(st.sampled_from(["chatapp", "sms", "rcs"]), max_size=3, unique=True)),
        "push_devices": draw(st.integers(0, 2)),
    }


def holds(node: Node, contact: Mapping[str, Any]) -> bool:
    """Whether a contact matches, by the rules word for word."""
    match node:
        case And(children):
            return all(holds(child, contact) for child in children)
        case Or(children):
            return any(holds(child, contact) for child in children)
        case Not(child):
            return not holds(child, contact)
    if node.operator in NEGATIONS:
        return not holds(Leaf(node.field, NEGATIONS[node.operator], node.value, node.key), contact)
    wanted = node.value if isinstance(node.value, tuple) else (node.value,)
    match node.field:
        case Field.TAG:
            tags = {tag.casefold() for tag in contact["tags"]}
            return bool(tags) if node.operator == Operator.EXISTS else any(str(v).casefold() in tags for v in wanted)
        case Field.OPT_IN:
            return contact["opt_in_status"] in wanted
        case Field.CHANNEL:
            return any(_reached(str(channel), contact) for channel in wanted)
        case Field.LAST_INTERACTION:
            return _interacted(node, contact["last_interaction_at"])
    value = contact["attributes"].get(node.key)
    if node.operator == Operator.EXISTS:
        return value not in (None, "", [])
    if isinstance(value, list):
        return any(_compares(node.operator, each, v) for each in value for v in wanted)
    return any(_compares(node.operator, value, v) for v in wanted)


def _reached(channel: str, contact: Mapping[str, Any]) -> bool:
    if channel == "email":
        return contact["email"] is not None
    if channel == "push":
        return bool(contact["push_devices"])
    return channel in ("chatapp", "sms", "rcs") and channel not in contact["unreachable"]


def _interacted(leaf: Leaf, last: datetime | None) -> bool:
    if last is None:
        return False
    match leaf.value:
        case datetime() as moment:
            return last < moment if leaf.operator == Operator.BEFORE else last > moment
        case int() as days:
            return last >= NOW - timedelta(days=days)
    return True


def _compares(operator: Operator, value: Any, wanted: Any) -> bool:
    if isinstance(value, str) and isinstance(wanted, str):
        match operator:
            case Operator.IS | Operator.IN:
                return value.lower() == wanted.lower()
            case Operator.CONTAINS:
                return wanted.lower() in value.lower()
        return bool(_date(value)) and _ordered(operator, value, wanted)
    if isinstance(value, bool) or isinstance(wanted, bool):
        return type(value) is type(wanted) and operator in (Operator.IS, Operator.IN) and value == wanted
    if isinstance(value, (int, float)) and isinstance(wanted, (int, float)):
        return value == wanted if operator in (Operator.IS, Operator.IN) else _ordered(operator, value, wanted)
    return False


def _ordered(operator: Operator, value: Any, wanted: Any) -> bool:
    match operator:
        case Operator.GT:
            return bool(value > wanted)
        case Operator.GTE:
            return bool(value >= wanted)
        case Operator.LT:
            return bool(value < wanted)
    return bool(value <= wanted)


def _date(text: str) -> bool:
    return re.match("[0-9]{4}-[0-9]{2}-[0-9]{2}", text) is not None


def _operators(names: str) -> tuple[Operator, ...]:
    return tuple(Operator(name) for name in names.split())
