"""Archives versions that take no entries and have no execution under way (C9.11.3).

The turn that ends the last execution does so, too. Here are those that had none when another version took their place,
or that were paused then, and those whose last one ended in that very moment.
"""

from typing import Final

from recado.domain.core.clock import Clock
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import states

AT_ONCE: Final = 100  # versions in a look; the next one goes on there


class SupersededVersions:
    """Looks at them in turns: a look has an end however many wait for their last execution."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._after = states.FIRST

    async def look(self) -> None:
        """Archive those that are over among the next ones."""
        _, self._after = await states.archive_idle(self._db.hot, self._clock.now(), self._after, limit=AT_ONCE)
