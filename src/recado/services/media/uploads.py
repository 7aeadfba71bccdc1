"""Takes uploads: typed by their bytes, stored, given to the provider, and kept only when all was done (C8.2)."""

from dataclasses import dataclass, field, replace
from typing import IO, Final

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.channels.sent_media import LIMITS_OF
from recado.domain.channels.social import SOCIAL
from recado.domain.core.clock import Clock
from recado.domain.core.ids import MEDIA, IdSource
from recado.domain.media.media_types import MediaForm, check_size, form_of, look
from recado.services.media.file_work import FileWork, bytes_of
from recado.services.media.media_senders import MediaSender
from recado.services.media.media_use import MediaUse
from recado.services.media.new_blobs import NewBlobs
from recado.storage.blobs.blobs import HashedFile
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.media import media
from recado.storage.media.media import KEPT, KeptMedia

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

    async def examine(self, sender: MediaSender, upload: Upload) -> None:
        """Raise `Problem` for what cannot be sent (413, 415, 422), and keep nothing."""
        check_size(upload.size, upload.path)
        async with self._places.place(sender.organization_id):
            await self._form(sender, upload)

    async def take(self, sender: MediaSender, upload: Upload) -> KeptMedia:
        """Raises `Problem` for what cannot be sent (413, 415, 422), and 502 when storage or provider fail."""
        check_size(upload.size, upload.path)
        owner = sender.organization_id
        async with self._places.place(owner):
            form = await self._form(sender, upload)
            now = self._clock.now()
            where = (owner, sender.env, KIND)
            content = self._files.content(owner, upload.file, upload.size)
            async with self._blobs.stored(*where, content, HashedFile(upload.file, upload.sha256)) as blob:
                new = KeptMedia(
                    organization_id=owner,
                    env=sender.env,
                    id=self._ids.new(MEDIA),
                    number_id=sender.id if sender.channel == NUMBERS_CHANNEL else None,
                    social_account_id=sender.id if sender.channel == SOCIAL else None,
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
                    sender, new, self._files.content(owner, upload.file, upload.size)
                )
                new = replace(new, provider_ids={sender.id: provider_id})
                async with self._db.transaction() as connection:
                    await media.insert(connection, new)
                    await blob.keep(connection, new.expires_at)
                return new

    async def _form(self, sender: MediaSender, upload: Upload) -> MediaForm:
        """What the bytes are, which the channel takes."""
        seen = await self._files.run(sender.organization_id, look, bytes_of(upload.file), upload.size)
        return form_of(upload.declared, seen, upload.size, LIMITS_OF[sender.channel])
