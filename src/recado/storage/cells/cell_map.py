"""The map of cells: which there are, and in which each organization is. It stands in a small database of its own.

The cells themselves are the truth: the map is completed from them, and says besides who is on the way.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from recado.storage.cells.holding import Session
from recado.storage.core.statements.rows import reader
from recado.storage.core.statements.sql import load

SQL = load("cell_map")


@dataclass(frozen=True, slots=True)
class Cell:
    """`database_from`: the environment variable that holds the address of its database; `url`: of its service.

    `media`: its folder or its bucket; None: nobody said.
    """

    name: str
    database_from: str
    url: str
    media: str | None


@dataclass(frozen=True, slots=True)
class CellPlace:
    """The cell that serves an organization; `moving_to`: the one to which it is on the way.

    `left_cell`: the one that it has left, where that has remains of it still.
    """

    organization_id: str
    cell: str
    moving_to: str | None
    left_cell: str | None


@dataclass(frozen=True, slots=True)
class CellMember:
    """An organization as its cell has it."""

    id: str
    name: str
    moving: bool


_read_cell, _read_place, _read_member = reader(Cell), reader(CellPlace), reader(CellMember)


async def members(session: Session) -> list[CellMember]:
    """The organizations of a cell, oldest first."""
    return [_read_member(dict(row)) for row in await session.fetch(SQL.organizations)]


class CellMap:
    """The map, over a session of the control database."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def make(self) -> None:
        """Make its tables where they are not."""
        async with self._session.transaction():
            await self._session.execute("select pg_advisory_xact_lock(hashtextextended('recado cells', 0))")
            await self._session.execute(SQL.make)

    async def add(self, cell: Cell) -> None:
        """A new cell, or what has changed of one."""
        await self._session.execute(SQL.add, cell.name, cell.database_from, cell.url, cell.media)

    async def remove(self, name: str, *, lost: bool) -> list[str]:
        """Take a cell out; answers who went with it. `lost`: those whom it served, and what it had of others, do.

        Raises asyncpg's ForeignKeyViolationError where a place names it still.
        """
        async with self._session.transaction():
            gone = []
            if lost:
                gone = [row["organization_id"] for row in await self._session.fetch(SQL.lose, name)]
                await self._session.execute(SQL.lose_remains, name)
            await self._session.execute(SQL.remove, name)
        return sorted(gone)

    async def cells(self) -> list[Cell]:
        """By name."""
        return [_read_cell(dict(row)) for row in await self._session.fetch(SQL.cells)]

    async def know(self, cell: Cell, found: Sequence[CellMember]) -> None:
        """Write down whom the cell has. Who is on the way stays where the map has him until the move is at its end."""
        organization_ids = [each.id for each in found]
        async with self._session.transaction():
            await self._session.execute(SQL.forget, cell.name, organization_ids)
            await self._session.execute(SQL.know, cell.name, organization_ids)
            await self._session.execute(SQL.remains, cell.name, [each.id for each in found if each.moving])

    async def places(self) -> list[CellPlace]:
        """Of all organizations."""
        return [_read_place(dict(row)) for row in await self._session.fetch(SQL.places)]

    async def place(self, organization_id: str) -> CellPlace | None:
        """Of one."""
        rows = await self._session.fetch(SQL.place, organization_id)
        return _read_place(dict(rows[0])) if rows else None

    async def any_moving(self) -> bool:
        """Whether an organization is on its way, so that neither cell may have all of it."""
        return bool(await self._session.fetchval(SQL.any_moving))

    async def moving(self, organization_id: str, to: str | None) -> None:
        """A move to that cell begins; None: it was undone."""
        await self._session.execute(SQL.moving, organization_id, to)

    async def settle(self, organization_id: str, cell: str, *, left: str | None = None) -> None:
        """The organization is served there; `left`: where it was before, as long as that has remains of it."""
        await self._session.execute(SQL.settle, organization_id, cell, left)
