"""The plans of what is asked of a million contacts of one organization: at the sizes and the statistics of a million.

The contacts are those of the benchmark, a hundredth of them; `grow` makes tables and indexes look as large as they are
with all.
"""

import re
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from bench.contacts import make_contacts
from tests.plans import Plan, grow, indexes, plan_for_any, plan_of, whole_tables
from tests.storage.conftest import opened, read_only

from recado.domain.audience.segment import And, Field, Leaf, Node, Not, Operator, Or
from recado.storage.audience import lists, segments
from recado.storage.audience.segment_evaluation import AFTER_ALL_IDS
from recado.storage.audience.segment_query import query
from recado.storage.batches import audiences
from recado.storage.contacts import contact_reads, contacts, list_pages
from recado.storage.contacts.contact_reads import ContactFilter
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import pack
from recado.storage.dispatch import dispatch
from recado.storage.messages import messages

ORGANIZATION, ENV = "org_7", "test"
ONE = (ORGANIZATION, ENV)
NOW = datetime.now(UTC)
MILLION = 1_000_000
MADE = 10_000
LISTS = """
insert into static_lists (organization_id, env, id, name, name_key, size, updated_at)
    select 'org_7', 'test', 'lst_' || i, 'n', 'n' || i, 1, now() from generate_series(1, 1000) i;
insert into static_list_members (organization_id, list_id, contact_id, added_at)
    select 'org_7', 'lst_' || i % 10, id, now() from (select id, row_number() over (order by id) as i from contacts) c;
vacuum (analyze) static_lists;
vacuum (analyze) static_list_members;
"""


async def fill(database: Database) -> None:
    async with database.acquire() as connection:
        await make_contacts(connection, ORGANIZATION, MADE)
    for statement in LISTS.strip().split(";\n"):
        await database.execute(statement.removesuffix(";"))
    await grow(database, "contacts", MILLION)
    await grow(database, "static_list_members", MILLION)


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    with read_only(postgres, fill) as arguments:
        yield arguments


