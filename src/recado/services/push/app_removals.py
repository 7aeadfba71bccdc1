"""Removes the devices of deleted push apps, of which there may be millions, in blocks and whatever crashes (C22.4)."""

from typing import Final

from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.storage.core.connections.postgres import Database
from recado.storage.push import apps

EVERY: Final = 60.0  # seconds
AT_ONCE: Final = 50  # apps of a round, a block of each in turn


class PushAppRemovals:
    """A service (`start`, `stop`); `hint` says that an app was deleted."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._worker = Periodic("removal of push apps", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    def hint(self) -> None:
        self._worker.hint()

    async def work(self) -> None:
        """All that is left."""
        while found := await apps.removals(self._db, AT_ONCE):
            for each in found:
                async with self._db.transaction() as connection:
                    await apps.remove_devices(connection, each)
