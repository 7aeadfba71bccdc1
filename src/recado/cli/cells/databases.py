"""The databases that `recado cells` opens: that of the map, and those of the cells."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

import asyncpg

from recado.cli.errors import CommandError
from recado.storage.cells import holding
from recado.storage.cells.cell_map import Cell, CellMap, CellMember, members
from recado.storage.cells.holding import Session

MAP: Final = "RECADO_CELLS_DATABASE_URL"
"""The environment variable that holds the address of the control database."""

CLOSES_WITHIN: Final = 5.0  # seconds that a server which may stand still has to take leave


class CellAway(CommandError):
    """Nobody answers at the address of a cell's database, or not with that database."""


@asynccontextmanager
async def opened_map() -> AsyncIterator[CellMap]:
    async with _connected(MAP) as session:
        cell_map = CellMap(session)
        await cell_map.make()
        yield cell_map


@asynccontextmanager
async def session_of(cell: Cell) -> AsyncIterator[Session]:
    """Raises `CellAway`, or `CommandError` where the database answers, and does not let this command in."""
    async with _connected(cell.database_from) as session:
        yield session


async def members_of(cell: Cell, session: Session) -> list[CellMember]:
    try:
        return await members(session)
    except (asyncpg.UndefinedTableError, asyncpg.UndefinedColumnError):
        raise CommandError(
            f"the database of {cell.database_from} has no tables of this version:"
            f" 'RECADO_DATABASE_URL=${cell.database_from} recado migrate' makes them"
        ) from None


async def must_be_lost(cell: Cell) -> None:
    """Pass where the database cannot be reached: whether it is lost for good says whoever gives the command."""
    try:
        async with session_of(cell):
            pass
    except CellAway:
        return
    raise CommandError(f"the database of {cell.database_from} answers: it is not lost")


@asynccontextmanager
async def _connected(variable: str) -> AsyncIterator[Session]:
    address = os.environ.get(variable, "")
    if not address:
        raise CommandError(
            f"{variable} is not set: it holds the address of a database, postgresql://user:password@host/name"
        )
    try:
        session = await holding.connect(address)
    except (
        OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, ValueError
    ) as error:  # fmt: skip
        kind = CellAway if _nobody_answers(error) else CommandError
        raise kind(f"the database of {variable} cannot be reached ({type(error).__name__})") from None
    try:
        yield session
    finally:
        with suppress(TimeoutError):  # it is closed all the same
            async with asyncio.timeout(CLOSES_WITHIN):
                await session.close()


def _nobody_answers(error: Exception) -> bool:
    """Whether there is nobody at the address, or not with that database. Who refuses TLS, or a certificate, is there;
    and who may not look has not seen that nobody is.
    """
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return True
    there = isinstance(error, ssl.SSLError | PermissionError) or "rejected SSL" in str(error)  # asyncpg has no kind
    return isinstance(error, OSError) and not there
