"""From the tree of a segment to one SQL query (C13.2, C13.3): fragments put together, values as parameters only.

The text depends on fields, operators and the shape of the tree, never on what a caller wrote as a value or a key.
"""

from datetime import datetime, timedelta
from typing import Any, Final

import orjson

from recado.domain.audience.segment import NEGATIONS, And, Field, Leaf, Node, Not, Operator, Or
from recado.domain.contacts.contact import tag_key
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.sql import fragments

SQL = fragments("segments")

_COMPARISONS: Final = {Operator.GT: ">", Operator.GTE: ">=", Operator.LT: "<", Operator.LTE: "<="}
_BY_PHONE: Final = ("chatapp", "sms", "rcs")
_BY_ITSELF: Final = {
    "email": SQL.reachable_by_email,
    "push": SQL.reachable_by_push,
    "social": SQL.reachable_by_social,
}
_BETWEEN_ELEMENTS: Final = frozenset("[], ")  # what a list's JSON holds beside its elements and their quotes


class Condition:
    """What a tree demands of a contact `c`: a text with `$1`, `$2`, … and the arguments in that order.

    `now`: days back are counted from it.
    """

    def __init__(self, node: Node, now: datetime) -> None:
        self.arguments: list[Any] = []
        self._now = now
        self.text = f"({self._node(node)})"

    def _node(self, node: Node) -> str:
        match node:
            case Leaf():
                return self._leaf(node)
            case And(children):
                return "(" + "\nand ".join(map(self._node, sorted(children, key=_cost))) + ")"
            case Or(children):
                return "(" + "\nor ".join(map(self._node, sorted(children, key=_cost))) + ")"
            case Not(child):
                return f"not ({self._node(child)})"

    def _leaf(self, leaf: Leaf) -> str:
        positive = NEGATIONS.get(leaf.operator)
        if positive is not None:
            return f"not ({self._leaf(Leaf(leaf.field, positive, leaf.value, leaf.key))})"
        match leaf.field:
            case Field.TAG:
                return self._tag(leaf)
            case Field.ATTRIBUTE:
                return self._attribute(leaf)
            case Field.OPT_IN:
                return self._fragment(SQL.opt_in, values=_values(leaf))
            case Field.LAST_INTERACTION:
                return self._interaction(leaf)
            case Field.CHANNEL:
                return self._channel(leaf)

    def _tag(self, leaf: Leaf) -> str:
        if leaf.operator == Operator.EXISTS:
            return SQL.tag_exists
        return self._fragment(SQL.tag_any, values=[tag_key(tag) for tag in _values(leaf)])

    def _attribute(self, leaf: Leaf) -> str:
        match leaf.operator:
            case Operator.EXISTS:
                return self._fragment(SQL.attribute_exists, key=leaf.key)
            case Operator.CONTAINS:
                return self._contains(leaf)
            case Operator.IS | Operator.IN:
                return self._equal_to_one(leaf)
        comparison = _COMPARISONS[leaf.operator]
        if isinstance(leaf.value, str):
            text = SQL.attribute_date.replace("{comparison}", comparison)
            return self._fragment(text, key=leaf.key, value=leaf.value)
        key, number = orjson.dumps(leaf.key).decode(), orjson.dumps(leaf.value).decode()
        return self._fragment(SQL.attribute_number, path=f"strict $.{key} ? (@ {comparison} {number})")

    def _contains(self, leaf: Leaf) -> str:
        quoted = orjson.dumps(leaf.value).decode()[1:-1]  # as it stands in JSON
        plain = quoted == leaf.value and not _BETWEEN_ELEMENTS.issuperset(quoted)
        return self._fragment(SQL.attribute_contains, key=leaf.key, value=leaf.value, quoted=quoted, plain=plain)

    def _equal_to_one(self, leaf: Leaf) -> str:
        wanted = _values(leaf)
        texts = [value for value in wanted if isinstance(value, str)]
        scalars = [value for value in wanted if not isinstance(value, str)]
        found = []
        if texts:
            names = {f"value_{place}": text for place, text in enumerate(texts)}
            several = ", ".join(f"lower(:{name}::text)" for name in names)
            found.append(self._fragment(SQL.attribute_texts.replace("{values}", several), key=leaf.key, **names))
        if scalars:
            found.append(self._fragment(SQL.attribute_scalars, key=leaf.key, values=scalars))
        return "(" + " or ".join(found) + ")"

    def _interaction(self, leaf: Leaf) -> str:
        match leaf.operator:
            case Operator.EXISTS:
                return SQL.interaction_exists
            case Operator.BEFORE:
                return self._fragment(SQL.interaction_before, value=leaf.value)
            case Operator.AFTER:
                return self._fragment(SQL.interaction_after, value=leaf.value)
        days = leaf.value
        assert isinstance(days, int)  # noqa: S101 - within_days takes nothing else
        return self._fragment(SQL.interaction_since, value=self._now - timedelta(days=days))

    def _channel(self, leaf: Leaf) -> str:
        wanted = _values(leaf)
        by_phone = [channel for channel in wanted if channel in _BY_PHONE]
        found = [text for channel, text in _BY_ITSELF.items() if channel in wanted]
        if by_phone:
            found.append(self._fragment(SQL.reachable_by_phone, values=by_phone))
        return "(" + " or ".join(found) + ")"

    def _fragment(self, text: str, **values: Any) -> str:
        composed, self.arguments = compose(text, values, self.arguments)
        return composed


def query(text: str, organization_id: str, env: str, node: Node, now: datetime, **more: Any) -> tuple[str, list[Any]]:
    """One of the queries over contacts with the tree as its condition, and its arguments. `more`: its other values."""
    condition = Condition(node, now)
    values = {"organization_id": organization_id, "env": env, **more}
    return compose(text.replace("{condition}", condition.text), values, condition.arguments)


def _cost(node: Node) -> int:
    """What it takes to look whether a contact matches, roughly: attributes are taken out of a document each time."""
    match node:
        case Leaf():
            return {Field.ATTRIBUTE: 4, Field.TAG: 2}.get(node.field, 1)
        case And(children) | Or(children):
            return sum(map(_cost, children))
        case Not(child):
            return _cost(child)


def _values(leaf: Leaf) -> list[Any]:
    return list(leaf.value) if isinstance(leaf.value, tuple) else [leaf.value]
