"""What is asked of lists, segments and audiences takes an index, or is shared among processes (C7, C13, C15.5)."""

from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.people import contact_id, insert_people
from tests.storage.conftest import opened, read_only

from recado.domain.audience.segment import And, Field, Leaf, Node, Not, Operator, Or
from recado.storage.audience import lists, segments
from recado.storage.audience.lists import SQL
from recado.storage.audience.segment_evaluation import AFTER_ALL_IDS, LOOKED_UP, Evaluation, over
from recado.storage.audience.segment_query import query
from recado.storage.batches import audiences
from recado.storage.contacts.contact_reads import ContactFilter, page_query
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import pack

NOW = datetime(2026, 6, 1, tzinfo=UTC)
ONE = ("org_7", "test")
FILL = """
insert into contacts (organization_id, env, id, phone, phone_hash, attributes, tags, tag_keys, source, external_id,
        opt_in_status, search, updated_at)
    select case when i % 10 = 0 then 'org_7' else 'org_' || i % 50 end, 'test', 'cnt_' || lpad(i::text, 21, '0'),
        '+' || 4900000000 + i, sha256(i::text::bytea), '{"city": "x", "age": 7}', '{}',
        case when i % 100 = 0 then array['vip'] else '{}' end, 'api', 'x' || i, 'unknown', '', now()
    from generate_series(1, 20000) i;
insert into static_lists (organization_id, env, id, name, name_key, size, updated_at)
    select 'org_' || i % 50, 'test', 'lst_' || i, 'n', 'n' || i, 1, now() from generate_series(1, 2000) i;
insert into static_list_members
    select 'org_7', 'lst_' || i % 100, 'cnt_' || lpad((10 * (i / 10))::text, 21, '0'), now()
    from generate_series(1, 20000) i
    on conflict do nothing;
insert into segments (organization_id, env, id, name, name_key, filters, size, due_at, updated_at)
    select 'org_' || i % 50, 'test', 'seg_' || i, 'n', 'n' || i, '[]', 1, now() + i * interval '1 minute', now()
    from generate_series(1, 2000) i;
insert into batches (organization_id, env, id, channel, sender_id, type, class, status, requested, skipped,
        skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at)
    select 'org_' || i % 50, 'test', 'btc_' || i, 'chatapp', 'num_1', 'text', 2, 'building', 1, 0, '{}', '[]', 1, 0, 1,
        true, now()
    from generate_series(1, 2000) i;
insert into batch_audiences (organization_id, batch_id, list_id, after_id, before_id)
    select organization_id, id, 'lst_7', '', 'cnt_~' from batches;
insert into totals (organization_id, env, kind, key) select organization_id, env, 'batch', id from batches;
analyze contacts, static_lists, static_list_members, segments, batches, batch_audiences, totals;
"""


