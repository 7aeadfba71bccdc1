"""What keeps the tables in shape: partitions made ahead, what is past its time removed (C32)."""

from recado.actors.callbacks import Callbacks
from recado.actors.webhooks import Webhooks
from recado.domain.clock import Clock
from recado.engine.periodic import Periodic
from recado.storage import accounts, contact_consents, contact_fields, contact_imports, idempotency, sessions, top_ups
from recado.storage.partitions import ensure_partitions
from recado.storage.postgres import Database

HOUR = 3_600.0  # seconds


class Upkeep:
    """Runs every hour; each part can be repeated without harm."""

    def __init__(self, db: Database, *, clock: Clock, callbacks: Callbacks, webhooks: Webhooks) -> None:
        self._db = db
        self._clock = clock
        self._callbacks = callbacks
        self._webhooks = webhooks
        self._worker = Periodic("upkeep", HOUR, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """One round."""
        await ensure_partitions(self._db, self._clock.now())
        await idempotency.purge(self._db, self._clock.now())
        await top_ups.expire(self._db, self._clock.now())
        await accounts.purge(self._db, self._clock.now())
        await sessions.purge(self._db, self._clock.now())
        await contact_consents.purge(self._db, self._clock.now())
        await contact_imports.purge(self._db, self._clock.now())
        await self._callbacks.purge()
        await self._webhooks.tidy()
        # Last, because it reads whole tables: nothing waits for it.
        await contact_fields.refresh(self._db, self._clock.now())
