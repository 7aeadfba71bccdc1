"""`recado cells remove`: takes a cell out of the map, an empty one, or one whose database is lost for good."""

import sys
from typing import Annotated, Final

import asyncpg
import typer

from recado.cli.cells.databases import members_of, must_be_lost, opened_map, session_of
from recado.cli.common import Json, print_json, run_async
from recado.cli.errors import CommandError
from recado.domain.core.counting import counted
from recado.storage.cells.cell_map import Cell, CellMap

EPILOG: Final = "Example: recado cells remove b"


def remove(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The cell: 'recado cells list' shows all.")],
    lost: Annotated[
        bool,
        typer.Option(
            "--lost",
            help="Its database is gone for good, and no backup of it will be started as this cell. Its organizations"
            " leave the map with it: their keys are answered with 401, their links with 404, and what providers report"
            " of them is taken, and reaches nobody.",
        ),
    ] = False,
    confirmed: Annotated[
        str | None,
        typer.Option("--confirm", metavar="NAME", help="The name again, instead of typing it.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Take a cell out of the map. No organization may live in it, or be on its way to it.

    Stop its service first; where Ray runs it ('serve --cluster') it ends by itself. Each running entry follows within a
    second.
    """
    if lost and (_typed(name) if confirmed is None else confirmed) != name:
        raise CommandError(f"that is not {name!r}: nothing was done")
    gone = run_async(_lose(name) if lost else _remove(name))
    if as_json:
        print_json({"removed": name, "lost": gone})
        return
    print(f"{name} is out of the map" + (f", and {counted(len(gone), 'organization')} with it" if lost else ""))
    for organization_id in gone:
        print(f"  {organization_id}")


def _typed(name: str) -> str:
    if not sys.stdin.isatty():
        raise CommandError(f"--lost gives up the organizations of {name}: say --confirm {name}, too")
    return str(typer.prompt(f"All organizations of {name} are given up. Type its name", err=True))


async def _remove(name: str) -> list[str]:
    async with opened_map() as cell_map:
        cell = await _cell(cell_map, name)
        async with session_of(cell) as session:
            found = await members_of(cell, session)
            await cell_map.know(cell, found)
        for place in await cell_map.places():
            if place.moving_to == name:
                raise CommandError(
                    f"{place.organization_id} is on its way to {name}: let that move end, or undo it with --undo"
                )
            if place.left_cell == name:
                raise CommandError(
                    f"{name} has remains of {place.organization_id}: give its move to {place.cell} again first"
                )
        if found:
            raise CommandError(
                f"{name} has {counted(len(found), 'organization')}, such as {found[0].id}: move each to another cell"
                " first, with 'recado cells move'"
            )
        await _removed(cell_map, name)
        return []


async def _lose(name: str) -> list[str]:
    async with opened_map() as cell_map:
        await must_be_lost(await _cell(cell_map, name))
        for place in await cell_map.places():
            if place.moving_to == name:
                raise CommandError(
                    f"{place.organization_id} was on its way to {name}: first take it back, with"
                    f" 'recado cells move {place.organization_id} --undo --target-lost'"
                )
        return await _removed(cell_map, name, lost=True)


async def _cell(cell_map: CellMap, name: str) -> Cell:
    for cell in await cell_map.cells():
        if cell.name == name:
            return cell
    raise CommandError(f"there is no cell {name!r}: 'recado cells list' shows them")


async def _removed(cell_map: CellMap, name: str, *, lost: bool = False) -> list[str]:
    try:
        return await cell_map.remove(name, lost=lost)
    except asyncpg.ForeignKeyViolationError:
        raise CommandError(f"a move to or from {name} began meanwhile: nothing was done") from None
