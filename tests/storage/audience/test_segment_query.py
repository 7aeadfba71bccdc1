"""A filter means in the database what the rules say, and no value ever becomes part of the query (C13.2, C13.3)."""

from operator import ge, gt, le, lt
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.people import insert_people
from tests.segments import NOW, contacts, holds, trees

from recado.domain.audience.segment import And, Field, Leaf, Node, Operator
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.audience.segment_query import SQL, Condition, query
from recado.storage.core.connections.postgres import Database

HOSTILE = [
    "'; drop table contacts; --",
    "$1",
    ":organization_id",
    "{condition}",
    "\\",
    "%",
    "' or '1'='1",
    'x" \u2028',
    "::int",
]


async def found(db: Database, tree: Node, organization_id: str = "org_1", env: str = "test") -> set[str]:
    sql, arguments = query(SQL.newest, organization_id, env, tree, NOW, newest=1_000, limit=1_000)
    return {row["id"] for row in await db.fetch(sql, *arguments)}


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
async def test_the_database_finds_who_the_rules_say(database: Database, data: st.DataObject) -> None:
    people: list[dict[str, Any]] = data.draw(st.lists(contacts(), min_size=1, max_size=12))
    await database.execute("truncate contacts")
    ids = await insert_people(database, "org_1", "test", people)
    for _ in range(4):
        tree = data.draw(trees())
        expected = {contact_id for contact_id, person in zip(ids, people, strict=True) if holds(tree, person)}
        assert await found(database, tree) == expected
        assert await Evaluation(database).count("org_1", "test", tree, NOW) == len(expected)


@settings(deadline=None)
@given(trees())
def test_the_text_of_a_query_holds_no_value(tree: Node) -> None:
    plain = _without_values(tree)
    assert Condition(tree, NOW).text == Condition(plain, NOW).text


def _without_values(node: Node) -> Node:
    """The same tree with other values of the same kinds, and other keys."""
    if not isinstance(node, Leaf):
        return (
            type(node)(tuple(map(_without_values, node.children)))
            if hasattr(node, "children")
            else type(node)(_without_values(node.child))
        )

    def other(value: Any) -> Any:
        match value:
            case str() if node.field is Field.ATTRIBUTE and node.operator in (
                Operator.GT,
                Operator.GTE,
                Operator.LT,
                Operator.LTE,
            ):
                return "1999-01-01"
            case str() if node.field in (Field.OPT_IN, Field.CHANNEL):
                return value
            case str():
                return "other"
            case bool():
                return not value
            case int() | float():
                return 7
            case tuple():
                return tuple(map(other, value))
        return value

    return Leaf(node.field, node.operator, other(node.value), None if node.key is None else "other")


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_texts_are_values(database: Database, text: str) -> None:
    await insert_people(database, "org_1", "test", [{"tags": [text], "attributes": {text: text, "a": text}}, {}])
    for leaf in (
        Leaf(Field.TAG, Operator.IS, text),
        Leaf(Field.TAG, Operator.IN, (text, "x")),
        Leaf(Field.ATTRIBUTE, Operator.IS, text, "a"),
        Leaf(Field.ATTRIBUTE, Operator.CONTAINS, text, "a"),
        Leaf(Field.ATTRIBUTE, Operator.EXISTS, None, text),
    ):
        assert len(await found(database, And((leaf,)))) == 1


@pytest.mark.parametrize("part", ["[", "]", ",", ", ", "a, b", "n", "\\", '"', '", "', "u", "é"])
async def test_a_part_is_looked_for_within_elements_and_not_in_what_joins_them(database: Database, part: str) -> None:
    plain, escaped = ["A", "b"], ["one\ntwo", "\x01"]
    ids = await insert_people(
        database, "org_1", "test", [{"attributes": {"a": each}} for each in (plain, escaped, [part])]
    )
    leaf = Leaf(Field.ATTRIBUTE, Operator.CONTAINS, part, "a")
    expected = {ids[2], *({ids[1]} if part == "n" else ())}  # the n of "one"
    assert await found(database, leaf) == expected


@pytest.mark.parametrize("number", [-3, 0, 2.5, -1e-7, 1e300, 10**17])
@pytest.mark.parametrize("operator", [Operator.GT, Operator.GTE, Operator.LT, Operator.LTE])
async def test_numbers_compare_with_nothing_but_numbers(database: Database, operator: Operator, number: float) -> None:
    values = [number, number - 1, number + 1, -(10**15), str(number), True, None, [str(number)], [number + 1]]
    ids = await insert_people(database, "org_1", "test", [{"attributes": {"a.b": each}} for each in values])
    comparison = {"gt": gt, "gte": ge, "lt": lt, "lte": le}[operator.value]
    expected = {person for person, value in zip(ids[:4], values, strict=False) if comparison(value, number)}
    assert await found(database, Leaf(Field.ATTRIBUTE, operator, number, "a.b")) == expected


async def test_contacts_of_others_never_match(database: Database) -> None:
    everybody = Leaf(Field.TAG, Operator.IS_NOT, "nobody has it")
    mine = await insert_people(database, "org_1", "test", [{}])
    await insert_people(database, "org_1", "live", [{}], first=2)
    await insert_people(database, "org_2", "test", [{}], first=3)
    assert await found(database, everybody) == set(mine)
