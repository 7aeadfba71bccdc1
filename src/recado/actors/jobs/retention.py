"""Once a day: what has been kept for as long as it is kept goes (C32), by a clock that something speaks for."""

from datetime import timedelta

import structlog

from recado.actors.jobs.clock_confirmation import ClockConfirmation
from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.storage.access import organizations
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep import retention
from recado.storage.events import customer_events
from recado.storage.journeys import execution_retention
from recado.storage.push import push_retention

EVERY = 86_400.0  # seconds
FAR_BEHIND = timedelta(days=31)

log = structlog.get_logger()


class Retention:
    """A service. Each part goes on where it was broken off, and can be repeated without harm."""

    def __init__(self, db: Database, *, clock: Clock, confirmation: ClockConfirmation) -> None:
        self._db = db
        self._clock = clock
        self._confirmation = confirmation
        self._daily = Periodic("retention", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._daily.start()

    async def stop(self) -> None:
        await self._daily.stop()

    async def work(self) -> None:
        """One round."""
        now, until = self._clock.now(), await self._confirmation.confirmed_until()
        if until is None:
            return
        if now - until > FAR_BEHIND:
            log.error("retention_held_back", now=now.isoformat(), until=until.isoformat())
        await retention.purge_windows(self._db, until)
        await retention.purge_minutes(self._db, until)
        await retention.purge_reached(self._db, until)
        for organization in await organizations.all_organizations(self._db):
            await retention.purge_audit(self._db, organization.id, until)
            for env in ENVIRONMENTS:
                await customer_events.purge(self._db, organization.id, env, until)
                await execution_retention.purge(self._db.hot, organization.id, env, until)
                await push_retention.clear_contents(self._db, organization.id, env, until)
                await push_retention.purge(self._db, organization.id, env, until)
        await retention.clear_contents(self._db, until)
        await retention.drop_months(self._db, until)
