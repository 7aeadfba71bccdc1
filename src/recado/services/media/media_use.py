"""What messages say of media: checked when they are made, and named as their provider does when they leave.

An upload is given to the provider of another number, or of a social account, when the first message with it leaves
there (C8.2.1). Its request hands over nothing, for it is not paid yet. The call that finds the upload missing does so
itself: it holds a place among the calls, and no lane.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final, NamedTuple

from recado.channels.core.errors import ProviderError
from recado.channels.core.media import MediaStore
from recado.domain.channels.sent_media import LIMITS_OF
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, field_refused
from recado.domain.media.media_types import DOCUMENT, IMAGE, LARGEST, VIDEO
from recado.services.media.media_senders import MediaSender, MediaSenders
from recado.services.senders.accounts import required
from recado.storage.blobs.blobs import BlobMissing, Blobs
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import Tampered
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.media import media
from recado.storage.media.media import KeptMedia, MediaDirectory

SECONDS: Final = 60.0
"""That a provider has to take an upload (C8.2.6)."""
HANDED_OVER: Final = 16  # uploads to providers at once
OF_ONE: Final = 4
MOST_WAITING: Final = 100
_HEADERS: Final = (IMAGE, VIDEO, DOCUMENT)


class SentMedia(NamedTuple):
    """As its provider calls it. `kind`: as which it is sent, in a header too."""

    provider_id: str
    kind: str


MediaFor = Callable[[str, str], MediaStore | None]
"""By channel and environment."""


class NamedMedia(NamedTuple):
    """Media that a payload names, at `path`, as one of these kinds; None: any."""

    path: str
    id: str
    kinds: tuple[str, ...]


def named_media(
    message_type: str, payload: Mapping[str, Any] | None, header_kind: str | None = None
) -> NamedMedia | None:
    """What a payload names; `header_kind`: what the header of its template takes."""
    if payload is None or message_type == "text":
        return None
    if message_type == "media":
        return NamedMedia("/payload/media/id", payload["media"]["id"], (payload["kind"],))
    within = "/payload" if message_type == "template" else "/payload/interactive"
    content = payload if message_type == "template" else payload["interactive"]
    header = content.get("header") or {}
    if "media" not in header:
        return None
    kinds = _HEADERS if header_kind is None else (header_kind,)
    return NamedMedia(f"{within}/header/media/id", header["media"]["id"], kinds)


def check_kind(named: NamedMedia, found: KeptMedia) -> None:
    """The kind is that of the upload, or `document` (C8.2.4)."""
    if found.kind not in named.kinds and DOCUMENT not in named.kinds:
        path = "/payload/kind" if named.path == "/payload/media/id" else named.path
        detail = f"The media {found.id} is of kind {found.kind}: it cannot be sent as {' or '.join(named.kinds)}."
        raise field_refused("VALIDATION_ERROR", path, detail)


def check_size(channel: str, found: KeptMedia, named: NamedMedia) -> None:
    """What was uploaded to another channel may be larger than this one sends (C8.2.4)."""
    kind = found.kind if found.kind in named.kinds else DOCUMENT
    limit = LIMITS_OF[channel].get(kind, LARGEST)
    if found.size > limit:
        detail = f"The media {found.id} has {found.size:,} bytes: {channel} sends at most {limit:,} of kind {kind}."
        raise field_refused("VALIDATION_ERROR", named.path, detail)


def no_media(named: NamedMedia) -> Problem:
    """422: nobody uploaded it here, or its 30 days are over."""
    detail = "The media does not exist, or is no longer kept: upload it to a number or a social account."
    return field_refused("MEDIA_NOT_FOUND", named.path, detail, field=named.path.strip("/").replace("/", "."))


class MediaRefused(Problem):
    """502: the provider looked at the media, and said no."""


class MediaUse:
    """`media_for`: where an environment's provider keeps media; None: nobody does."""

    def __init__(
        self,
        db: Database,
        *,
        blobs: Blobs,
        senders: MediaSenders,
        directory: MediaDirectory,
        media_for: MediaFor,
        clock: Clock,
    ) -> None:
        self._db = db
        self._blobs = blobs
        self.senders = senders
        self._directory = directory
        self._media_for = media_for
        self._clock = clock
        self._places = FairPlaces(HANDED_OVER, each=OF_ONE, most_waiting=MOST_WAITING)
        self._under_way: dict[tuple[str, str], asyncio.Task[str]] = {}  # by media and sender

    def at_hand(self, organization_id: str, env: str, sender_id: str, named: NamedMedia) -> KeptMedia | None:
        """The upload that a payload names, where it is known without waiting that the sender's provider has got it.

        Whether it may be sent so is left to `check_use`.
        """
        found = self._directory.peek((organization_id, env, named.id))
        return None if found is None or sender_id not in found.provider_ids else found

    async def find(self, organization_id: str, env: str, named: NamedMedia) -> KeptMedia:
        """The upload that a payload names, not checked; `Problem` 422 where there is none."""
        found = await self._directory.get((organization_id, env, named.id))
        if found is None:
            raise no_media(named)
        return found

    def check_use(self, channel: str, found: KeptMedia, named: NamedMedia) -> None:
        """`Problem` 422 where the upload's time is over, or it is of another kind or larger than the channel sends."""
        if found.expires_at <= self._clock.now():
            raise no_media(named)
        check_kind(named, found)
        check_size(channel, found, named)

    async def check(self, channel: str, organization_id: str, env: str, named: NamedMedia) -> KeptMedia:
        """The upload that a payload names; raises as `find` and `check_use`."""
        found = await self.find(organization_id, env, named)
        self.check_use(channel, found, named)
        return found

    def check_provider(self, channel: str, env: str, sender_id: str, found: KeptMedia) -> None:
        """`Problem` 502 where the sender's provider has not got the upload and takes no media: it could not leave."""
        if sender_id not in found.provider_ids:
            required(self._media_for(channel, env), channel)

    async def ready(self, sender: MediaSender, found: KeptMedia) -> str:
        """What the sender's provider calls it, which is given it where it has not been; `Problem` 502."""
        known = found.provider_ids.get(sender.id)
        if known is not None:
            return known
        key = (found.id, sender.id)
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._give(sender, found))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
            task.add_done_callback(lambda done: None if done.cancelled() else done.exception())
        return await asyncio.shield(task)

    async def stop(self) -> None:
        for task in list(self._under_way.values()):
            task.cancel()

    async def start(self) -> None:
        """Nothing runs until somebody asks."""

    async def hand_over(
        self, sender: MediaSender, found: KeptMedia, content: AsyncGenerator[bytes | memoryview] | AsyncGenerator[bytes]
    ) -> str:
        """Give the sender's provider the upload; what it is called there. `Problem` 502 when it does not take it.

        A provider may have enough before the end of `content`, which is closed.
        """
        store = required(self._media_for(sender.channel, sender.env), sender.channel)
        try:
            async with asyncio.timeout(SECONDS), _closed(content):
                return await store.upload_media(
                    sender.account(), content, size=found.size, mime_type=found.mime_type,
                    filename=found.filename,
                )  # fmt: skip
        except TimeoutError:
            raise Problem("PROVIDER_TIMEOUT", "The provider did not take the media within 60 s.") from None
        except ProviderError as error:
            meta = {"providerCode": error.code}
            if error.kind == "refused":
                raise MediaRefused("DEPENDENCY_FAILED", "The provider refused the media.", meta=meta) from None
            raise Problem("DEPENDENCY_FAILED", "The provider could not be reached.", meta=meta) from None

    async def sent_as(
        self, channel: str, organization_id: str, env: str, sender_id: str, named: NamedMedia
    ) -> SentMedia | str:
        """What a message that leaves says of it; or why it cannot: a text for callers. `Problem` 502 for now."""
        found = await self._directory.get((organization_id, env, named.id))
        if found is None or found.expires_at <= self._clock.now():
            return "the media is no longer kept"
        sender = await self.senders.get(channel, (organization_id, env, sender_id))
        if sender is None:
            return "the sender is deleted"
        kind = found.kind if found.kind in named.kinds else DOCUMENT  # anything may be sent as one
        return SentMedia(await self.ready(sender, found), kind)

    # Parts ------------------------------------------------------------------------------------------------------------

    async def _give(self, sender: MediaSender, found: KeptMedia) -> str:
        async with self._places.place(found.organization_id):
            try:
                provider_id = await self.hand_over(sender, found, self._content(found))
            except (BlobMissing, Tampered):
                raise Problem("STORAGE_FAILED", "The stored copy of the media cannot be read.") from None
            await media.at_sender(self._db, found, sender.id, provider_id)
            self._directory.forget((found.organization_id, found.env, found.id))
            return provider_id

    def _content(self, found: KeptMedia) -> AsyncGenerator[bytes]:
        return self._blobs.read(found.blob_key, 0, found.size)


@asynccontextmanager
async def _closed(content: AsyncGenerator[bytes | memoryview] | AsyncGenerator[bytes]) -> AsyncIterator[None]:
    """Closed after the block. While a piece is being read it cannot be: the request that reads it was broken off, and
    closes it with that.
    """
    try:
        yield
    finally:
        if not getattr(content, "ag_running", False):
            await content.aclose()
