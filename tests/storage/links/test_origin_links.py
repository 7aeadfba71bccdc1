"""Origin links and their codes are found along their indexes, also by plans from before the first of them (C27.4)."""

import pytest
from tests.plans import indexes, plan_for_any, whole_tables

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
