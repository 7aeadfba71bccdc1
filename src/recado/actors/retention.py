"""Once a day: what has been kept for as long as it is kept goes (C32)."""

from recado.domain.clock import Clock
from recado.engine.periodic import Periodic
from recado.storage import organizations, retention
from recado.storage.postgres import Database

EVERY = 86_400.0  # seconds


class Retention:
    """A service. Each part goes on where it was broken off, and can be repeated without harm."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._daily = Periodic("retention", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._daily.start()

    async def stop(self) -> None:
        await self._daily.stop()

    async def work(self) -> None:
        """One round."""
        now = self._clock.now()
        await retention.purge_windows(self._db, now)
        await retention.purge_minutes(self._db, now)
        for organization in await organizations.all_organizations(self._db):
            await retention.purge_audit(self._db, organization.id, now)
        await retention.clear_contents(self._db, now)
        await retention.drop_months(self._db, now)
