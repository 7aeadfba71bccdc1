"""Uploads to a number or a social account, and what is kept of them (C8.1, C8.2)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Final, NamedTuple
from urllib.parse import unquote

from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.channels.social import SOCIAL
from recado.domain.core.errors import FieldError, Problem, field_refused, validation_error
from recado.domain.core.ids import MEDIA, NUMBER, SOCIAL_ACCOUNT
from recado.domain.media.media_types import LARGEST, LONGEST_FILENAME, LONGEST_TYPE, safe_filename, too_large
from recado.http.api.call import Call
from recado.http.api.route import Idempotency, Route
from recado.http.bodies.parsing import parse_json, validate_body
from recado.http.bodies.unknown_fields import is_strict, name_in, refuse, unknown_fields
from recado.http.problems.missing import found
from recado.http.routes.core.groups import Group
from recado.http.routes.media.media_models import MediaOut, MediaUpload, UploadResult, media_view, upload_view
from recado.http.wire.reply import Reply
from recado.services.media.file_work import FileWork
from recado.services.media.media_document import read_document
from recado.services.media.media_senders import MediaSender, MediaSenders
from recado.services.media.uploads import Upload, Uploads
from recado.storage.core.connections.postgres import Database
from recado.storage.media import media
from recado.storage.media.media import KeptMedia

BODY_LIMIT: Final = 150_000_000
"""Bytes of a body in JSON: the characters of the binary, and what wraps them (C2.3.6)."""
MEDIA_GROUP: Final = Group("Media", reads="messages:read", writes="messages:send")

_FILENAME, _TYPE = "x-filename", "x-content-type"
_ERRORS: Final = (
    "VALIDATION_ERROR", "MEDIA_TOO_LARGE", "MEDIA_TYPE_NOT_ALLOWED", "MEDIA_TYPE_MISMATCH", "DEPENDENCY_FAILED",
    "PROVIDER_TIMEOUT", "STORAGE_FAILED", "BAD_REQUEST",
)  # fmt: skip


class MediaOperations:
    """The handlers. `folder`: where a decoded binary waits; None: the system's own."""

    def __init__(
        self, database: Database, *, senders: MediaSenders, uploads: Uploads, files: FileWork, folder: str | None
    ) -> None:
        self._database = database
        self._senders = senders
        self._uploads = uploads
        self._files = files
        self._folder = folder

    async def sender(self, channel: str, call: Call) -> MediaSender:
        """The number or account of the path."""
        principal = call.principal
        key = (principal.organization_id, principal.env, call.path["id"])
        return found(await self._senders.get(channel, key))

    async def sender_of_binary(self, channel: str, call: Call) -> MediaSender:
        """The headers come before the sender (C2.6)."""
        _header(call, _FILENAME)
        _header(call, _TYPE)
        return await self.sender(channel, call)

    async def examine_json(self, call: Call) -> None:
        """Raise `Problem` for what nobody can send (400, 413, 415, 422)."""
        async with self._in_json(call) as (upload, _):
            await self._uploads.examine(call.resource, upload)

    async def upload_json(self, call: Call) -> Reply:
        async with self._in_json(call) as (upload, unknown):
            reply = _made(await self._uploads.take(call.resource, upload))
        if unknown:
            name_in(reply, unknown, writes=True)
        return reply

    @asynccontextmanager
    async def _in_json(self, call: Call) -> AsyncIterator[tuple[Upload, list[FieldError]]]:
        """The binary in the body, as long as it is used, and the members that nobody reads."""
        spool = call.spool
        assert spool is not None  # noqa: S101 - the route is spooled
        document = await self._files.run(call.principal.organization_id, read_document, spool.file, self._folder)
        try:
            parsed = parse_json(document.rest)
            unknown = unknown_fields(MediaUpload, parsed.document)
            if unknown and is_strict(call.headers.get("Prefer")):
                refuse(unknown)
            body = validate_body(MediaUpload, parsed, 422)
            assert isinstance(body, MediaUpload)  # noqa: S101 - it is read as one
            name = _named(body.filename, "/filename")
            yield (
                Upload(document.file, document.size, document.sha256, body.mime_type, name, "/dataBase64"),
                unknown,
            )
        finally:
            await self._files.close(call.principal.organization_id, document.file)

    async def examine_binary(self, call: Call) -> None:
        """Raise `Problem` for what nobody can send (400, 413, 415, 422)."""
        await self._uploads.examine(call.resource, self._binary(call))

    async def upload_binary(self, call: Call) -> Reply:
        return _made(await self._uploads.take(call.resource, self._binary(call)))

    def _binary(self, call: Call) -> Upload:
        """The binary that the body is."""
        spool = call.spool
        assert spool is not None  # noqa: S101 - as above
        if spool.size > LARGEST:
            raise too_large(LARGEST, "any")
        filename = _named(unquote(_header(call, _FILENAME), errors="replace"), _FILENAME)
        declared = _header(call, _TYPE)
        return Upload(spool.file, spool.size, spool.digest.hex(), declared, filename, "")

    async def read(self, call: Call) -> Reply:
        return Reply(200, media_view(call.resource))

    async def find(self, call: Call) -> KeptMedia:
        """Until its time is over."""
        principal = call.principal
        kept = found(await media.get(self._database, principal.organization_id, principal.env, call.path["mediaId"]))
        return found(kept if kept.expires_at > call.now else None)


