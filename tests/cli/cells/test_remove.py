"""`recado cells remove`, and the undoing of a move whose target is lost: nothing is given up that is still there."""

import asyncio

import pytest
from tests.cli.cells.test_command import killed_as_it_ends, killed_while_it_copies, mapped
from tests.two_cells import Cells, fetch
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.entry.followed_map import FollowedMap
from recado.storage.cells.holding import connect

NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"


async def names(cells: Cells) -> list[str]:
    session = await connect(cells.urls["RECADO_CELLS_DATABASE_URL"])
    rows = await session.fetch("select name from recado_cells.cells order by 1")
    await session.close()
    return [row["name"] for row in rows]


async def refused(cells: Cells, *arguments: str) -> str:
    return await asyncio.to_thread(cells.refused, *arguments)


async def test_a_cell_leaves_the_map_when_it_is_empty_or_lost_and_not_before(cells: Cells) -> None:
    organization_id = await mapped(cells)
    later = await asyncio.to_thread(cells.service("b").command, "org", "create", "--name", "Later", "--json")
    assert f"b has 1 organization, such as {later['id']}" in await refused(cells, "remove", "b")
    assert "there is no cell 'c'" in await refused(cells, "remove", "c")
    assert "say --confirm b, too" in await refused(cells, "remove", "b", "--lost")
    assert "that is not 'b'" in await refused(cells, "remove", "b", "--lost", "--confirm", "a")
    assert "the database of CELL_B answers: it is not lost" in await refused(
        cells, "remove", "b", "--lost", "--confirm", "b"
    )
    url, cells.urls["CELL_B"] = cells.urls["CELL_B"], NOWHERE
    assert "the database of CELL_B cannot be reached" in await refused(cells, "remove", "b")
    gone = await asyncio.to_thread(cells.said, "remove", "b", "--lost", "--confirm", "b")
    assert gone == {"removed": "b", "lost": [later["id"]]}
    listed = await asyncio.to_thread(cells.said, "list")
    assert [each["id"] for each in listed["organizations"]] == [organization_id]

    cells.urls["CELL_B"] = url
    await fetch(cells, "b", "delete from organizations where id = $1", later["id"])
    again = ("add", "b", "--database-from", "CELL_B", "--url", "http://b")
    await asyncio.to_thread(cells.said, *again)
    assert await asyncio.to_thread(cells.said, "remove", "b") == {"removed": "b", "lost": []}
    assert await names(cells) == ["a"]


async def test_a_move_whose_target_is_lost_is_undone_and_one_that_comes_back_is_told_of(cells: Cells) -> None:
    organization_id = await mapped(cells)
    await killed_while_it_copies(cells, organization_id)
    undo = ("move", organization_id, "--undo")
    assert "--target-lost belongs to --undo" in await refused(cells, *undo[:2], "--to", "b", "--target-lost")
    assert f"{organization_id} is on its way to b" in await refused(cells, "remove", "b")
    assert "say --confirm NAME, too" in await refused(cells, *undo, "--target-lost")
    lost = (*undo, "--target-lost", "--confirm", "b")
    assert "answers: it is not lost" in await refused(cells, *lost)
    url, cells.urls["CELL_B"] = cells.urls["CELL_B"], NOWHERE
    assert "--undo --target-lost" in await refused(cells, "remove", "b", "--lost", "--confirm", "b")
    assert "the database of CELL_B cannot be reached" in await refused(cells, *undo)
    for name in ("a", organization_id, ""):
        assert f"on the way to b, and not to {name!r}: nothing was done" in await refused(cells, *lost[:-1], name)
    [row] = await fetch(cells, "a", "select moving from organizations")
    assert row["moving"]
    undone = await asyncio.to_thread(cells.said, *lost)
    assert undone["cell"] == "a"
    [row] = await fetch(cells, "a", "select status, moving from organizations")
    assert tuple(row) == ("active", False)
    assert len(await fetch(cells, "a", "select 1 from wallets where organization_id = $1", organization_id)) == 2

    # It was not lost, and had taken it.
    cells.urls["CELL_B"] = url
    rows = await fetch(cells, "a", "select * from organizations")
    session = await connect(url)
    await session.copy_records_to_table("organizations", records=[tuple(row) for row in rows])
    await session.close()
    listed = await asyncio.to_thread(cells.run, "list")
    assert f"b has {organization_id}, too, which a serves: stop the service" in listed.stderr


@pytest.mark.long
async def test_what_the_lost_cell_served_already_comes_back_as_it_left_only_when_that_is_given_up(
    cells: Cells,
) -> None:
    organization_id = await mapped(cells)
    await killed_as_it_ends(cells, organization_id)
    cells.urls["CELL_B"] = NOWHERE
    undo = ("move", organization_id, "--undo", "--target-lost", "--confirm", "b")
    assert "b serves it already, as the map says" in await refused(cells, *undo)
    gone = await asyncio.to_thread(cells.said, "remove", "b", "--lost", "--confirm", "b")
    assert gone["lost"] == [organization_id]
    assert (await asyncio.to_thread(cells.said, *undo))["cell"] == "a"
    [row] = await fetch(cells, "a", "select status, moving from organizations")
    assert tuple(row) == ("active", False)
    assert len(await fetch(cells, "a", "select 1 from wallets where organization_id = $1", organization_id)) == 2
    assert await fetch(cells, "a", "select 1 from pg_namespace where nspname like 'recado_move%'") == []


async def test_a_move_into_a_cell_that_was_removed_meanwhile_stands_nothing_still(cells: Cells) -> None:
    organization_id = await mapped(cells)
    session = await connect(cells.urls["RECADO_CELLS_DATABASE_URL"])
    # As the map is when the cell leaves it between the look of a move and its first word there.
    await session.execute(
        "create function recado_cells.gone() returns trigger language plpgsql as $$ begin"
        " delete from recado_cells.cells where name = 'b'; return new; end $$;"
        "create trigger gone before update on recado_cells.organizations for each row"
        " execute function recado_cells.gone()"
    )
    assert "the map has that cell no more" in await refused(cells, "move", organization_id, "--to", "b")
    [row] = await fetch(cells, "a", "select status, moving from organizations")
    assert tuple(row) == ("active", False)
    await session.close()


async def test_an_entry_knows_which_cells_left_the_map_and_none_when_it_cannot_read_it(cells: Cells) -> None:
    await asyncio.to_thread(cells.add_both)
    followed = FollowedMap(cells.urls["RECADO_CELLS_DATABASE_URL"], cells.urls, SystemClock())
    await followed.start()
    try:
        assert (sorted(followed.cells), followed.removed) == (["a", "b"], set())
        await asyncio.to_thread(cells.said, "remove", "b")
        await until(lambda: followed.removed == {"b"}, "it has read so")
        await asyncio.to_thread(cells.add, "b")
        await until(lambda: followed.removed == set(), "it has read that b is back")
        session = await connect(cells.urls["RECADO_CELLS_DATABASE_URL"])
        await session.execute("alter schema recado_cells rename to elsewhere")
        await session.close()
        await until(lambda: followed.is_old, "it cannot read the map")
        assert (sorted(followed.cells), followed.removed) == (["a", "b"], set())
    finally:
        await followed.stop()
    assert followed.removed == set()  # an entry that ends takes nothing with it
