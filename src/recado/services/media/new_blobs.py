"""Stores new binaries, whatever they are of: none stays that no record is kept of (C8.2.7)."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.storage.access.organizations import on_the_move
from recado.storage.blobs.blobs import Blobs, HashedFile, new_key
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor
from recado.storage.media import kept_blobs
from recado.storage.media.kept_blobs import KeptBlob

DELETED_WITHIN: Final = 3.0  # seconds: who is told that it failed waits so long


class NewBlob:
    """One that is in the storage, and goes unless it is kept."""

    def __init__(self, blob: KeptBlob) -> None:
        self._blob = blob
        self.written = False
        self.kept = False
        self.noted = True

    @property
    def key(self) -> str:
        return self._blob.key

    async def keep(self, executor: Executor, until: datetime) -> None:
        """In the commit of its record. Raises `Unavailable`: the organization has left for another database."""
        self.noted = await kept_blobs.keep(executor, self._blob, until)
        if not self.noted:
            raise on_the_move()
        self.kept = True


class NewBlobs:
    """Noted before they are written, so that a crash leaves none of which nobody knows."""

    def __init__(self, db: Database, *, blobs: Blobs, clock: Clock, random_bytes: Callable[[int], bytes]) -> None:
        self._db = db
        self._blobs = blobs
        self._clock = clock
        self._random_bytes = random_bytes

    @asynccontextmanager
    async def stored(
        self,
        organization_id: str,
        env: str,
        kind: str,
        content: AsyncIterable[bytes | memoryview],
        file: HashedFile | None = None,
    ) -> AsyncIterator[NewBlob]:
        """Store a binary for the length of the block: it stays where the block kept it, and did not fail.

        `kind`: within its key; `file`: as of `Blobs.write`. Raises `Problem` 502 when the storage fails.
        """
        now = self._clock.now()
        blob = KeptBlob(organization_id, env, new_key(organization_id, env, kind, now, self._random_bytes))
        noted = await kept_blobs.note(self._db, blob, now)
        new = NewBlob(blob)
        try:
            await self._blobs.write(blob.key, content, file)
            new.written = True
            yield new
        except BaseException:
            new.kept = False  # its commit may have failed
            raise
        finally:
            if not new.kept:
                await asyncio.shield(self._drop(new, blob, noted))

    async def _drop(self, new: NewBlob, blob: KeptBlob, noted: datetime) -> None:
        """What cannot be deleted now, or not soon, is by the sweeper, which knows it. So is once more, when its hour is
        over, what was not written to its end: a storage that did not answer may have it only after this.
        """
        with suppress(Problem, TimeoutError):
            if not new.written:
                async with asyncio.timeout(DELETED_WITHIN):
                    await self._blobs.delete(blob.key)
            elif not new.noted or await kept_blobs.abandon(self._db, blob, noted):
                async with asyncio.timeout(DELETED_WITHIN):
                    await self._blobs.delete(blob.key, written=True)
                await kept_blobs.forget(self._db, blob, self._clock.now())
