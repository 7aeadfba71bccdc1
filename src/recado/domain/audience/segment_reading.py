"""Reads filters from JSON into the tree of `segment.py`; every fault is told with its pointer (C13.3)."""

import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Final

from recado.domain.audience.segment import (
    CHANNELS,
    ISO_DATE,
    MAX_CHILDREN,
    MAX_DAYS,
    MAX_DEPTH,
    MAX_LEAVES,
    MAX_VALUES,
    OPERATORS,
    OPT_IN,
    And,
    Field,
    Leaf,
    Node,
    Not,
    Operator,
    Or,
    Scalar,
    Value,
)
from recado.domain.core.errors import MAX_FIELD_ERRORS, FieldError, validation_error
from recado.domain.core.timestamps import parse_timestamp, to_the_millisecond

_LONGEST_TAG, _LONGEST_TEXT = 64, 1_000
_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}").fullmatch
_DATE = re.compile(ISO_DATE).match
_O = Operator


def read_tree(document: object, path: str = "/filterTree") -> Node:
    """The tree in a JSON value; Problem 422 `FILTER_INVALID`, each fault with its pointer under `path`."""
    reader = _Reader()
    tree = reader.node(document, path, 1)
    reader.check()
    return tree


def read_conditions(document: object, path: str = "/filters") -> tuple[Leaf, ...]:
    """The conditions in a JSON list of 1 to 50; Problem 422 `FILTER_INVALID`."""
    reader = _Reader()
    leaves = [reader.leaf(each, at) for each, at in reader.members(document, path, MAX_LEAVES)]
    reader.check()
    return tuple(leaves)


def read_filters(document: object, path: str = "/filters") -> And:
    """As `read_conditions`, joined by and: in parts where they are more than a node may have children."""
    leaves = read_conditions(document, path)
    if len(leaves) <= MAX_CHILDREN:
        return And(leaves)
    return And(tuple(And(leaves[at : at + MAX_CHILDREN]) for at in range(0, len(leaves), MAX_CHILDREN)))


def tree_of(filters: object, filter_tree: object) -> Node:
    """What matches, by what was stored: the tree when there is one, else the conditions joined by and."""
    return read_filters(filters) if filter_tree is None else read_tree(filter_tree)


# Stands where a fault was found; such a tree never leaves the reader.
_NOTHING: Final = Leaf(Field.TAG, Operator.EXISTS)


class _Reader:
    """One pass over a document, which remembers what is wrong where."""

    def __init__(self) -> None:
        self._faults: list[FieldError] = []
        self._leaves = 0

    def check(self) -> None:
        if self._faults:
            raise validation_error(self._faults, code="FILTER_INVALID")

    def fault(self, path: str, message: str) -> None:
        self._faults.append(FieldError(path, "FILTER_INVALID", message))
        if len(self._faults) == MAX_FIELD_ERRORS:
            self.check()

    def node(self, given: object, path: str, depth: int) -> Node:
        if depth > MAX_DEPTH:
            self.fault(path, f"A tree has at most {MAX_DEPTH} levels.")
            return _NOTHING
        if not isinstance(given, dict):
            self.fault(path, "A node is an object with a kind.")
            return _NOTHING
        match given.get("kind"):
            case "leaf":
                return self.leaf(given.get("filter"), f"{path}/filter")
            case "not":
                return Not(self.node(given.get("child"), f"{path}/child", depth + 1))
            case "and" | "or" as kind:
                members = self.members(given.get("children"), f"{path}/children", MAX_CHILDREN)
                children = tuple(self.node(child, at, depth + 1) for child, at in members)
                return And(children) if kind == "and" else Or(children)
        self.fault(f"{path}/kind", "The kind of a node is leaf, and, or, not.")
        return _NOTHING

    def members(self, given: object, path: str, most: int) -> list[tuple[object, str]]:
        if not isinstance(given, list) or not 1 <= len(given) <= most:
            self.fault(path, f"A list of 1 to {most} is needed here.")
            return []
        return [(each, f"{path}/{place}") for place, each in enumerate(given)]

    def leaf(self, given: object, path: str) -> Leaf:
        self._leaves += 1
        if self._leaves == MAX_LEAVES + 1:
            self.fault(path, f"A filter has at most {MAX_LEAVES} conditions.")
            self.check()  # there may be thousands more
        if not isinstance(given, dict):
            self.fault(path, "A condition is an object with field, operator and value.")
            return _NOTHING
        field, operator = given.get("field"), given.get("operator")
        if not isinstance(field, str) or field not in {each.value for each in Field}:
            self.fault(f"{path}/field", f"The field is one of {_listed(Field)}.")
            return _NOTHING
        allowed = OPERATORS[Field(field)]
        if not isinstance(operator, str) or operator not in {each.value for each in allowed}:
            self.fault(f"{path}/operator", f"The operator of {field} is one of {_listed(allowed)}.")
            return _NOTHING
        key = given.get("key")
        if field == Field.ATTRIBUTE:
            if not isinstance(key, str) or not _KEY(key.strip()):
                self.fault(f"{path}/key", "An attribute is named by its key: a letter, then up to 63 of A-Za-z0-9_.-")
                return _NOTHING
            key = key.strip()
        else:
            key = None
        try:
            return Leaf(Field(field), Operator(operator), _value(Field(field), Operator(operator), given), key)
        except ValueError as error:
            self.fault(f"{path}/value", str(error))
            return _NOTHING


