"""The database of one cell, as the entry asks it: whether the cell has what requests show.

It asks on two connections, for many requests with one statement, and waits a moment only: a cell whose database is away
is told so at once until the next try, a second later.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import asyncpg
import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.storage.cells import whereabouts
from recado.storage.cells.cell_map import Cell
from recado.storage.cells.whereabouts import Shown, Shows
from recado.storage.core.connections.batch import Batcher

CONNECTIONS: Final = 2
PATIENCE: Final = 2.0  # seconds of one try
ASKED_FOR: Final = 2.0  # seconds that a question waits for a database that is away
MOST_WAITING: Final = 2_000  # questions
AGAIN_AFTER: Final = 1.0  # seconds
_SETTINGS: Final = {
    "application_name": "recado cells serve",
    "default_transaction_read_only": "on",
    "statement_timeout": f"{PATIENCE:g}s",
}

log = structlog.get_logger(__name__)

Question = tuple[Shows, Shown, str]
"""What is shown, and by whom: callers take turns."""


class AskedCell:
    """A service (`start`, `stop`)."""

    def __init__(self, cell: Cell, address: str | None, clock: Clock) -> None:
        """`address`: of its database; None: this machine does not know it, so the cell is away."""
        self.cell = cell
        self.address = address
        self._monotonic = clock.monotonic
        self._pool: Any = None
        self._away_until = 0.0
        self.away = False
        self.answered = self.failed = 0  # questions
        self._questions: Batcher[Question, bool | None] = Batcher(
            f"cell {cell.name}", self._look, clock=clock, max_rows=100, max_queue=MOST_WAITING, concurrency=CONNECTIONS,
            deadline=ASKED_FOR, owner=lambda question: question[2],
        )  # fmt: skip

    async def start(self) -> None:
        if self.address is not None:
            try:
                self._pool = await asyncpg.create_pool(
                    dsn=self.address,
                    min_size=0,
                    max_size=CONNECTIONS,
                    timeout=PATIENCE,
                    command_timeout=PATIENCE,
                    server_settings=_SETTINGS,
                )
            except (ValueError, asyncpg.InterfaceError):  # it is no address
                log.error("cell_address_wrong", cell=self.cell.name, variable=self.cell.database_from)
        else:
            log.error("cell_address_missing", cell=self.cell.name, variable=self.cell.database_from)
        self.away = self._pool is None
        await self._questions.start()

    async def stop(self) -> None:
        await self._questions.stop()
        if self._pool is not None:
            self._pool.terminate()  # it only reads

    async def is_back(self) -> bool:
        """Whether the database answers now; while it is known to be away nobody waits for that."""
        try:
            await self.moving(Shows.ORGANIZATION, "", "")
        except Unavailable:
            return False
        return True

    async def moving(self, shows: Shows, shown: Shown, by: str) -> bool | None:
        """Whether the organization that has it here stands still for a move; None: no organization here has it.

        Raises `Unavailable` where the database does not say.
        """
        if self._pool is None or self._monotonic() < self._away_until:
            self.failed += 1
            raise Unavailable
        try:
            found = await self._questions.put((shows, shown, by))
        except (Unavailable, OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
            self.failed += 1
            self._away_until = self._monotonic() + AGAIN_AFTER
            if not self.away:
                self.away = True
                log.warning("cell_away", cell=self.cell.name, error=type(error).__name__)
            raise Unavailable from None
        self.answered += 1
        if self.away:
            self.away = False
            log.info("cell_back", cell=self.cell.name)
        return found

    async def _look(self, questions: Sequence[Question]) -> list[bool | None]:
        asked: dict[Shows, set[Shown]] = {}
        for shows, shown, _ in questions:
            asked.setdefault(shows, set()).add(shown)
        found: dict[Shows, Mapping[Shown, bool]] = {}
        async with self._pool.acquire(timeout=PATIENCE) as session:
            for shows, shown_here in asked.items():
                found[shows] = await whereabouts.having(session, shows, sorted(shown_here))
        return [found[shows].get(shown) for shows, shown, _ in questions]
