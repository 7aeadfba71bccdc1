"""What keeps the tables in shape: partitions made ahead, what is past its time removed (C32)."""

from datetime import datetime

from recado.actors.jobs.clock_confirmation import ClockConfirmation
from recado.actors.webhooks.webhooks import Webhooks
from recado.domain.core.clock import Clock
from recado.engine.periodic import Periodic
from recado.services.inbound.callbacks import Callbacks
from recado.storage.access import accounts, sessions
from recado.storage.billing import top_ups
from recado.storage.contacts import contact_consents, contact_fields, contact_imports
from recado.storage.core import idempotency
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.links import origin_links, tracked_links

HOUR = 3_600.0  # seconds


class Upkeep:
    """Runs every hour; each part can be repeated without harm."""

    def __init__(
        self, db: Database, *, clock: Clock, confirmation: ClockConfirmation, callbacks: Callbacks, webhooks: Webhooks
    ) -> None:
        self._db = db
        self._clock = clock
        self._confirmation = confirmation
        self._callbacks = callbacks
        self._webhooks = webhooks
        self._worker = Periodic("upkeep", HOUR, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """One round."""
        now = self._clock.now()
        await ensure_partitions(self._db, now)
        await top_ups.expire(self._db, now)
        await self._webhooks.tidy()
        if (until := await self._confirmation.confirmed_until()) is not None:
            await self._purge(until)
        # Last, because it reads whole tables: nothing waits for it.
        await contact_fields.refresh(self._db, now)

    async def _purge(self, until: datetime) -> None:
        """Remove what was past its time at a moment."""
        await idempotency.purge(self._db, until)
        await accounts.purge(self._db, until)
        await sessions.purge(self._db, until)
        await contact_consents.purge(self._db, until)
        await contact_imports.purge(self._db, until)
        await origin_links.purge(self._db, until)
        await tracked_links.purge(self._db, until)
        await self._callbacks.purge(until)
        await self._webhooks.purge(until)
