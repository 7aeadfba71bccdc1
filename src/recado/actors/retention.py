"""Once a day: what has been kept for as long as it is kept goes (C32), by a clock that something speaks for."""

from datetime import datetime

import structlog

from recado.domain.clock import Clock
from recado.domain.retention import WITNESSED
from recado.engine.periodic import Periodic
from recado.storage import organizations, retention
from recado.storage.postgres import Database

EVERY = 86_400.0  # seconds

log = structlog.get_logger()


class Retention:
    """A service. Each part goes on where it was broken off, and can be repeated without harm."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._last: datetime | None = None  # a round that a witness spoke for
        self._daily = Periodic("retention", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._daily.start()

    async def stop(self) -> None:
        await self._daily.stop()

    async def work(self) -> None:
        """One round. A host's clock that runs months ahead must not cost months: then nothing goes."""
        now = self._clock.now()
        if await retention.reaches_back(self._db, now):
            if not await self._is_plausible(now):
                log.error("retention_skipped", now=now.isoformat(), reason="nothing was stored in the month before")
                return
            self._last = now
        await retention.purge_windows(self._db, now)
        await retention.purge_minutes(self._db, now)
        for organization in await organizations.all_organizations(self._db):
            await retention.purge_audit(self._db, organization.id, now)
        await retention.clear_contents(self._db, now)
        await retention.drop_months(self._db, now)

    async def _is_plausible(self, now: datetime) -> bool:
        """Whether this process was here within the month before, or the database tells of something then."""
        longest, shortest = WITNESSED
        if self._last is not None and now - self._last <= longest:
            return True
        return await retention.witnessed(self._db, now - longest, now - shortest)