@pytest.fixture
async def million(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    """A million contacts, each on one of ten lists; statements are planned and not run."""
    async with opened(prepared) as db:
        yield db


def conditions(found: list[Plan]) -> set[tuple[str, str]]:
    """Of each index that a plan reads: its last column that is looked up."""
    columns = ("(id", "phone", "external_id", "contact_id")
    return {
        (node["Index Name"], column)
        for node in found
        for column in columns
        if "Index Name" in node and column in node.get("Index Cond", "")
    }


def wanted(**fields: Any) -> ContactFilter:
    return ContactFilter(organization_id=ORGANIZATION, env=ENV, **fields)


async def test_the_planner_believes_in_a_million(million: Database) -> None:
    (whole,) = await plan_of(million, "select * from contacts", ())
    assert 0.95 * MILLION < whole["Plan Rows"] < 1.05 * MILLION
    assert whole["Total Cost"] > 50_000  # its pages are counted, too


@pytest.mark.parametrize("change", ["add", "replace", "remove"])
@pytest.mark.parametrize(
    ("place", "looked_up"),
    [(2, ("contacts_pkey", "(id")), (3, ("contacts_phone", "phone")), (4, ("contacts_external_id", "external_id"))],
)
async def test_identifiers_are_looked_up_in_their_index_by_the_whole_key_and_in_no_other(
    million: Database, change: str, place: int, looked_up: tuple[str, str]
) -> None:
    sql = "\n".join((lists.SQL.resolved, getattr(lists.SQL, change), lists.SQL.outcome))
    named: list[Any] = [*ONE, "", "", "[]", "lst_7", NOW, 100]
    texts = [f"+551190{n:07}" for n in range(50_000)]
    named[place] = orjson.dumps(texts).decode() if place == 4 else pack(texts)
    async with million.hot.transaction() as connection:
        await connection.execute(lists.SQL.in_bulk)
        found = await plan_of(connection, sql, named)
    assert whole_tables(found) == set()
    assert conditions(found) == {looked_up, ("static_list_members_pkey", "contact_id"), ("static_lists_pkey", "(id")}
    assert {name for name in indexes(found) if name.startswith("contacts")} == {looked_up[0]}


@pytest.mark.parametrize(
    "start",
    [("", 0, "", 0), ("", 0, "", 100_000), ("1", 90_000, "cnt_0", 90_000), (None, 0, "cnt_0", 0)],
    ids=["first", "skipped", "from a milestone", "by cursor"],
)
async def test_a_page_of_a_list_is_found_in_the_index_of_its_members_alone(
    million: Database, start: tuple[Any, ...]
) -> None:
    sql, arguments = list_pages.SQL.page, (*ONE, "lst_7", *start, 201, list_pages.STEP)
    for found in (await plan_of(million, sql, arguments), await plan_for_any(million, sql)):
        assert indexes(found) == {"static_list_members_pkey", "contacts_pkey", "static_lists_pkey"}
        members = [node for node in found if node.get("Relation Name") == "static_list_members"]
        assert len(members) == 2  # from milestone to milestone, and the page
        for each in members:
            assert (each["Node Type"], each["Scan Direction"]) == ("Index Only Scan", "Backward")
            assert "contact_id <" in each["Index Cond"]
        # They come in order, and no more than are wanted.
        assert len([node for node in found if node["Node Type"] == "Limit" and node["Plans"][0] in members]) == 2
        assert whole_tables(found) == set()


@pytest.mark.parametrize(
    ("fields", "index"),
    [
        ({"q": "sobrenome123"}, "contacts_search"),
        ({"q": "customer777"}, "contacts_search"),
        ({"q": "+55 11 90000-77"}, "contacts_search"),
        ({"q": "0077"}, "contacts_search"),
        ({"q": "ana sobrenome123"}, "contacts_search"),
        ({"tag": "nobody"}, "contacts_tags"),
    ],
)
async def test_a_search_is_answered_by_its_index(million: Database, fields: dict[str, Any], index: str) -> None:
    sql, arguments = contact_reads.search_query(wanted(**fields), limit=51)
    for found in (await plan_of(million, sql, arguments), await plan_for_any(million, sql)):
        assert indexes(found) == {index, "contacts_pkey"}
        assert whole_tables(found) == set()


async def test_other_lists_are_read_along_the_index_of_their_filter(million: Database) -> None:
    filters: list[tuple[dict[str, Any], str]] = [
        ({}, "contacts_pkey"),
        ({"opt_in_status": "denied"}, "contacts_opt_in"),
        ({"source": "manual"}, "contacts_source"),
        ({"external_id": "customer-7"}, "contacts_external_id"),
        ({"company_id": "emp_7"}, "contacts_company"),
        ({"document": ("cpf_index", b"x" * 32)}, "contacts_cpf"),
        ({"document": ("cnpj_index", b"x" * 32)}, "contacts_cnpj"),
        ({"updated_since": NOW}, "contacts_updated"),
    ]
    for fields, index in filters:
        found = await plan_of(million, *contact_reads.page_query(wanted(**fields), limit=51))
        assert indexes(found) == {index, "contacts_pkey"}, fields
        assert whole_tables(found) == set()


async def test_one_contact_is_found_by_whatever_names_it(million: Database) -> None:
    asked: list[tuple[str, tuple[Any, ...], str]] = [
        (contacts.SQL.by_id, (*ONE, "cnt_7"), "contacts_pkey"),
        (contacts.SQL.by_phones, (*ONE, ["+5511900000007"]), "contacts_phone"),
        (contacts.SQL.by_external_ids, (*ONE, ["customer-7"]), "contacts_external_id"),
        (contacts.SQL.by_email, (*ONE, "customer7@example.com"), "contacts_email"),
    ]
    for sql, arguments, index in asked:
        for found in (await plan_of(million, sql, arguments), await plan_for_any(million, sql)):
            assert (indexes(found), whole_tables(found)) == ({index}, set()), sql


@pytest.mark.parametrize("sql", [messages.ACCEPT, dispatch.SQL.claim], ids=["accept", "claim"])
async def test_consent_is_asked_of_one_contact_by_its_phone_and_of_no_more(million: Database, sql: str) -> None:
    found = await plan_for_any(million.hot, sql)
    assert whole_tables(found) == set()
    (look,) = [node for node in found if node.get("Index Name") == "contacts_phone"]
    assert re.search(r"organization_id\b.* = .* AND .*env = .* AND .*phone >= ", look["Index Cond"])
    assert [node["Node Type"] for node in found if look in node.get("Plans", ())] == ["Limit"]
    assert {name for name in indexes(found) if name.startswith("contacts")} == {"contacts_phone"}


# Segments -----------------------------------------------------------------------------------------------------------


def condition(field: Field, operator: Operator, value: Any, key: str | None = None) -> Leaf:
    return Leaf(field, operator, value, key)


FREQUENT = Or(
    (
        condition(Field.TAG, Operator.IN, ("tier1", "x")),
        Not(condition(Field.ATTRIBUTE, Operator.IN, ("City 7", 1, True), "city")),
        condition(Field.ATTRIBUTE, Operator.CONTAINS, "topic 3", "interests"),
        condition(Field.ATTRIBUTE, Operator.GT, 80, "age"),
        condition(Field.LAST_INTERACTION, Operator.WITHIN_DAYS, 7),
    )
)
REACHED = And(
    (
        condition(Field.ATTRIBUTE, Operator.IN, ("plus", "pro"), "plan"),
        condition(Field.OPT_IN, Operator.IS_NOT, "denied"),
        condition(Field.LAST_INTERACTION, Operator.WITHIN_DAYS, 90),
        condition(Field.CHANNEL, Operator.IS, "email"),
    )
)
RARE = And((condition(Field.TAG, Operator.IS, "nobody"), *REACHED.children))


async def plan_of_all(db: Database, sql: str, tree: Node, **more: Any) -> list[Plan]:
    """The plan of a look at everybody."""
    async with db.transaction() as connection:
        await connection.execute(segments.SQL.look_at_everybody)
        return await plan_of(connection, *query(sql, *ONE, tree, NOW, **more))


@pytest.mark.parametrize("tree", [FREQUENT, REACHED], ids=["any of", "all of"])
async def test_everybody_is_looked_at_in_the_order_of_the_table_by_several_processes(
    million: Database, tree: Node
) -> None:
    looks: list[tuple[str, dict[str, Any]]] = [
        (segments.SQL.count, {}),
        (segments.SQL.everybody, {"limit": 20}),
        (audiences.SQL.of_segment, {"before_id": AFTER_ALL_IDS}),
    ]
    for sql, more in looks:
        kinds = [node["Node Type"] for node in await plan_of_all(million, sql, tree, **more)]
        assert "Gather" in kinds or "Gather Merge" in kinds, sql
        assert {"Seq Scan", "Bitmap Heap Scan"} & set(kinds), sql
        assert not {"Index Scan", "Index Only Scan"} & set(kinds), sql


async def test_a_rare_tag_is_found_by_its_index(million: Database) -> None:
    for sql, more in ((segments.SQL.count, {}), (segments.SQL.everybody, {"limit": 20})):
        found = await plan_of_all(million, sql, RARE, **more)
        assert "contacts_tags" in indexes(found)
        assert whole_tables(found) == set()


@pytest.mark.parametrize("tree", [FREQUENT, REACHED, RARE], ids=["any of", "all of", "rare"])
async def test_the_newest_are_read_along_the_key_and_no_further_than_asked(million: Database, tree: Node) -> None:
    found = await plan_of(million, *query(segments.SQL.newest, *ONE, tree, NOW, newest=20_000, limit=20))
    (scan,) = [node for node in found if "Relation Name" in node]
    assert (scan["Index Name"], scan["Scan Direction"]) == ("contacts_pkey", "Backward")
    assert "Sort" not in {node["Node Type"] for node in found}
    assert [node["Plan Rows"] for node in found if node["Node Type"] == "Limit"][-1] == 20_000


@pytest.mark.parametrize("tree", [FREQUENT, RARE], ids=["any of", "rare"])
async def test_an_audience_is_read_along_the_key(million: Database, tree: Node) -> None:
    more = {"after_id": "cnt_0", "before_id": AFTER_ALL_IDS, "limit": 5_000}
    async with million.transaction() as connection:
        await connection.execute(audiences.SQL.along_the_key)
        found = await plan_of(connection, *query(audiences.SQL.next_of_segment, *ONE, tree, NOW, **more))
    assert indexes(found) == {"contacts_pkey"}
    assert "Sort" not in {node["Node Type"] for node in found}
