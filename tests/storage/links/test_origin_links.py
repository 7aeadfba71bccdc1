"""Origin links and their codes are found along their indexes, also by plans from before the first of them (C27.4)."""

import asyncio

import pytest
from tests.plans import indexes, plan_for_any, whole_tables
from tests.waiting import until_locked_out

from recado.storage.core.connections.postgres import Database
from recado.storage.links import origin_links


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("by_slug", "origin_links_by_slug"),
        ("count_clicks", "origin_links_pkey"),
        ("use_up", "origin_codes_pkey"),
        ("purge_codes", "origin_codes_by_age"),
    ],
)
async def test_links_and_codes_are_found_along_their_indexes(database: Database, name: str, index: str) -> None:
    found = await plan_for_any(database.hot, getattr(origin_links.SQL, name))
    assert not whole_tables(found)
    assert index in indexes(found)


LINKS = """
insert into origin_links (organization_id, env, id, name, number_id, text, fonte, slug, updated_at)
select 'org_1', 'test', 'olk_' || n, 'x', 'num_1', 'Hi', 'x', n::text, now() from generate_series(1, 2) n
"""
LOCK = "select from origin_links where id = $1 for update"


async def test_two_processes_that_count_clicks_wait_for_each_other_in_one_order(database: Database) -> None:
    await database.execute(LINKS)
    clicked = (["org_1", "org_1"], ["test", "test"], ["olk_2", "olk_1"], [1, 1])
    async with database.transaction() as first:
        await first.execute(LOCK, "olk_1")
        counting = asyncio.ensure_future(database.hot.execute(origin_links.SQL.count_clicks, *clicked))
        await until_locked_out(database)
        assert await first.fetchval("select true from origin_links where id = 'olk_2' for update skip locked")
    await counting
    assert {row["clicks"] for row in await database.fetch("select clicks from origin_links")} == {1}