def _value(field: Field, operator: Operator, given: Mapping[str, object]) -> Value:
    """The operand, as the operator takes it; ValueError with a sentence."""
    value = given.get("value")
    match operator:
        case _O.EXISTS | _O.NOT_EXISTS:
            if value is not None:
                raise ValueError("This operator takes no value.")
            return None
        case _O.IN | _O.NOT_IN:
            if not isinstance(value, list) or not 1 <= len(value) <= MAX_VALUES:
                raise ValueError(f"The value must be a list of 1 to {MAX_VALUES} values.")
            return tuple(_scalar(field, each) for each in value)
        case _O.WITHIN_DAYS | _O.NOT_WITHIN_DAYS:
            if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MAX_DAYS:
                raise ValueError(f"The value must be a whole number of days from 1 to {MAX_DAYS}.")
            return value
        case _O.BEFORE | _O.AFTER:
            if not isinstance(value, str):
                raise ValueError("The value must be a date-time.")
            try:
                moment = parse_timestamp(value.strip())
            except ValueError:
                raise ValueError(
                    "The value must be an RFC 3339 date-time with an offset, such as 2026-01-31T12:00:00Z."
                ) from None
            return to_the_millisecond(moment)  # as it is written (C2.3.5)
        case _O.CONTAINS | _O.NOT_CONTAINS:
            return _text(value, _LONGEST_TEXT)
        case _O.GT | _O.GTE | _O.LT | _O.LTE:
            found = _scalar(field, value)
            if isinstance(found, bool) or (isinstance(found, str) and not _DATE(found)):
                raise ValueError("The value must be a number or an ISO date such as 2026-01-31.")
            return found
    return _scalar(field, value)


def _scalar(field: Field, value: object) -> Scalar:
    match field:
        case Field.TAG:
            return _text(value, _LONGEST_TAG)
        case Field.OPT_IN:
            return _one_of(value, OPT_IN)
        case Field.CHANNEL:
            return _one_of(value, CHANNELS)
    if isinstance(value, bool):
        return value
    if isinstance(value, (int, float)):
        if not isfinite(value):
            raise ValueError("The value must be a finite number.")
        return value
    return _text(value, _LONGEST_TEXT)


def _text(value: object, longest: int) -> str:
    if not isinstance(value, str) or not 1 <= len(value.strip()) <= longest:
        raise ValueError(f"The value must be a text of 1 to {longest} characters.")
    return value.strip()


def _one_of(value: object, allowed: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"The value must be one of {_listed(allowed)}.")
    return value


def _listed(names: Iterable[str]) -> str:
    return ", ".join(str(name) for name in names)
