"""Copies what people send into the storage, in the background (C8.3.1): five attempts, a few at once."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from datetime import timedelta
from typing import Final

import structlog

from recado.channels.core.errors import ProviderError
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.media.media_types import READ, Bytes, look, type_of
from recado.engine.periodic import Periodic
from recado.services.media.new_blobs import NewBlobs
from recado.services.media.provider_media import MediaExpired, ProviderMedia
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import Tampered
from recado.storage.media import inbound_media
from recado.storage.media.inbound_media import InboundMedia

EVERY: Final = 1.0  # seconds
AT_ONCE: Final = 8
OF_ONE: Final = 2  # of an organization
AFTER: Final = (timedelta(seconds=10), timedelta(minutes=1), timedelta(minutes=10), timedelta(hours=1))
"""From a failed attempt to the next one; the first is made at once, and after the fifth there is none."""
SECONDS: Final = 300.0
"""That one copy may take."""
KIND: Final = "inbound"

log = structlog.get_logger(__name__)


class InboundCopies:
    """A service. A copy that a crash cuts short is made again; what it had written is deleted within the hour."""

    def __init__(
        self,
        db: Database,
        *,
        blobs: NewBlobs,
        provider: ProviderMedia,
        clock: Clock,
    ) -> None:
        self._db = db
        self._blobs = blobs
        self._provider = provider
        self._clock = clock
        self._worker = Periodic("copies of media", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """Copy everything that is due. A copy that takes its time holds its own place, and nobody else's."""
        under_way: dict[asyncio.Task[None], InboundMedia] = {}
        try:
            while True:
                # Those under way are due still: with as many more asked for, they hide none.
                found = await inbound_media.due(self._db, self._clock.now(), 2 * AT_ONCE, OF_ONE)
                for media in _new(found, list(under_way.values())):
                    under_way[asyncio.create_task(self._copy(media))] = media
                if not under_way:
                    return
                wait = None if len(under_way) == AT_ONCE else EVERY
                ended, _ = await asyncio.wait(under_way, timeout=wait, return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    del under_way[task]
                    task.result()
        finally:
            for task in under_way:
                task.cancel()
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _copy(self, media: InboundMedia) -> None:
        try:
            async with asyncio.timeout(SECONDS):
                await self._store(media)
        except (MediaExpired, ProviderError, Problem, Tampered, TimeoutError) as error:
            if isinstance(error, Unavailable):
                raise
            gone = isinstance(error, MediaExpired) or media.attempts >= len(AFTER)
            again_at = None if gone else self._clock.now() + AFTER[media.attempts]
            await inbound_media.tried(self._db, media, again_at)
            log.info("media_not_copied", message_id=media.message_id, attempt=media.attempts + 1, last=gone)

    async def _store(self, media: InboundMedia) -> None:
        async with self._provider.open(media) as opened:
            copy = _Copy(opened.chunks)
            async with self._blobs.stored(media.organization_id, media.env, KIND, copy.content()) as blob:
                if opened.size is not None and copy.size != opened.size:
                    raise ProviderError("unreachable", "malformed_answer", "the media is shorter than was said")
                mime_type = type_of(media.mime_type, look(copy.read, copy.size))
                now = self._clock.now()
                async with self._db.transaction() as connection:
                    if await inbound_media.stored(connection, media, blob.key, mime_type, copy.size, now):
                        await blob.keep(connection, media.expires_at)


def _new(found: Sequence[InboundMedia], under_way: Sequence[InboundMedia]) -> list[InboundMedia]:
    """What of it may begin beside those under way."""
    known = {media.message_id for media in under_way}
    held = Counter(media.organization_id for media in under_way)
    begins: list[InboundMedia] = []
    for media in found:
        if media.message_id in known or held[media.organization_id] >= OF_ONE or held.total() >= AT_ONCE:
            continue
        held[media.organization_id] += 1
        begins.append(media)
    return begins


class _Copy:
    """What goes by on its way into the storage: how much, and what its beginning and its end were."""

    def __init__(self, chunks: AsyncIterable[bytes]) -> None:
        self._chunks = chunks
        self._head = b""
        self._tail = b""
        self.size = 0

    async def content(self) -> AsyncGenerator[bytes]:
        async for chunk in self._chunks:
            self.size += len(chunk)
            if len(self._head) < READ:
                self._head += chunk[: READ - len(self._head)]
            self._tail = (self._tail + chunk)[-2 * READ :]
            yield chunk

    @property
    def read(self) -> Bytes:
        """What is in neither is read as nothing: then a ZIP is only that."""

        def read(at: int, length: int) -> bytes:
            if at + length <= len(self._head) or at == 0:
                return self._head[at : at + length]
            start = at - (self.size - len(self._tail))
            return self._tail[start : start + length] if start >= 0 else b""

        return read
