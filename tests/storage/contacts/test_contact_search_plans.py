"""The plans of searches for words inside words, at the sizes and the statistics of a million contacts (C12.1)."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from bench.contacts import make_contacts
from tests.plans import grow, indexes, plan_for_any, plan_of, whole_tables
from tests.storage.conftest import opened, read_only

from recado.domain.contacts.contact_search import Inside
from recado.storage.contacts import contact_reads
from recado.storage.contacts.contact_reads import ContactFilter
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import migrate

ORG, ENV = "org_7", "test"
MILLION = 1_000_000
MADE = 10_000


@pytest.fixture(scope="module")
def prepared(system_postgres: dict[str, Any]) -> Iterator[dict[str, Any]]:
    async def fill(database: Database) -> None:
        await migrate(database)
        async with database.acquire() as connection:
            await make_contacts(connection, ORG, MADE)
        # Only a superuser can tell the planner how large tables are.
        found = await database.fetchrow(
            "select rolname, current_database() from pg_roles where rolsuper and rolcanlogin limit 1"
        )
        assert found is not None
        async with opened({**system_postgres, "user": found[0], "database": found[1]}) as superuser:
            await grow(superuser, "contacts", MILLION)

    with read_only(system_postgres, fill, "") as arguments:
        yield arguments


@pytest.fixture
async def million(prepared: dict[str, Any]) -> AsyncIterator[Database]:
    """A million contacts on a server with pg_trgm; statements are planned and not run."""
    async with opened(prepared) as db:
        yield db


def wanted(**fields: Any) -> ContactFilter:
    return ContactFilter(organization_id=ORG, env=ENV, inside=Inside.ALL, **fields)


@pytest.mark.parametrize(
    ("q", "found"),
    [
        ("obrenome123", {"contacts_search_inside"}),
        ("ustomer777", {"contacts_search_inside"}),
        ("ome123 ustomer7", {"contacts_search_inside"}),
        ("xyz", {"contacts_search_inside"}),
        ("0077", {"contacts_search_inside", "contacts_search"}),
        ("ome123 0077", {"contacts_search_inside"}),
        ("+55 11 90000-77", {"contacts_search"}),
        ("xy", {"contacts_search"}),
    ],
)
async def test_a_search_is_answered_by_the_indexes_of_its_words(million: Database, q: str, found: set[str]) -> None:
    sql, arguments = contact_reads.search_query(wanted(q=q), limit=51)
    for plan in (await plan_of(million, sql, arguments), await plan_for_any(million, sql)):
        assert set() < indexes(plan) - {"contacts_pkey"} <= {"contacts_search_inside", "contacts_search"}
        assert whole_tables(plan) == set()
    assert found <= indexes(await plan_of(million, sql, arguments))


async def test_what_many_match_is_read_along_the_order_of_the_list(million: Database) -> None:
    for q in ("obrenome", "obrenome 9000"):
        plan = await plan_of(million, *contact_reads.page_query(wanted(q=q), limit=51))
        assert (indexes(plan), whole_tables(plan)) == ({"contacts_pkey"}, set()), q