def _made(new: KeptMedia) -> Reply:
    return Reply(201, upload_view(new))


def _header(call: Call, name: str) -> str:
    """One that is required; BAD_REQUEST (400) without it, and for a type that is too long."""
    value = call.headers.get(name, "").strip()
    if not value:
        raise Problem("BAD_REQUEST", f"The header {name} is required: the name and the real type of the file.")
    if name == _TYPE and len(value) > LONGEST_TYPE:
        raise Problem("BAD_REQUEST", f"The header {name} has at most {LONGEST_TYPE} characters.")
    return value


def _named(given: str, path: str) -> str:
    """As it is kept; 422 for a name of which nothing is left, or that is too long. `path`: where it was given."""
    told = path.removeprefix("/")
    if len(given) > LONGEST_FILENAME:
        detail = f"`{told}` must have at most {LONGEST_FILENAME} characters."
        raise field_refused("VALIDATION_ERROR", path, detail)
    name = safe_filename(given)
    if not name:
        raise validation_error([FieldError(path, "VALIDATION_ERROR", f"`{told}` must name a file.")])
    return name


class _Place(NamedTuple):
    """What media is uploaded to: a path, and how its operations are called."""

    path: str
    operation: str
    title: str
    channel: str
    prefix: str
    takes: str


_PLACES: Final = (
    _Place(
        "/numbers/{id}", "uploadMedia", "media", NUMBERS_CHANNEL, NUMBER, "any number of the organization can send it"
    ),
    _Place(
        "/v2/social/accounts/{id}", "uploadSocialMedia", "media to a social account", SOCIAL, SOCIAL_ACCOUNT,
        "any social account of the organization can send it. Taken are pictures of 8 MiB, sound of 16 and films of 25",
    ),
)  # fmt: skip


def media_routes(
    *, database: Database, senders: MediaSenders, uploads: Uploads, files: FileWork, folder: str | None
) -> tuple[Route, ...]:
    """Upload, and look."""
    operations = MediaOperations(database, senders=senders, uploads=uploads, files=files, folder=folder)
    return (
        *(route for place in _PLACES for route in _upload_routes(operations, place)),
        MEDIA_GROUP.route(
            "GET /media/{mediaId}", "getMedia", "Read an upload", operations.read,
            responses={200: MediaOut}, path_ids={"mediaId": MEDIA}, load=operations.find,
        ),
    )  # fmt: skip


def _upload_routes(operations: MediaOperations, place: _Place) -> tuple[Route, Route]:
    in_json = MEDIA_GROUP.route(
        f"POST {place.path}/media", place.operation, f"Upload {place.title} in JSON", operations.upload_json,
        description=(
            "The binary stands in base64 in the body; for large files, send it as it is instead. The type is read from "
            f"its bytes. The answer comes when the provider has it, and {place.takes}."
        ),
        rate_class="media", body_limit=BODY_LIMIT, responses={201: UploadResult},
        errors=(*_ERRORS, "MALFORMED_JSON", "INVALID_CHARACTER"), idempotency=Idempotency.ACCEPTED, creates=True,
        path_ids={"id": place.prefix}, load=partial(operations.sender, place.channel),
    )  # fmt: skip
    binary = MEDIA_GROUP.route(
        f"POST {place.path}/media/binary", f"{place.operation}Binary", f"Upload {place.title} as it is",
        operations.upload_binary,
        description=(
            "The body is the file. `x-filename` names it, percent-encoded where it is not plain ASCII; "
            "`x-content-type` is its real type."
        ),
        rate_class="media", body_limit=LARGEST, responses={201: UploadResult}, errors=_ERRORS,
        idempotency=Idempotency.ACCEPTED, creates=True, path_ids={"id": place.prefix},
        load=partial(operations.sender_of_binary, place.channel),
    )  # fmt: skip
    return (
        replace(in_json, spooled={"application/json": MediaUpload}, examine=operations.examine_json, slow=True),
        replace(
            binary, spooled={"application/octet-stream": None}, examine=operations.examine_binary, slow=True,
            headers={
                _FILENAME: "The name of the file: at most 240 characters.",
                _TYPE: "The real media type of the file.",
            },
        ),
    )  # fmt: skip
