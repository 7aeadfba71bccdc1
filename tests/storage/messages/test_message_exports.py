"""Rows of exports: what a page holds, that all pages hold everything once, and that each costs the same (C18)."""

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.message_rows import PHONE, insert_messages, message_id
from tests.people import insert_people
from tests.plans import grow, indexes, plan_for_any, plan_of

from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import partition
from recado.storage.messages.message_exports import ExportedPeriod, list_page, page_query

ORGANIZATION, OTHER = "org_" + "0" * 21, "org_" + "1" * 21
MILLION = 1_000_000
NOW = datetime.now(UTC).replace(microsecond=0)
MONTH = NOW.replace(day=1, hour=0, minute=0, second=0)
MS = timedelta(milliseconds=1)


def wanted(**changes: Any) -> ExportedPeriod:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "start": MONTH, "end": MONTH + 1000 * MS,
    }  # fmt: skip
    return ExportedPeriod(**{**fields, **changes})


async def add(
    database: Database, *rows: dict[str, Any], organization_id: str = ORGANIZATION, env: str = "test"
) -> None:
    await insert_messages(database, organization_id, env, rows)


async def all_pages(database: Database, of: ExportedPeriod, limit: int) -> list[str]:
    found: list[str] = []
    while True:
        page = await list_page(database, of, limit=limit, before_id=found[-1] if found else None)
        found += [row.id for row in page.items]
        if not page.more:
            return found
        assert len(page.items) == limit


async def test_a_page_holds_what_is_in_the_period_of_the_channel_and_of_nobody_else(database: Database) -> None:
    ids = [message_id(MONTH + n * MS, n) for n in range(5)]
    await add(database, *({"id": each} for each in ids))
    await add(database, {"id": message_id(MONTH, 9), "channel": "sms"})
    await add(database, {"id": message_id(MONTH, 10)}, env="live")
    await add(database, {"id": message_id(MONTH, 11)}, organization_id=OTHER)
    assert await all_pages(database, wanted(), 2) == ids[::-1]
    assert await all_pages(database, wanted(start=MONTH + MS, end=MONTH + 3 * MS), 1000) == [ids[2], ids[1]]
    assert await all_pages(database, wanted(start=MONTH + MS, end=MONTH), 1000) == []


async def test_a_row_says_whether_its_contact_is_there_and_its_present_external_id(database: Database) -> None:
    (known,) = await insert_people(database, ORGANIZATION, "test", [{"external_id": "crm-7"}])
    contacts = {0: None, 1: known, 2: "cnt_" + "9" * 21}
    await add(database, *({"id": message_id(MONTH, n), "contact_id": each} for n, each in contacts.items()))
    await add(database, {"id": message_id(MONTH), "contact_id": known}, env="live")
    rows = (await list_page(database, wanted(), limit=10)).items
    assert [(row.contact_id, row.known, row.contact_external_id) for row in rows] == [
        (contacts[2], False, None), (known, True, "crm-7"), (None, True, None),
    ]  # fmt: skip
    assert {row.recipient for row in rows} == {PHONE}
    (of_live,) = (await list_page(database, wanted(env="live"), limit=10)).items
    assert (of_live.known, of_live.contact_external_id) == (False, None)


async def test_a_page_is_read_in_parts_where_its_metadata_are_large(database: Database) -> None:
    large = {f"k{n}": "ü" * 256 for n in range(20)}
    ids = [message_id(MONTH, n) for n in range(200)]
    await add(database, *({"id": each, "metadata": large} for each in ids))
    part = await list_page(database, wanted(), limit=200)
    assert 0 < len(part.items) < 200
    assert part.more
    rest = await list_page(database, wanted(), limit=200 - len(part.items), before_id=part.items[-1].id)
    assert [row.id for row in (*part.items, *rest.items)][: len(part.items) + 1] == ids[::-1][: len(part.items) + 1]


@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 300), max_size=40, unique=True),
    st.integers(1, 9),
    st.lists(st.lists(st.integers(0, 400), max_size=5), max_size=20),
    st.integers(0, 300),
    st.integers(0, 300),
)
async def test_all_pages_together_hold_what_was_there_once_while_rows_come_in(
    database: Database, there: list[int], limit: int, meanwhile: list[list[int]], start: int, length: int
) -> None:
    """Of what comes in meanwhile with an earlier id, as from a commit that took its time, each comes once at most."""
    await database.execute("truncate messages")
    of = wanted(start=MONTH + start * MS, end=MONTH + (start + length + 1) * MS)
    await add(database, *({"id": message_id(MONTH + n * MS)} for n in there))
    found: list[str] = []
    later, serial = iter(meanwhile), 0
    made_after: set[str] = set()
    while True:
        page = await list_page(database, of, limit=limit, before_id=found[-1] if found else None)
        found += [row.id for row in page.items]
        if not page.more:
            break
        newest = found[0]
        for n in next(later, ()):
            serial += 1
            new = message_id(MONTH + n * MS, serial)
            await add(database, {"id": new})
            if new > newest:
                made_after.add(new)
    expected = [message_id(MONTH + n * MS) for n in there if start <= n <= start + length]
    assert set(expected) <= set(found)
    assert found == sorted(set(found), reverse=True)
    assert not made_after & set(found)


async def test_a_page_is_read_along_the_key_and_costs_the_same_in_a_million_rows(database: Database) -> None:
    people = await insert_people(database, ORGANIZATION, "test", [{"external_id": f"crm {n}"} for n in range(2_000)])
    await add(database, *({"id": message_id(MONTH + n * MS), "contact_id": people[n % 2_000]} for n in range(4_000)))
    table, *_ = partition(NOW)
    for each in (table, "contacts"):
        await database.execute(f"vacuum analyze {each}")
        await grow(database, each, MILLION)
    of = wanted(end=MONTH + timedelta(days=31))
    for before_id in (None, message_id(MONTH + 500 * MS)):
        sql, arguments = page_query(of, limit=1_001, before_id=before_id)
        for found in (
            await plan_of(database, sql, arguments),
            await plan_for_any(database, sql, _literals(arguments)),
        ):
            kinds = {node["Node Type"] for node in found}
            assert not kinds & {"Seq Scan", "Bitmap Heap Scan", "Hash Join", "Merge Join", "Sort"}, kinds
            read = {name for name in indexes(found) if name.startswith("messages_")}
            assert {name for name in read if not name.endswith("_pkey")} == set()
            assert indexes(found) - read == {"contacts_pkey"}
            (along, *_) = [node for node in found if node.get("Index Name") == f"{table}_pkey"]
            assert along["Scan Direction"] == "Backward"
            condition = along["Index Cond"]
            assert all(part in condition for part in ("organization_id", "env", "channel", ">=", " <")), condition


def _literals(arguments: list[Any]) -> str:
    return ", ".join(str(each) if isinstance(each, int) else f"'{each}'" for each in arguments)
