"""Whom each cell has, as its database says now. One that is away holds up nobody: the map has what it said last."""

import asyncio
from dataclasses import dataclass
from typing import Final

from recado.cli.cells.databases import members_of, session_of
from recado.cli.errors import CommandError
from recado.storage.cells.cell_map import Cell, CellMap, CellMember
from recado.storage.core.connections.failures import collided, connection_lost

LOOKS_WITHIN: Final = 15.0  # seconds, of which ten may pass until the connection is there


@dataclass(frozen=True, slots=True)
class CellLook:
    """`found`: whom it has; None: it is away, and `why` says how."""

    cell: Cell
    found: list[CellMember] | None
    why: str = ""

    @property
    def away(self) -> bool:
        return self.found is None


async def look_at_all(cell_map: CellMap) -> list[CellLook]:
    """Each cell with whom it has, which completes the map."""
    looks = await asyncio.gather(*(_look_at(cell) for cell in await cell_map.cells()))
    for look in looks:
        if look.found is not None:
            await cell_map.know(look.cell, look.found)
    return looks


async def _look_at(cell: Cell) -> CellLook:
    try:
        async with asyncio.timeout(LOOKS_WITHIN), session_of(cell) as session:
            return CellLook(cell, await members_of(cell, session))
    except CommandError as refused:
        return CellLook(cell, None, str(refused))
    except TimeoutError:
        return CellLook(cell, None, f"the database of {cell.database_from} does not answer in time")
    except Exception as error:
        if collided(error):
            return CellLook(cell, None, f"a table in the database of {cell.database_from} is locked by somebody else")
        if not connection_lost(error):
            raise
        return CellLook(cell, None, f"the connection to the database of {cell.database_from} was lost")
