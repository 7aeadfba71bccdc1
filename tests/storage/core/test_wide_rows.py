"""How much one statement brings of a page of wide rows (C31)."""

import secrets
from collections.abc import Sequence
from typing import Any

import pytest
from tests.people import insert_people

from recado.storage.contacts import contact_reads
from recado.storage.contacts.contact_reads import ContactFilter
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.wide_rows import READ_BYTES, bounded, rows_of

KEY = ("org_1", "test")
PAGE = bounded("select id, content, more from wide order by id limit $1", ("content", "more"), "p.id")


async def read(db: Database, contents: Sequence[str], limit: int = 200) -> Any:
    """What is read at once of rows with these contents."""
    await db.execute("create table if not exists wide (id integer, content text, more text)")
    await db.execute("truncate wide")
    await db.execute("insert into wide select n, c, null from unnest($1::text[]) with ordinality u (c, n)", contents)
    return await db.fetch(PAGE, limit)


@pytest.mark.parametrize(("size", "rows"), [(10, 40), (150_000, 4), (READ_BYTES - 10, 2), (3_000_000, 1)])
async def test_rows_come_until_they_are_enough_for_one_read(database: Database, size: int, rows: int) -> None:
    found = await read(database, [secrets.token_urlsafe(size)[:size] for _ in range(40 if size < 1000 else 6)])
    assert [row["id"] for row in found] == list(range(1, rows + 1))
    assert rows_of(found) == (40 if size < 1000 else 6)


async def test_what_is_packed_counts_as_what_it_may_become(database: Database) -> None:
    found = await read(database, ["x" * 200_000] * 60)
    assert 1 <= len(found) < 60
    assert sum(len(row["content"]) for row in found) < 4 * READ_BYTES


async def test_an_empty_page_has_no_rows(database: Database) -> None:
    assert rows_of(await read(database, [])) == 0
    assert len(await read(database, ["a", "b", "c"], limit=2)) == 2


async def test_a_page_of_contacts_is_read_in_parts_with_its_total_and_goes_on_behind_the_last(
    database: Database,
) -> None:
    large = [{"attributes": {"a": secrets.token_urlsafe(150_000)}} for _ in range(9)]
    ids = await insert_people(database, *KEY, large)
    wanted = ContactFilter(organization_id=KEY[0], env=KEY[1])
    first = await contact_reads.list_page(database, wanted, limit=9)
    assert [contact.id for contact in first.items] == ids[:-4:-1]
    assert (first.total, first.more) == (9, True)
    after = contact_reads.position_of(wanted, first.items[-1])
    second = await contact_reads.list_page(database, wanted, limit=2, after=after, counted=False)
    assert [contact.id for contact in second.items] == ids[-4:-6:-1]
