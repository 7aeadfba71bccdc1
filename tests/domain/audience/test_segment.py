"""Filters read from JSON: what is well formed becomes a tree, and what is not is told by its pointer (C13.2, C13.3)."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.segments import trees

from recado.domain.audience.segment import MAX_LEAVES, OPERATORS, And, Field, Leaf, Node, Not, Operator, Or, document
from recado.domain.audience.segment_reading import read_filters, read_tree
from recado.domain.core.errors import Problem

TAG = {"field": "tag", "operator": "is", "value": "VIP"}
LEAF = {"kind": "leaf", "filter": TAG}


def refused(read: Any, given: object) -> list[str]:
    """The pointers at which a document is refused."""
    with pytest.raises(Problem) as caught:
        read(given)
    assert (caught.value.code, caught.value.status) == ("FILTER_INVALID", 422)
    assert {error.code for error in caught.value.errors} == {"FILTER_INVALID"}
    return [error.path for error in caught.value.errors]


@given(trees())
def test_a_tree_is_read_from_what_it_is_written_as(tree: Node) -> None:
    assert read_tree(document(tree)) == tree


def test_nodes_of_every_kind_are_read() -> None:
    given = {"kind": "and", "children": [{"kind": "or", "children": [LEAF]}, {"kind": "not", "child": LEAF}]}
    leaf = Leaf(Field.TAG, Operator.IS, "VIP")
    assert read_tree(given) == And((Or((leaf,)), Not(leaf)))
    assert read_filters([TAG, TAG]) == And((leaf, leaf))


@pytest.mark.parametrize("field", OPERATORS)
@pytest.mark.parametrize("operator", Operator)
def test_a_field_takes_its_own_operators_only(field: Field, operator: Operator) -> None:
    values: list[Any] = [None, "email", "granted", ["email"], ["granted"], 5, "2026-01-01T00:00:00Z"]

    def taken(value: Any) -> bool:
        try:
            read_filters([{"field": field.value, "operator": operator.value, "value": value, "key": "city"}])
        except Problem:
            return False
        return True

    assert any(map(taken, values)) == (operator in OPERATORS[field])


@pytest.mark.parametrize(
    ("condition", "member"),
    [
        ({}, "field"),
        ({"field": "name", "operator": "is", "value": "x"}, "field"),
        ({"field": ["tag"], "operator": "is", "value": "x"}, "field"),
        ({"field": "tag", "value": "x"}, "operator"),
        ({"field": "tag", "operator": "contains", "value": "x"}, "operator"),
        ({"field": "tag", "operator": {}, "value": "x"}, "operator"),
        ({"field": "tag", "operator": "is"}, "value"),
        ({"field": "tag", "operator": "is", "value": " "}, "value"),
        ({"field": "tag", "operator": "is", "value": "x" * 65}, "value"),
        ({"field": "tag", "operator": "is", "value": ["x"]}, "value"),
        ({"field": "tag", "operator": "in", "value": []}, "value"),
        ({"field": "tag", "operator": "in", "value": ["x"] * 101}, "value"),
        ({"field": "tag", "operator": "in", "value": "x"}, "value"),
        ({"field": "tag", "operator": "in", "value": [1]}, "value"),
        ({"field": "tag", "operator": "exists", "value": "x"}, "value"),
        ({"field": "attribute", "operator": "exists"}, "key"),
        ({"field": "attribute", "operator": "exists", "key": "1a"}, "key"),
        ({"field": "attribute", "operator": "exists", "key": "a' or 1=1 --"}, "key"),
        ({"field": "attribute", "operator": "exists", "key": "a" * 65}, "key"),
        ({"field": "attribute", "operator": "exists", "key": 1}, "key"),
        ({"field": "attribute", "operator": "is", "key": "a", "value": None}, "value"),
        ({"field": "attribute", "operator": "is", "key": "a", "value": {}}, "value"),
        ({"field": "attribute", "operator": "is", "key": "a", "value": "x" * 1001}, "value"),
        ({"field": "attribute", "operator": "contains", "key": "a", "value": 1}, "value"),
        ({"field": "attribute", "operator": "gt", "key": "a", "value": True}, "value"),
        ({"field": "attribute", "operator": "gt", "key": "a", "value": "tomorrow"}, "value"),
        ({"field": "attribute", "operator": "gt", "key": "a", "value": float("inf")}, "value"),
        ({"field": "attribute", "operator": "in", "key": "a", "value": [[1]]}, "value"),
        ({"field": "optIn", "operator": "is", "value": "maybe"}, "value"),
        ({"field": "optIn", "operator": "in", "value": ["granted", None]}, "value"),
        ({"field": "lastInteraction", "operator": "before", "value": "2026-01-01"}, "value"),
        ({"field": "lastInteraction", "operator": "before", "value": "2026-01-01T00:00:00"}, "value"),
        ({"field": "lastInteraction", "operator": "within_days", "value": 0}, "value"),
        ({"field": "lastInteraction", "operator": "within_days", "value": 3_651}, "value"),
        ({"field": "lastInteraction", "operator": "within_days", "value": 1.0}, "value"),
        ({"field": "lastInteraction", "operator": "within_days", "value": True}, "value"),
        ({"field": "channel", "operator": "is", "value": "fax"}, "value"),
    ],
)
def test_a_fault_of_a_condition_is_pointed_at(condition: dict[str, Any], member: str) -> None:
    assert refused(read_filters, [TAG, condition]) == [f"/filters/1/{member}"]
    tree = {"kind": "not", "child": {"kind": "and", "children": [LEAF, {"kind": "leaf", "filter": condition}]}}
    assert refused(read_tree, tree) == [f"/filterTree/child/children/1/filter/{member}"]


def test_every_fault_is_told() -> None:
    given = {"kind": "and", "children": [{"kind": "xor"}, {"kind": "leaf"}, LEAF, {"kind": "or", "children": []}, 7]}
    assert refused(read_tree, given) == [
        f"/filterTree/children/{place}" for place in ("0/kind", "1/filter", "3/children", "4")
    ]


@pytest.mark.parametrize("given", [None, [], "leaf", 1, {}, {"kind": None}, {"kind": ["leaf"]}, {"kind": "LEAF"}])
def test_what_is_no_node_is_refused(given: object) -> None:
    assert refused(read_tree, given)[0].startswith("/filterTree")


@pytest.mark.parametrize("given", [None, [], {}, "x", [TAG] * 51])
def test_filters_are_one_to_fifty(given: object) -> None:
    assert refused(read_filters, given) == ["/filters"]


def test_many_filters_make_a_tree_that_can_be_given_back() -> None:
    tree = read_filters([TAG] * 50)
    assert read_tree(document(tree)) == tree
    assert [len(part.children) for part in tree.children if isinstance(part, And)] == [20, 20, 10]


def nested(depth: int) -> dict[str, Any]:
    return LEAF if depth == 1 else {"kind": "not", "child": nested(depth - 1)}


def test_a_tree_has_at_most_five_levels() -> None:
    read_tree(nested(5))
    assert refused(read_tree, nested(6)) == ["/filterTree" + "/child" * 5]
    assert refused(read_tree, nested(900)) == ["/filterTree" + "/child" * 5]


def test_conditions_beyond_the_most_are_not_looked_at() -> None:
    full = {"kind": "or", "children": [LEAF] * 20}
    tree = {"kind": "and", "children": [full, full, full, {"kind": "leaf", "filter": {"field": "unknown"}}]}
    assert refused(read_tree, tree) == ["/filterTree/children/2/children/10/filter"]


def test_a_tree_has_at_most_fifty_leaves_and_twenty_children() -> None:
    def wide(*sizes: int) -> dict[str, Any]:
        return {"kind": "and", "children": [{"kind": "or", "children": [LEAF] * size} for size in sizes]}

    read_tree(wide(20, 20, 10))
    assert MAX_LEAVES == 50
    assert refused(read_tree, wide(20, 20, 12)) == ["/filterTree/children/2/children/10/filter"]
    assert refused(read_tree, wide(20, 21)) == ["/filterTree/children/1/children"]


def test_a_moment_is_kept_as_exactly_as_it_is_written() -> None:
    condition = {"field": "lastInteraction", "operator": "after", "value": "2026-01-01T02:00:00.123456+02:00"}
    tree = read_filters([condition])
    assert tree == And((Leaf(Field.LAST_INTERACTION, Operator.AFTER, datetime(2026, 1, 1, 0, 0, 0, 123_000, UTC)),))
    assert document(tree)["children"][0]["filter"]["value"] == "2026-01-01T00:00:00.123Z"


MEMBERS = st.sampled_from(["kind", "children", "child", "filter", "field", "operator", "value", "key"])
WORDS = st.sampled_from(["leaf", "and", "or", "not", "tag", "is", "in", "exists", "attribute", "a"])
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | WORDS,
    lambda inner: st.lists(inner) | st.dictionaries(MEMBERS, inner | WORDS),
)


@given(ANYTHING)
def test_whatever_is_given_is_read_or_refused_as_a_filter(given: object) -> None:
    for read in (read_tree, read_filters):
        tree = None
        with suppress_refusal():
            tree = read(given)
        assert tree is None or read_tree(document(tree)) == tree


@contextmanager
def suppress_refusal() -> Iterator[None]:
    try:
        yield
    except Problem as problem:
        if problem.code != "FILTER_INVALID":
            raise
