"""Plain records: their statements fit the schema, and a change writes what differs, no more."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recado.storage.access.accounts import ACCOUNTS
from recado.storage.access.api_keys import API_KEYS
from recado.storage.access.organizations import ORGANIZATIONS
from recado.storage.audience.lists import LISTS, StaticList
from recado.storage.audience.segments import SEGMENTS
from recado.storage.contacts.companies import COMPANIES
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.sql import Queries
from recado.storage.core.statements.tables import Table
from recado.storage.senders.numbers import NUMBERS, Number
from recado.storage.templates.templates import TEMPLATES
from recado.storage.webhooks.webhooks import SUBSCRIPTIONS

NOW = datetime(2031, 6, 15, 12, tzinfo=UTC)
TABLES: list[Table[Any]] = [
    ACCOUNTS, API_KEYS, COMPANIES, LISTS, NUMBERS, ORGANIZATIONS, SEGMENTS, SUBSCRIPTIONS, TEMPLATES,
]  # fmt: skip
LIST = StaticList(organization_id="org_1", env="test", id="lst_1", name="Customers", updated_at=NOW)
NUMBER = Number(
    organization_id="org_1", id="num_1", env="test", phone_number_id="p", business_account_id="b",
    display_phone="+15550102030", updated_at=NOW,
)  # fmt: skip


async def made(database: Database) -> StaticList:
    async with database.transaction() as connection:
        return await LISTS.insert(connection, LIST)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.sql._aggregate)
async def test_the_statements_of_a_table_fit_the_schema(database: Database, table: Table[Any]) -> None:
    async with database.acquire() as connection:
        for name in ("by_id", "by_id_locked", "insert", "delete", "page", "page_count"):
            await connection.prepare(getattr(table.sql, name))


def test_a_statement_of_the_aggregate_goes_before_the_plain_one() -> None:
    own = Queries("lists", {"delete": "select 1", "matches": "select * from elsewhere where owner = $1 and part = $2"})
    table = Table("static_lists", StaticList, "list", own=own)
    assert table.sql.delete == "select 1"
    assert table.sql.by_id == "select * from static_lists where organization_id = $1 and env = $2 and id = $3"
    assert "from elsewhere where owner = $1 and part = $2" in table.sql.page
    assert "limit $4 offset $5" in table.sql.page


async def test_a_change_writes_what_differs_and_nothing_else(database: Database) -> None:
    before = await made(database)
    await database.execute("update static_lists set size = 5")
    after = await LISTS.save(database, before, replace(before, description="Of this year"), NOW + timedelta(1))
    assert (after.description, after.size, after.revision, after.updated_at) == (
        "Of this year", 5, 2, NOW + timedelta(1),
    )  # fmt: skip


async def test_no_difference_is_no_change(database: Database) -> None:
    before = await made(database)
    assert await LISTS.save(database, before, replace(before), NOW + timedelta(1)) is before
    assert await LISTS.get(database, "org_1", "test", "lst_1") == before


async def test_what_no_caller_sees_raises_no_revision(database: Database) -> None:
    async with database.transaction() as connection:
        before = await NUMBERS.insert(connection, NUMBER)
    later = NOW + timedelta(1)
    asked = await NUMBERS.save(database, before, replace(before, verify_at=later), later)
    assert (asked.verify_at, asked.revision, asked.updated_at) == (later, 1, NOW)
    paced = await NUMBERS.save(database, asked, replace(asked, per_second=7, verify_at=None), later)
    assert (paced.verify_at, paced.per_second, paced.revision, paced.updated_at) == (None, 7, 2, later)


async def test_a_record_that_is_marked_as_deleted_is_not_found(database: Database) -> None:
    async with database.transaction() as connection:
        before = await NUMBERS.insert(connection, NUMBER)
    await NUMBERS.save(database, before, replace(before, deleted_at=NOW), NOW)
    assert await NUMBERS.get(database, "org_1", "test", "num_1") is None
    assert (await NUMBERS.list_page(database, "org_1", "test", limit=10)).items == []
