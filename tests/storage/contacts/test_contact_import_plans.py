"""The look-ups of an import take the index that has what is asked for, also on tables that nobody has counted yet."""

import pytest
from tests.plans import plan_for_any

from recado.storage.contacts import companies, contact_imports, contacts, opt_outs
from recado.storage.core.connections.postgres import Database

HOLDERS = {"contacts_phone": "phone", "contacts_external_id": "external_id"}


async def indexes(database: Database, sql: str) -> dict[str, str]:
    """The indexes that the plan for all values reads, with what each is asked for."""
    found = await plan_for_any(database.hot, sql)
    return {node["Index Name"]: str(node.get("Index Cond")) for node in found if "Index Name" in node}


@pytest.mark.parametrize(
    ("statement", "index", "column"),
    [("by_phones", "contacts_phone", "phone"), ("by_external_ids", "contacts_external_id", "external_id")],
)
async def test_contacts_are_looked_up_one_by_one_without_statistics(
    database: Database, statement: str, index: str, column: str
) -> None:
    found = await indexes(database, getattr(contacts.SQL, statement))
    assert list(found) == [index]
    assert column in found[index]


async def test_who_has_what_new_contacts_were_left_out_for_is_looked_up_one_by_one_without_statistics(
    database: Database,
) -> None:
    found = await indexes(database, contacts.SQL.holders)
    assert found.keys() == HOLDERS.keys()
    assert [index for index, column in HOLDERS.items() if column not in found[index]] == []


async def test_changed_contacts_are_found_one_by_one_without_statistics(database: Database) -> None:
    found = await indexes(database, contacts.SQL.save_contacts)
    assert list(found) == ["contacts_pkey"]
    assert ">= g.id" in found["contacts_pkey"]


async def test_contacts_that_are_held_as_they_are_are_found_one_by_one_without_statistics(database: Database) -> None:
    found = await indexes(database, contacts.SQL.hold_unchanged)
    assert list(found) == ["contacts_pkey"]
    assert ">= g.id" in found["contacts_pkey"]


async def test_companies_are_listed_along_their_names(database: Database) -> None:
    assert "companies_name" in await indexes(database, companies.PAGE)


async def test_open_imports_are_found_among_many_that_are_through(database: Database) -> None:
    assert list(await indexes(database, contact_imports.SQL.open)) == ["contact_imports_open"]


async def test_the_registry_is_looked_into_along_its_key(database: Database) -> None:
    assert list(await indexes(database, opt_outs.SQL.anyone_opted_out)) == ["opt_outs_pkey"]
