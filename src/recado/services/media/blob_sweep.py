"""Deletes binaries whose time is over, and what nobody stored a record of; forgets expired records (C32)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.engine.periodic import Periodic
from recado.storage.blobs.blobs import Blobs
from recado.storage.core.connections.postgres import Database
from recado.storage.media import inbound_media, kept_blobs, media

EVERY: Final = 60.0  # seconds
_BLOCK: Final = 200

log = structlog.get_logger(__name__)


class BlobSweep:
    """A service."""

    def __init__(
        self, db: Database, *, blobs: Blobs, clock: Clock, confirmed_until: Callable[[], Awaitable[datetime | None]]
    ) -> None:
        """`confirmed_until`: until when something speaks for the clock; None: nothing does, and nothing expires."""
        self._db = db
        self._blobs = blobs
        self._confirmed_until = confirmed_until
        self._worker = Periodic("deletion of media", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """One round. What the storage does not delete stays noted, and is tried again in the next one."""
        now = await self._confirmed_until() or datetime.fromtimestamp(0, UTC)
        await media.purge(self._db, now)
        await inbound_media.purge(self._db, now)
        while found := await kept_blobs.due(self._db, now, _BLOCK):
            for each, written in found:
                try:
                    await self._blobs.delete(each.key, written=written)
                except Unavailable:
                    raise
                except Problem:
                    log.warning("media_not_deleted", waiting=len(found))
                    return
                await kept_blobs.forget(self._db, each, now)
