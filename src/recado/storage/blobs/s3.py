"""A bucket of an S3, or of what speaks like it (C30.4): what is in a file goes in one request, large
binaries that are in none in parts; of what breaks, nothing stays."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Collection
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any, Final, TypeVar

import structlog

from recado.domain.core.errors import Unavailable
from recado.storage.blobs.blobs import PIECE, SIGNED_SECONDS, BlobMissing, HashedFile, owner_of, storage_failed
from recado.storage.blobs.request_bodies import FileBody, MemoryPart, parts_of
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.shares.fair_threads import FairThreads
from recado.storage.core.shielded import to_its_end

PART: Final = 8 * 1024 * 1024  # bytes of a part that is in memory
CONNECTIONS: Final = 64
OF_ONE: Final = 32  # connections that work for one organization
MOST_WAITING: Final = 5_000  # calls of an organization
_OWN: Final = ""  # the service itself
_CONNECT, _READ = 5.0, 20.0  # seconds
_SENT: Final = 60.0
"""Seconds for a call, however often it is tried: an answer that trickles ends no wait of the client's. One that brings
a file has them again for each 16 MiB that have gone."""
_ABORT: Final = 3.0  # seconds: who waits has been told nothing yet, and a storage that stands still answers nothing
_MISSING: Final = frozenset({"NoSuchKey", "404", "NotFound"})
_NO_UPLOAD: Final = frozenset({"NoSuchUpload"})
_NO_LIST: Final = frozenset({"AccessDenied", "403", "NotImplemented", "501", "MethodNotAllowed", "405"})
"""Why uploads in parts are not listed: the bucket's own rule has to end them."""

T = TypeVar("T")
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Bucket:
    """Where it is, and who we are there. `endpoint` None: that of the region; else buckets are named in its paths."""

    name: str
    region: str
    endpoint: str | None
    access_key_id: str
    secret_access_key: str = field(repr=False)


