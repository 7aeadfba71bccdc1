"""Downloads: the media of a message that came (C8.3), and what signed addresses open (C30.4)."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from typing import Final

from recado.channels.core.errors import ProviderError
from recado.channels.core.media import OpenMedia
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, not_found
from recado.domain.core.ids import MESSAGE
from recado.domain.media.byte_range import asked_part
from recado.domain.media.media_types import READ, look, type_of
from recado.domain.media.showing import STREAM_HEADERS, disposition, ending, shown_type
from recado.http.api.call import Call
from recado.http.api.route import Access, Route
from recado.http.callers.rate_limits import PUBLIC
from recado.http.problems.missing import found
from recado.http.routes.media.media import MEDIA_GROUP
from recado.http.routes.media.media_models import DownloadQuery, StoredFileQuery, asked
from recado.http.wire.byte_budget import SMALL
from recado.http.wire.reply import Reply, StreamReply
from recado.services.media.provider_media import MediaExpired, ProviderMedia
from recado.storage.blobs.blobs import BlobMissing, Blobs, storage_failed
from recado.storage.blobs.signed_links import SignedLinks
from recado.storage.core.connections.postgres import Database
from recado.storage.media import inbound_media
from recado.storage.media.inbound_media import InboundMedia

MEDIA_BYTES: Final = "application/octet-stream"
_PIECE: Final = 64 * 1024


class Downloads:
    """Gives media, piece by piece."""

    def __init__(self, database: Database, *, blobs: Blobs, provider: ProviderMedia, clock: Clock) -> None:
        self._database = database
        self._blobs = blobs
        self._provider = provider
        self._clock = clock

    async def find(self, call: Call) -> InboundMedia:
        """That of an inbound message; 404 for any other."""
        principal = call.principal
        key = (principal.organization_id, principal.env, call.path["id"])
        return found(await inbound_media.get(self._database, *key, call.now))

    async def download(self, call: Call) -> Reply:
        media: InboundMedia = call.resource
        query: DownloadQuery = call.query
        if media.blob_key is None or media.stored_type is None or media.size is None:
            return await self._from_provider(call, media)
        name = _name(media, query.filename, media.stored_type)
        shown = disposition(media.stored_type, name, download=asked(query.download))
        content_type = shown_type(media.stored_type)
        if asked(query.redirect):
            url = await self._blobs.signed_url(media.blob_key, content_type, shown, self._clock.now())
            return Reply(302, headers={"Location": url, "Cache-Control": "no-store"})
        return await stored(self._blobs, media.blob_key, media.size, call, content_type, shown)

    async def _from_provider(self, call: Call, media: InboundMedia) -> Reply:
        """Its first piece tells what it is: by what is declared alone, no markup would be known."""
        stack = AsyncExitStack()
        try:
            opened = await stack.enter_async_context(self._provider.open(media))
            head = b""
            chunks = aiter(opened.chunks)
            while len(head) < READ and (chunk := await anext(chunks, b"")):
                head += chunk
        except MediaExpired:
            await stack.aclose()
            raise Problem("MEDIA_EXPIRED", "The provider no longer has the media, and it was never copied.") from None
        except ProviderError as error:
            await stack.aclose()
            raise Problem(
                "DEPENDENCY_FAILED", "The provider did not give the media.", meta={"providerCode": error.code}
            ) from None
        except BaseException:
            await stack.aclose()
            raise

        async def content() -> AsyncGenerator[bytes]:
            try:
                yield b""  # begun here, so that whoever closes it closes the connection
                yield head
                async for chunk in chunks:
                    yield chunk
            except ProviderError as error:
                raise Problem("DEPENDENCY_FAILED", "The media broke off.") from error
            finally:
                await stack.aclose()

        pieces = content()
        await anext(pieces)
        return self._streamed(call, media, opened, head, pieces)

    def _streamed(
        self, call: Call, media: InboundMedia, opened: OpenMedia, head: bytes, content: AsyncGenerator[bytes]
    ) -> Reply:
        def read(at: int, length: int) -> bytes:
            return head[at : at + length]

        mime_type = type_of(media.mime_type, look(read, max(opened.size or 0, len(head))))
        name = _name(media, call.query.filename, mime_type)
        shown = disposition(mime_type, name, download=asked(call.query.download))
        return StreamReply(
            200, content, content_type=shown_type(mime_type), length=opened.size, memory=SMALL,
            headers={**STREAM_HEADERS, "Content-Disposition": shown},
        )  # fmt: skip


def _name(media: InboundMedia, asked_name: str | None, mime_type: str) -> str:
    return asked_name or media.filename or f"{media.message_id}.{ending(mime_type)}"


async def stored(blobs: Blobs, key: str, size: int, call: Call, content_type: str, shown: str) -> Reply:
    """A stored binary, or the one part of it that the request asks for. Its first piece is read before the answer."""
    part = asked_part(call.headers.get("Range"), size)
    first, length = part or (0, size)
    headers = {**STREAM_HEADERS, "Content-Disposition": shown, "Accept-Ranges": "bytes"}
    if part is not None:
        headers["Content-Range"] = f"bytes {first}-{first + length - 1}/{size}"
    pieces = blobs.read(key, first, length)
    try:
        head = await anext(pieces, b"")
    except BlobMissing:
        raise Problem("MEDIA_EXPIRED", "The stored copy is gone.") from None

    async def content() -> AsyncGenerator[bytes]:
        async with aclosing(pieces):
            yield head
            try:
                async for piece in pieces:
                    yield piece
            except BlobMissing:
                raise storage_failed() from None

    status = 200 if part is None else 206
    return StreamReply(status, content(), content_type=content_type, length=length, headers=headers, memory=SMALL)


class StoredFiles:
    """Opens signed addresses of the local storage."""

    def __init__(self, *, blobs: Blobs, links: SignedLinks, sizes: Database) -> None:
        self._blobs = blobs
        self._links = links
        self._database = sizes

    async def open(self, call: Call) -> Reply:
        query: StoredFileQuery = call.query
        key = "/".join(call.path[name] for name in ("owner", "env", "kind", "year", "month", "name"))
        if not self._links.opens(key, query.exp, query.ct, query.cd, query.sig, call.now):
            raise Problem("FORBIDDEN", "The address is not signed by this service, or its time is over.")
        size = await inbound_media.size_of(self._database, call.path["owner"], call.path["env"], key)
        if size is None:
            raise not_found()
        return await stored(self._blobs, key, size, call, query.ct, query.cd)


def download_routes(
    *, database: Database, blobs: Blobs, provider: ProviderMedia, links: SignedLinks, clock: Clock
) -> tuple[Route, ...]:
    """By message, and by signed address."""
    downloads = Downloads(database, blobs=blobs, provider=provider, clock=clock)
    files = StoredFiles(blobs=blobs, links=links, sizes=database)
    return (
        MEDIA_GROUP.route(
            "GET /messages/{id}/media", "downloadMedia", "Download the media of a message that came",
            downloads.download,
            description=(
                "Pictures, sound, moving pictures and PDF are shown as they are; everything else is an attachment. "
                "One `Range` is served where a copy is stored."
            ),
            rate_class="media", query=DownloadQuery, responses={200: None, 206: None, 302: None},
            response_types={200: MEDIA_BYTES, 206: MEDIA_BYTES},
            errors=("MEDIA_EXPIRED", "RANGE_NOT_SATISFIABLE", "DEPENDENCY_FAILED", "STORAGE_FAILED"),
            path_ids={"id": MESSAGE}, load=downloads.find,
        ),
        Route(
            method="GET", path="/storage/{owner}/{env}/{kind}/{year}/{month}/{name}", handler=files.open,
            operation_id="openStoredFile", summary="Open a stored file by its signed address", tag="Media",
            description="For whoever was led here: the address is signed, and opens for 90 minutes.",
            access=Access.PUBLIC, rate_class=PUBLIC, query=StoredFileQuery, responses={200: None, 206: None},
            response_types={200: MEDIA_BYTES, 206: MEDIA_BYTES},
            errors=("FORBIDDEN", "MEDIA_EXPIRED", "RANGE_NOT_SATISFIABLE", "STORAGE_FAILED"),
        ),
    )  # fmt: skip
