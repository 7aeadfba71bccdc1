"""Where the service of each cell is: at the address that the map has, or wherever it runs at the moment."""

from collections.abc import Callable, Mapping, Set
from typing import Protocol

from recado.domain.core.clock import Clock
from recado.engine.service import Service
from recado.entry.asked_cell import AskedCell
from recado.storage.cells.cell_map import Cell


class CellList(Protocol):
    """Which cells there are. `cells`: by name. `may_move`: an organization may be on its way between two now; `is_old`:
    what is known of them was not read lately. `removed`: names of cells that were there before, in the life of this.
    """

    cells: dict[str, AskedCell]

    @property
    def removed(self) -> Set[str]: ...

    @property
    def is_old(self) -> bool: ...

    @property
    def may_move(self) -> bool: ...


class CellPlaces(Service, Protocol):
    """Says where services are; each request asks, so an answer is at hand."""

    def url(self, cell: Cell) -> str | None:
        """The address; None: it has none at the moment."""

    def not_reached(self, cell: Cell, url: str) -> None:
        """Nothing took a connection at the address that was said."""

    def tell_left(self, told: Callable[[str], None]) -> None:
        """Who is told of each address that a service has left, as it answers at another one."""


class MappedPlaces:
    """Those of the map, which stay."""

    async def start(self) -> None:
        return

    async def stop(self) -> None:
        return

    def url(self, cell: Cell) -> str | None:
        return cell.url

    def not_reached(self, cell: Cell, url: str) -> None:
        return

    def tell_left(self, told: Callable[[str], None]) -> None:
        return


class OnlyCell:
    """A list of one, without a map: a service (`start`, `stop`)."""

    may_move = False
    is_old = False
    removed: Set[str] = frozenset()

    def __init__(self, cell: Cell, variables: Mapping[str, str], clock: Clock) -> None:
        """`variables`: one of them has the address of its database."""
        self.cells = {cell.name: AskedCell(cell, variables.get(cell.database_from), clock)}

    async def start(self) -> None:
        for cell in self.cells.values():
            await cell.start()

    async def stop(self) -> None:
        for cell in self.cells.values():
            await cell.stop()