@pytest.fixture(scope="module")
def prepared(postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Contacts, lists, segments and batches of 50 organizations."""
    with read_only(postgres, lambda db: db.execute(FILL)) as arguments:
        yield arguments


@pytest.fixture
async def filled(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    async with opened(prepared) as db:
        yield db


def nodes(plan: Any) -> list[Any]:
    """Every node of a plan."""
    return [plan, *(each for child in plan.get("Plans", []) for each in nodes(child))]


async def plan_of(executor: Any, sql: str, arguments: Any) -> list[Any]:
    (plan,) = orjson.loads(await executor.fetchval(f"explain (format json) {sql}", *arguments))
    return nodes(plan["Plan"])


def whole_tables(found: list[Any]) -> list[str]:
    return [node["Relation Name"] for node in found if node["Node Type"] == "Seq Scan"]


async def test_every_look_at_lists_and_audiences_takes_an_index(filled: Database) -> None:
    ids = [f"cnt_{n:021}" for n in range(10, 5_000, 10)]
    phones = [f"+{4_900_000_000 + n}" for n in range(10, 5_000, 10)]
    named = (*ONE, pack(ids), pack(phones), '["x10"]', "lst_7", NOW, 100)
    asked: list[tuple[str, tuple[Any, ...]]] = [
        (lists.SQL.by_id, (*ONE, "lst_7")),
        (lists.SQL.page, (*ONE, None, None, 50, 0)),
        (lists.SQL.named, (*ONE, "n7")),
        (lists.SQL.delete, (*ONE, "lst_7")),
        (lists.SQL.leave, (*ONE, ["lst_7"], ids)),
        (lists.SQL.lock_all, ONE),
        (segments.SQL.by_id, (*ONE, "seg_7")),
        (segments.SQL.page, (*ONE, None, None, 50, 0)),
        (segments.SQL.note_size, (*ONE, "seg_7", 1, 1, NOW, NOW)),
        (audiences.SQL.of_batch, (*ONE, "btc_7")),
        (audiences.ROLLED, (*ONE, "btc_7", NOW, 1, True, {"x": 1}, "running", "failed", 7)),
        (audiences.SQL.refusals, (*ONE, ids, [0] * len(ids), "phone", [None] * len(ids))),
        (audiences.SQL.refusals, (*ONE, ids, [2] * len(ids), "email", [f"{each}@example.com" for each in ids])),
    ]
    for change in ("add", "replace", "remove"):
        asked.append(("\n".join((SQL.resolved, getattr(SQL, change), SQL.outcome)), named))
    for sql, arguments in asked:
        batched = arguments is named or sql in (audiences.SQL.of_batch, audiences.ROLLED, audiences.SQL.refusals)
        found = await plan_of(filled.hot if batched else filled, sql, arguments)
        assert whole_tables(found) in ([], ["organizations"], ["templates"]), sql  # those two are empty here


async def test_a_page_of_a_list_begins_in_the_middle_of_its_index(filled: Database) -> None:
    wanted = ContactFilter(organization_id=ONE[0], env=ONE[1], list_id="lst_7", opt_in_status="granted")
    sql, arguments = page_query(wanted, limit=50, after=(None, f"cnt_{500:021}"))
    found = await plan_of(filled, sql, arguments)
    assert whole_tables(found) == []
    assert [node for node in found if node["Node Type"] == "Sort"] == []
    (members,) = [node for node in found if node.get("Relation Name") == "static_list_members"]
    assert "contact_id <" in members["Index Cond"]


async def test_due_segments_are_found_by_their_index(filled: Database) -> None:
    found = await plan_of(filled, segments.SQL.claim_due, (NOW, NOW, 10, ["org_9"]))
    assert "segments_due" in {node.get("Index Name") for node in found}
    assert whole_tables(found) == []


def condition(field: Field, operator: Operator, value: Any, key: str | None = None) -> Leaf:
    return Leaf(field, operator, value, key)


EVERYTHING = Or(
    (
        condition(Field.TAG, Operator.IN, ("vip", "x")),
        Not(condition(Field.ATTRIBUTE, Operator.IN, ("a", 1, True), "city")),
        condition(Field.ATTRIBUTE, Operator.CONTAINS, "x", "city"),
        condition(Field.ATTRIBUTE, Operator.GT, 5, "age"),
        condition(Field.ATTRIBUTE, Operator.LTE, "2026-01-01", "since"),
        condition(Field.ATTRIBUTE, Operator.EXISTS, None, "age"),
        condition(Field.OPT_IN, Operator.IS, "granted"),
        condition(Field.LAST_INTERACTION, Operator.WITHIN_DAYS, 7),
        condition(Field.CHANNEL, Operator.IN, ("sms", "email", "push")),
    )
)


async def test_a_count_over_everybody_is_shared_among_processes(filled: Database) -> None:
    sql, arguments = query(segments.SQL.count, *ONE, EVERYTHING, NOW)
    async with filled.transaction() as connection:
        # What makes sharing worth it at a million.
        for setting in ("parallel_setup_cost = 0", "parallel_tuple_cost = 0", "min_parallel_table_scan_size = 0"):
            await connection.execute(f"set local {setting}")
        await connection.execute("set local enable_indexscan = off")
        await connection.execute("set local enable_bitmapscan = off")
        await connection.execute("set local enable_indexonlyscan = off")
        found = await plan_of(connection, sql, arguments)
    kinds = [node["Node Type"] for node in found]
    assert "Gather" in kinds
    assert not [node for node in found if node.get("Parent Relationship") in ("InitPlan", "SubPlan")]


async def test_a_rare_tag_is_found_by_its_index(filled: Database) -> None:
    tree = And((condition(Field.TAG, Operator.IS, "VIP"), condition(Field.OPT_IN, Operator.IS_NOT, "denied")))
    for sql in (segments.SQL.count, audiences.SQL.of_segment):
        more = {} if sql is segments.SQL.count else {"before_id": AFTER_ALL_IDS}
        found = await plan_of(filled, *query(sql, *ONE, tree, NOW, **more))
        assert "contacts_tags" in {node.get("Index Name") for node in found}


@pytest.mark.parametrize("tree", [EVERYTHING, condition(Field.TAG, Operator.IS, "vip")])
async def test_an_audience_is_read_along_the_key(filled: Database, tree: Node) -> None:
    more = {"after_id": f"cnt_{500:021}", "before_id": AFTER_ALL_IDS, "limit": 5_000}
    sql, arguments = query(audiences.SQL.next_of_segment, *ONE, tree, NOW, **more)
    async with filled.transaction() as connection:
        await connection.execute(audiences.SQL.along_the_key)
        found = await plan_of(connection, sql, arguments)
    assert [node["Index Name"] for node in found if "Index Name" in node] == ["contacts_pkey"]
    assert "Sort" not in {node["Node Type"] for node in found}


NEWCOMER = """
insert into static_list_members select 'org_new', 'lst_1', id, now() from contacts where organization_id = 'org_new';
"""


@pytest.fixture(scope="module", params=["nothing", "only others"])
def of_a_newcomer(request: pytest.FixtureRequest, postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A list of all contacts of an organization, of which the planner has no statistics: they came a moment ago."""

    async def fill(db: Database) -> None:
        for table in ("contacts", "static_list_members"):
            await db.execute(f"alter table {table} set (autovacuum_enabled = off)")
        if request.param == "only others":
            await db.execute(FILL)
        await insert_people(db, "org_new", "test", [{}] * 2_000)
        await db.execute(NEWCOMER)

    with read_only(postgres, fill) as arguments:
        yield arguments


async def test_members_are_looked_up_one_by_one_also_where_the_planner_knows_nothing_of_them(
    of_a_newcomer: dict[str, Any],
) -> None:
    audience = audiences.Audience(before_id=AFTER_ALL_IDS, list_id="lst_1")
    asked: list[tuple[str, dict[str, Any]]] = [
        (audiences.OF_LIST, {}),
        (audiences.NEXT_OF_LIST, {"after_id": "", "limit": 5_000}),
    ]
    async with opened(of_a_newcomer) as db, db.searches.transaction() as connection:
        await connection.execute(segments.SQL.plan_with_values)
        await connection.execute(audiences.SQL.along_the_key)
        for text, more in asked:
            sql, arguments = over(audience, text, "", "org_new", "test", NOW, **more)
            (looked_up,) = [
                node for node in await plan_of(connection, sql, arguments) if node.get("Relation Name") == "contacts"
            ]
            assert looked_up["Index Name"] == "contacts_pkey"
            assert "(id)" in looked_up["Index Cond"]

    async with opened(of_a_newcomer) as db, db.hot.transaction() as connection:
        await connection.execute(audiences.SQL.along_the_key)
        for kind, key in (("phone", None), ("email", "ana@example.com")):
            arguments = ["org_new", "test", [contact_id(1)], [0], kind, [key]]
            found = await plan_of(connection, audiences.SQL.refusals, arguments)
            by_id, *by_email = [node for node in found if node.get("Relation Name") == "contacts"]
            assert [by_id["Index Name"], *(each["Index Name"] for each in by_email)] == [
                "contacts_pkey", "contacts_email", "contacts_email",
            ]  # fmt: skip
            assert "(id)" in by_id["Index Cond"]
            assert all("email_key" in each["Index Cond"] for each in by_email)


async def test_who_had_an_address_before_is_looked_up_by_the_addresses_whatever_the_planner_knows(
    of_a_newcomer: dict[str, Any],
) -> None:
    more = {"after_id": contact_id(1_000), "email_keys": [f"p{number}@example.com" for number in range(5_000)]}
    async with opened(of_a_newcomer) as db, db.searches.transaction() as connection:
        await connection.execute(segments.SQL.plan_with_values)
        await connection.execute(audiences.SQL.along_the_key)
        for whose in ({"list_id": "lst_1"}, {"tree": condition(Field.TAG, Operator.IS, "vip")}):
            audience = audiences.Audience(before_id=AFTER_ALL_IDS, **whose)
            texts = (audiences.SQL.earlier_of_list, audiences.SQL.earlier_of_segment)
            found = await plan_of(connection, *over(audience, *texts, "org_new", "test", NOW, **more))
            (looked_up,) = [node for node in found if node.get("Relation Name") == "contacts"]
            assert looked_up["Index Name"] == "contacts_email", whose
            assert "email_key >= " in looked_up["Index Cond"]
            members = [node for node in found if node.get("Relation Name") == "static_list_members"]
            assert all("contact_id = " in node["Index Cond"] for node in members)
            assert len(members) == ("list_id" in whose)


async def test_a_large_list_is_counted_in_one_look_also_where_the_planner_knows_nothing_of_it(
    of_a_newcomer: dict[str, Any],
) -> None:
    audience = audiences.Audience(before_id=AFTER_ALL_IDS, list_id="lst_1")
    sql, arguments = over(audience, audiences.SQL.of_large_list, "", "org_new", "test", NOW)
    async with opened(of_a_newcomer) as db, db.searches.transaction() as connection:
        await connection.execute(segments.SQL.plan_with_values)
        await connection.execute(audiences.SQL.all_at_once)
        assert "Nested Loop" not in {node["Node Type"] for node in await plan_of(connection, sql, arguments)}


async def test_a_list_has_the_same_contacts_however_it_is_counted(
    of_a_newcomer: dict[str, Any],
) -> None:
    audience = audiences.Audience(before_id=contact_id(1_501), list_id="lst_1")
    async with opened(of_a_newcomer) as db:
        evaluation = Evaluation(db)
        for members in (1, LOOKED_UP + 1):
            counted = await evaluation.reach("org_new", "test", audience, NOW, members=members)
            assert counted == (1_500, {"BR": 0, "INTL": 1_500})
        reached = await evaluation.next_of("org_new", "test", audience, NOW, after_id=contact_id(1_400), limit=500)
    assert [contact for contact, _ in reached.people] == [contact_id(n) for n in range(1_401, 1_501)]
    assert reached.ended
