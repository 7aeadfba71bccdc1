"""A company's contacts are found at once, also on a table that nobody has counted yet."""

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.plans import indexes, plan_for_any, plan_of, whole_tables

from recado.storage.contacts import companies
from recado.storage.core.connections.postgres import Database

COMPANY = ("org_7", "test", "emp_1")
MANY = companies.RELEASED_AT_ONCE
STATEMENTS: dict[str, tuple[Any, ...]] = {
    companies.SQL.has_more_contacts: (*COMPANY, MANY),
    companies.SQL.release_contacts: (*COMPANY, datetime(2026, 3, 1, tzinfo=UTC), MANY),
}
FILL = """
insert into contacts (organization_id, env, id, phone, phone_hash, source, company_id, opt_in_status, search,
        updated_at)
    select 'org_7', 'test', 'cnt_' || lpad(i::text, 21, '0'), '+55119' || lpad(i::text, 8, '0'), '', 'api',
        'emp_' || i % 3, 'unknown', '', now() + i * interval '1 second'
    from generate_series(1, 20000) i;
"""


@pytest.mark.parametrize("sql", STATEMENTS, ids=["has_more_contacts", "release_contacts"])
async def test_contacts_of_a_company_are_found_along_their_index(database: Database, sql: str) -> None:
    await database.execute(FILL + "analyze contacts")
    for found in (await plan_for_any(database, sql), await plan_of(database, sql, STATEMENTS[sql])):
        assert (indexes(found), whole_tables(found)) == ({"contacts_company"}, set())
        assert [node for node in found if "Index Cond" in node and "company_id" not in node["Index Cond"]] == []


@pytest.mark.parametrize("before", ["", FILL], ids=["empty", "full"])
@pytest.mark.parametrize("sql", STATEMENTS, ids=["has_more_contacts", "release_contacts"])
async def test_contacts_of_a_company_are_sought_once_for_all_without_statistics(
    database: Database, sql: str, before: str
) -> None:
    await database.execute(f"alter table contacts set (autovacuum_enabled = off); {before}")
    for found in (await plan_for_any(database, sql), await plan_of(database, sql, STATEMENTS[sql])):
        assert {"Nested Loop", "Hash Join", "Merge Join"} & {node["Node Type"] for node in found} == set()
        assert indexes(found)
        assert whole_tables(found) == set()
