"""What a request shows is found in a cell by an index, whatever it is."""

import pytest
from tests.plans import plan_for_any, whole_tables

from recado.storage.cells import whereabouts
from recado.storage.cells.whereabouts import Shows
from recado.storage.core.connections.postgres import Database


@pytest.mark.parametrize("shows", Shows)
async def test_nobody_looks_through_a_table_for_what_is_shown(database: Database, shows: Shows) -> None:
    found = await plan_for_any(database.hot, getattr(whereabouts.SQL, shows.value))
    assert whole_tables(found) == set()
    shown = [b"0" * 32] if shows in (Shows.KEY, Shows.SESSION, Shows.INVITE) else ["nothing"]
    assert await whereabouts.having(database, shows, shown) == {}
