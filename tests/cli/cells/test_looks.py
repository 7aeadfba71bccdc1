"""A cell whose database does not say whom it has keeps nobody from the others."""

import pytest
from tests.two_cells import Cells, session_in

from recado.cli.cells import looks
from recado.cli.cells.databases import opened_map
from recado.storage.cells import holding
from recado.storage.cells.cell_map import Cell


async def test_a_database_that_takes_a_connection_and_says_nothing_is_away(
    cells: Cells, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, url in cells.urls.items():
        monkeypatch.setenv(variable, url)
    monkeypatch.setattr(looks, "LOOKS_WITHIN", 0.5)
    async with opened_map() as cell_map, session_in(cells, "b") as session, session.transaction():
        await session.execute("lock table organizations")
        await cell_map.add(Cell("b", "CELL_B", "http://b.example", None))
        [look] = await looks.look_at_all(cell_map)
    assert (look.away, look.why) == (True, "the database of CELL_B does not answer in time")


async def test_a_database_whose_table_is_locked_is_away(cells: Cells, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, url in cells.urls.items():
        monkeypatch.setenv(variable, url)
    monkeypatch.setitem(holding._SETTINGS, "lock_timeout", "50ms")
    async with opened_map() as cell_map, session_in(cells, "b") as session, session.transaction():
        await session.execute("lock table organizations")
        await cell_map.add(Cell("b", "CELL_B", "http://b.example", None))
        [look] = await looks.look_at_all(cell_map)
    assert (look.away, look.why) == (True, "a table in the database of CELL_B is locked by somebody else")
