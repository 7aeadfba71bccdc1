"""The map of cells as the entry follows it: read each second, and kept as it was while its database is away."""

import asyncio
from collections.abc import Mapping
from typing import Final

import asyncpg
import structlog

from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.entry.asked_cell import AskedCell
from recado.storage.cells import holding
from recado.storage.cells.cell_map import CellMap
from recado.storage.cells.holding import Session

LOOK_EVERY: Final = 1.0  # seconds
PATIENCE: Final = 3.0  # seconds of one look
OLD_AFTER: Final = 5.0  # seconds: from then on nobody knows whether an organization is on its way

log = structlog.get_logger(__name__)


class MapNotRead(Exception):
    """The map cannot be read at the start; the text says of its database why."""


class FollowedMap:
    """A service (`start`, `stop`). `cells`: by name. `removed`: those that one reading had, and a later one had not."""

    def __init__(self, address: str, variables: Mapping[str, str], clock: Clock) -> None:
        """`variables`: by the names that the map has, the addresses of the cells' databases."""
        self.cells: dict[str, AskedCell] = {}
        self.removed: set[str] = set()
        self._address = address
        self._variables = variables
        self._clock = clock
        self._session: Session | None = None
        self._moving = False
        self._read_at = -OLD_AFTER
        self._looks = Periodic("map of cells", LOOK_EVERY, self._look, clock, ceiling=LOOK_EVERY)

    async def start(self) -> None:
        """Raises `MapNotRead`."""
        try:
            await self._read()
        except asyncpg.UndefinedTableError:
            await self.stop()
            raise MapNotRead("has no map yet: 'recado cells add' makes it") from None
        except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            await self.stop()
            raise MapNotRead(f"cannot be reached ({type(error).__name__})") from None
        await self._looks.start()

    async def stop(self) -> None:
        await self._looks.stop()
        if self._session is not None:
            self._session.terminate()
        for cell in self.cells.values():
            await cell.stop()
        self.cells.clear()

    @property
    def may_move(self) -> bool:
        """Whether an organization may be on its way now, so that neither cell has all of it."""
        return self._moving or self.is_old

    @property
    def is_old(self) -> bool:
        """Whether it was not read lately: its database is away."""
        return self._clock.monotonic() - self._read_at > OLD_AFTER

    async def _look(self) -> None:
        try:
            await self._read()
        except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            if self._session is not None:
                self._session.terminate()
                self._session = None
                log.warning("map_away", error=type(error).__name__)

    async def _read(self) -> None:
        now = self._clock.monotonic()
        async with asyncio.timeout(PATIENCE):
            if self._session is None or self._session.is_closed():
                self._session = await holding.connect(self._address)
            read = CellMap(self._session)
            found = {cell.name: cell for cell in await read.cells()}
            moving = await read.any_moving()
        for name, cell in found.items():
            known = self.cells.get(name)
            if known is None or known.cell != cell:
                made = AskedCell(cell, self._variables.get(cell.database_from), self._clock)
                await made.start()
                self.cells[name] = made
                if known is not None:
                    await known.stop()
        self.removed -= found.keys()
        for name in self.cells.keys() - found.keys():
            self.removed.add(name)
            await self.cells.pop(name).stop()
        self._moving, self._read_at = moving, now
