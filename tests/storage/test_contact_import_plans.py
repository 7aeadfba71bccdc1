"""The look-ups of an import take the index that has what is asked for, also on tables that nobody has counted yet."""

from typing import Any

import orjson
import pytest

from recado.storage import companies, contact_imports, contacts
from recado.storage.postgres import Database

HOLDERS = {"contacts_phone": "phone", "contacts_external_id": "external_id"}


async def plan_of(database: Database, sql: str, *arguments: Any) -> Any:
    """The plan that serves every value, on the pool of the batchers."""
    async with database.hot.acquire() as connection:
        types = [parameter.name for parameter in (await connection.prepare(sql)).get_parameters()]
        await connection.execute(f"prepare asked ({', '.join(_sql_type(name) for name in types)}) as {sql}")
        try:
            values = ", ".join(_literal(value) for value in arguments)
            text = await connection.fetchval(f"explain (format json) execute asked ({values})")
        finally:
            await connection.execute("deallocate asked")
    return orjson.loads(text)[0]["Plan"]


def _sql_type(name: str) -> str:
    return {"text[]": "text[]", "_text": "text[]", "varchar": "text"}.get(name, name)


def _literal(value: Any) -> str:
    if isinstance(value, list):
        return "array[" + ", ".join(_literal(each) for each in value) + "]::text[]"
    return "null" if value is None else str(value) if isinstance(value, int) else f"'{value}'"


def indexes(plan: Any) -> dict[str, str]:
    """The indexes that a plan reads, with what each is asked for."""
    found = {plan["Index Name"]: str(plan.get("Index Cond"))} if "Index Name" in plan else {}
    for child in plan.get("Plans", []):
        found |= indexes(child)
    return found


@pytest.mark.parametrize(
    ("statement", "index", "column"),
    [("by_phones", "contacts_phone", "phone"), ("by_external_ids", "contacts_external_id", "external_id")],
)
async def test_contacts_are_looked_up_one_by_one_without_statistics(
    database: Database, statement: str, index: str, column: str
) -> None:
    plan = await plan_of(database, getattr(contacts.SQL, statement), "org_1", "test", ["a", "b"])
    found = indexes(plan)
    assert list(found) == [index]
    assert column in found[index]


async def test_who_has_what_new_contacts_were_left_out_for_is_looked_up_one_by_one_without_statistics(
    database: Database,
) -> None:
    plan = await plan_of(database, contacts.SQL.holders, ["org_1"], ["test"], ["cnt_1"], ["a"], ["b"])
    found = indexes(plan)
    assert found.keys() == HOLDERS.keys()
    assert [index for index, column in HOLDERS.items() if column not in found[index]] == []


async def test_companies_are_listed_along_their_names(database: Database) -> None:
    plan = await plan_of(database, companies.SQL.page, "org_1", "test", None, None, None, 25, 0)
    assert "companies_name" in indexes(plan)


async def test_open_imports_are_found_among_many_that_are_through(database: Database) -> None:
    plan = await plan_of(database, contact_imports.SQL.open, 100)
    assert list(indexes(plan)) == ["contact_imports_open"]


async def test_the_registry_is_looked_into_along_its_key(database: Database) -> None:
    plan = await plan_of(database, contact_imports.SQL.anyone_opted_out, "org_1", "test")
    assert list(indexes(plan)) == ["opt_outs_pkey"]
