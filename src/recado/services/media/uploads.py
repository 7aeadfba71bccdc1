"""Takes uploads: typed by their bytes, stored, given to the provider, and kept only when all was done (C8.2)."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import IO, Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import MEDIA, IdSource
from recado.domain.media.media_types import check_size, form_of, look
from recado.services.media.file_work import FileWork, bytes_of
from recado.services.media.media_use import MediaUse
from recado.storage.blobs.blobs import Blobs, new_key
from recado.storage.core.fair_places import FairPlaces
from recado.storage.core.postgres import Database
from recado.storage.media import kept_blobs, media
from recado.storage.media.kept_blobs import KeptBlob
from recado.storage.media.media import KEPT, KeptMedia
from recado.storage.senders.numbers import Number

UPLOADS: Final = 16
UPLOADS_OF_ONE: Final = 4
MOST_WAITING: Final = 4  # uploads of an organization
KIND: Final = "media"


@dataclass(frozen=True, slots=True)
class Upload:
    """A binary that has arrived. `declared`: its media type, as the caller says; `path`: what names it in the body."""

    file: IO[bytes] = field(repr=False)
    size: int
    sha256: str
    declared: str
    filename: str = field(repr=False)
    path: str


class Uploads:
    """At most 16 are worked on at once, and 4 of one organization (C31)."""

    def __init__(
        self,
        db: Database,
        *,
        blobs: Blobs,
        use: MediaUse,
        files: FileWork,
        clock: Clock,
        ids: IdSource,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        self._db = db
        self._blobs = blobs
        self._use = use
        self._files = files
        self._clock = clock
        self._ids = ids
        self._random_bytes = random_bytes
        self._places = FairPlaces(UPLOADS, each=UPLOADS_OF_ONE, most_waiting=MOST_WAITING)

    async def take(self, number: Number, upload: Upload) -> KeptMedia:
        """Raises `Problem` for what cannot be sent (413, 415, 422), and 502 when storage or provider fail."""
        check_size(upload.size, upload.path)
        owner = number.organization_id
        async with self._places.place(owner):
            seen = await self._files.run(owner, look, bytes_of(upload.file), upload.size)
            form = form_of(upload.declared, seen, upload.size)
            now = self._clock.now()
            where = (number.organization_id, number.env)
            blob = KeptBlob(*where, new_key(*where, KIND, now, self._random_bytes))
            noted = await kept_blobs.note(self._db, blob, now)
            try:
                await self._blobs.write(blob.key, self._files.content(owner, upload.file), upload.file)
                new = KeptMedia(
                    organization_id=number.organization_id,
                    env=number.env,
                    id=self._ids.new(MEDIA),
                    number_id=number.id,
                    kind=form.kind,
                    mime_type=form.mime_type,
                    filename=upload.filename,
                    size=upload.size,
                    sha256=upload.sha256,
                    voice=form.voice,
                    blob_key=blob.key,
                    provider_ids={},
                    expires_at=now + KEPT,
                )
                provider_id = await self._use.hand_over(
                    self._use.senders.of_number(number), new, self._files.content(owner, upload.file)
                )
                return await self._keep(new, {number.id: provider_id}, blob)
            except BaseException:
                await asyncio.shield(self._drop(blob, noted))
                raise

    async def _keep(self, new: KeptMedia, provider_ids: dict[str, str], blob: KeptBlob) -> KeptMedia:
        new = replace(new, provider_ids=provider_ids)
        async with self._db.transaction() as connection:
            await media.insert(connection, new)
            await kept_blobs.keep(connection, blob, new.expires_at)
        return new

    async def _drop(self, blob: KeptBlob, noted: datetime) -> None:
        """Nothing of it is kept. What cannot be deleted now is by the sweeper, which knows it."""
        with suppress(Problem):
            if await kept_blobs.abandon(self._db, blob, noted):
                await self._blobs.delete(blob.key)
                await kept_blobs.forget(self._db, blob, self._clock.now())
