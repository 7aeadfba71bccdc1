"""Takes uploads: typed by their bytes, stored, given to the provider, and kept only when all was done (C8.2)."""

from dataclasses import dataclass, field, replace
from typing import IO, Final

from recado.domain.core.clock import Clock
from recado.domain.core.ids import MEDIA, IdSource
from recado.domain.media.media_types import check_size, form_of, look
from recado.services.media.file_work import FileWork, bytes_of
from recado.services.media.media_use import MediaUse
from recado.services.media.new_blobs import NewBlobs
from recado.storage.core.fair_places import FairPlaces
from recado.storage.core.postgres import Database
from recado.storage.media import media
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
        blobs: NewBlobs,
        use: MediaUse,
        files: FileWork,
        clock: Clock,
        ids: IdSource,
    ) -> None:
        self._db = db
        self._blobs = blobs
        self._use = use
        self._files = files
        self._clock = clock
        self._ids = ids
        self._places = FairPlaces(UPLOADS, each=UPLOADS_OF_ONE, most_waiting=MOST_WAITING)

    async def take(self, number: Number, upload: Upload) -> KeptMedia:
        """Raises `Problem` for what cannot be sent (413, 415, 422), and 502 when storage or provider fail."""
        check_size(upload.size, upload.path)
        owner = number.organization_id
        async with self._places.place(owner):
            seen = await self._files.run(owner, look, bytes_of(upload.file), upload.size)
            form = form_of(upload.declared, seen, upload.size)
            now = self._clock.now()
            where = (number.organization_id, number.env, KIND)
            async with self._blobs.stored(*where, self._files.content(owner, upload.file), upload.file) as blob:
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
                new = replace(new, provider_ids={number.id: provider_id})
                async with self._db.transaction() as connection:
                    await media.insert(connection, new)
                    await blob.keep(connection, new.expires_at)
                return new