class S3Blobs:
    """One client for all. An organization has half of its connections at most (C31)."""

    def __init__(self, bucket: S3Bucket) -> None:
        self._bucket = bucket
        self._opened = AsyncExitStack()
        self._client: Any = None
        self._places = FairPlaces(CONNECTIONS, each=OF_ONE, most_waiting=MOST_WAITING)
        self._threads = FairThreads("media")

    async def start(self) -> None:
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session

        from recado.storage.blobs.s3_sending import send_files
        from recado.storage.blobs.s3_signing import sign_parts

        await self._threads.start()
        bucket = self._bucket
        config = AioConfig(
            signature_version="s3v4",  # without it, addresses are signed by version 2 (design of botocore)
            connect_timeout=_CONNECT,
            read_timeout=_READ,
            max_pool_connections=CONNECTIONS,
            retries={"max_attempts": 2},
            s3={"addressing_style": "auto" if bucket.endpoint is None else "path"},
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            parameter_validation=False,  # it takes no body that is read piece by piece
        )
        self._client = await self._opened.enter_async_context(
            get_session().create_client(
                "s3", region_name=bucket.region, endpoint_url=bucket.endpoint, config=config,
                aws_access_key_id=bucket.access_key_id, aws_secret_access_key=bucket.secret_access_key,
            )
        )  # fmt: skip
        sign_parts(self._client)
        send_files()

    async def stop(self) -> None:
        self._client = None
        await self._opened.aclose()
        await self._threads.stop()

    async def write(self, key: str, content: AsyncIterable[bytes | memoryview], file: HashedFile | None = None) -> None:
        owner = owner_of(key)
        size = 0 if file is None else await self._size_of(owner, file.file)
        if file is not None and size:
            await self._write_file(owner, key, file, size)
            return
        digest = None if file is None else file.sha256
        async with aclosing(parts_of(self._threads, owner, content, PART, digest)) as parts:
            await self._write_parts(owner, key, parts)

    async def _write_file(self, owner: str, key: str, file: HashedFile, size: int) -> None:
        """Whole, however large: its hash is known, and each of its parts would have to be hashed once more."""
        async with self._calling(owner), asyncio.timeout(_SENT) as limit:
            time = asyncio.get_running_loop().time
            body = FileBody(self._threads, owner, file, size, lambda: limit.reschedule(time() + _SENT))
            try:
                await self._ready().put_object(Bucket=self._bucket.name, Key=key, Body=body)
            finally:
                await to_its_end(body.leave())

    async def _write_parts(self, owner: str, key: str, parts: AsyncGenerator[MemoryPart]) -> None:
        """One after the other: there are servers that take them in their order only. A first one that is short is
        all.
        """
        client, at = self._ready(), {"Bucket": self._bucket.name, "Key": key}
        part: MemoryPart | None = await anext(parts)
        if part is not None and len(part) < PART:
            async with self._calling(owner), asyncio.timeout(_SENT):
                await client.put_object(**at, Body=part)
            return
        async with self._calling(owner), asyncio.timeout(_SENT):
            begun = await client.create_multipart_upload(**at)
        upload = {**at, "UploadId": begun["UploadId"]}
        try:
            if begun["ResponseMetadata"].get("RetryAttempts"):  # the answer to the first try may have been lost
                async with self._calling(owner), asyncio.timeout(_SENT):
                    await self._end_uploads(key, but=begun["UploadId"])
            made = list[dict[str, Any]]()
            while part is not None:
                made.append(await self._part(owner, upload, len(made) + 1, part))
                part = None  # nothing of it is held while the next one comes
                part = await anext(parts, None)
            async with self._calling(owner), asyncio.timeout(_SENT):
                await client.complete_multipart_upload(**upload, MultipartUpload={"Parts": made})
        except BaseException:
            await asyncio.shield(self._abort(upload))
            raise

    async def _part(self, owner: str, upload: dict[str, str], number: int, body: MemoryPart) -> dict[str, Any]:
        async with self._calling(owner), asyncio.timeout(_SENT):
            answer = await self._ready().upload_part(**upload, PartNumber=number, Body=body)
        return {"PartNumber": number, "ETag": answer["ETag"]}

    async def _size_of(self, owner: str, file: IO[bytes]) -> int:
        """Of a file; 0 where it has no descriptor, as one in memory."""
        async with _failing():
            return await self._threads.run(owner, _size, file)

    async def _abort(self, upload: dict[str, str]) -> None:
        """The parts that are there go; where the storage does not answer, when the key is deleted."""
        with suppress(Exception):
            async with asyncio.timeout(_ABORT):
                await self._ready().abort_multipart_upload(**upload)

    async def read(self, key: str, first: int, length: int) -> AsyncGenerator[bytes]:
        left = length
        async with self._calling(owner_of(key), looks=True):
            answer = await self._ready().get_object(
                Bucket=self._bucket.name, Key=key, Range=f"bytes={first}-{first + length - 1}"
            )
            async with answer["Body"] as body:
                while left and (piece := await body.read(min(PIECE, left))):
                    left -= len(piece)
                    yield piece
        if left:
            raise storage_failed()

    async def delete(self, key: str, *, written: bool = False) -> None:
        async with self._calling(owner_of(key)), asyncio.timeout(_SENT):
            await self._ready().delete_object(Bucket=self._bucket.name, Key=key)
            if not written:
                await self._end_uploads(key)

    async def _end_uploads(self, key: str, but: str = "") -> None:
        """All in parts that are not finished, `but` one of them."""
        client, at = self._ready(), {"Bucket": self._bucket.name, "Key": key}
        for upload_id in await _unless(_NO_LIST, self._unfinished(key)) or ():
            if upload_id != but:
                await _unless(_NO_UPLOAD, client.abort_multipart_upload(**at, UploadId=upload_id))

    async def _unfinished(self, key: str) -> list[str]:
        """Uploads in parts that a crash left, or a storage that stood still."""
        found = await self._ready().list_multipart_uploads(Bucket=self._bucket.name, Prefix=key)
        return [each["UploadId"] for each in found.get("Uploads", ()) if each["Key"] == key]

    async def signed_url(self, key: str, content_type: str, disposition: str, now: datetime) -> str:
        said = {"ResponseContentType": content_type, "ResponseContentDisposition": disposition}
        async with _failing():
            url: str = await self._ready().generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket.name, "Key": key, **said}, ExpiresIn=SIGNED_SECONDS
            )
        return url

    async def check(self) -> None:
        async with self._calling(_OWN, looks=True), asyncio.timeout(_SENT):
            await self._ready().head_bucket(Bucket=self._bucket.name)

    @asynccontextmanager
    async def _calling(self, owner: str, *, looks: bool = False) -> AsyncIterator[None]:
        """A call, on a connection of the owner's share; `looks`: what is not there is `BlobMissing`."""
        async with self._places.place(owner):
            try:
                async with _failing():
                    yield
            except BlobMissing:
                if looks:
                    raise
                raise storage_failed() from None

    def _ready(self) -> Any:
        if self._client is None:
            raise Unavailable("The service stops.")
        return self._client


async def _unless(codes: Collection[str], call: Awaitable[T]) -> T | None:
    """What the storage answers; None where that is one of these codes."""
    from botocore.exceptions import ClientError

    try:
        return await call
    except ClientError as error:
        if _code(error) not in codes:
            raise
        return None


def _code(error: Any) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


@asynccontextmanager
async def _failing() -> AsyncIterator[None]:
    """What the storage answers and fails with, as ours. The log has the kind of the error, and nothing it holds."""
    from aiohttp import ClientError as ConnectionFailed
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

    try:
        yield
    except ClientError as error:
        code = _code(error)
        if code in _MISSING:
            raise BlobMissing from None
        log.error("storage_failed", storage="s3", code=code[:64])
        raise storage_failed() from None
    except (BotoCoreError, HTTPClientError, ConnectionFailed, OSError, TimeoutError) as error:
        log.error("storage_failed", storage="s3", error=type(error).__name__)
        raise storage_failed() from None


def _size(file: IO[bytes]) -> int:
    try:
        descriptor = file.fileno()
    except OSError:
        return 0
    file.flush()
    return os.fstat(descriptor).st_size
