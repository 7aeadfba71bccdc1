"""A bucket of an S3, or of what speaks like it (C30.4): large binaries go in parts; of those that break, none stays."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any, Final

import structlog

from recado.domain.core.errors import Unavailable
from recado.storage.blobs.blobs import PIECE, SIGNED_SECONDS, BlobMissing, blocks, owner_of, storage_failed
from recado.storage.core.shares.fair_places import FairPlaces

PART: Final = 8 * 1024 * 1024  # bytes
CONNECTIONS: Final = 64
OF_ONE: Final = 32  # connections that work for one organization
MOST_WAITING: Final = 5_000  # calls of an organization
_OWN: Final = ""  # the service itself
_CONNECT, _READ = 5.0, 20.0  # seconds
_MISSING: Final = frozenset({"NoSuchKey", "404", "NotFound"})

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

    async def start(self) -> None:
        from aiobotocore.config import AioConfig
        from aiobotocore.session import get_session

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
        )
        self._client = await self._opened.enter_async_context(
            get_session().create_client(
                "s3", region_name=bucket.region, endpoint_url=bucket.endpoint, config=config,
                aws_access_key_id=bucket.access_key_id, aws_secret_access_key=bucket.secret_access_key,
            )
        )  # fmt: skip

    async def stop(self) -> None:
        self._client = None
        await self._opened.aclose()

    async def write(self, key: str, content: AsyncIterable[bytes], file: IO[bytes] | None = None) -> None:
        client, owner, at = self._ready(), owner_of(key), {"Bucket": self._bucket.name, "Key": key}
        parts = blocks(content, PART)
        first = await anext(parts, b"")
        if len(first) < PART:
            async with self._calling(owner):
                await client.put_object(**at, Body=first)
            return
        async with self._calling(owner):
            upload = {**at, "UploadId": (await client.create_multipart_upload(**at))["UploadId"]}
        try:
            made = [await self._part(owner, upload, 1, first)]
            del first
            async for part in parts:
                made.append(await self._part(owner, upload, len(made) + 1, part))
            async with self._calling(owner):
                await client.complete_multipart_upload(**upload, MultipartUpload={"Parts": made})
        except BaseException:
            await asyncio.shield(self._abort(upload))
            raise

    async def _part(self, owner: str, upload: dict[str, Any], number: int, body: bytes) -> dict[str, Any]:
        async with self._calling(owner):
            answer = await self._ready().upload_part(**upload, PartNumber=number, Body=body)
        return {"PartNumber": number, "ETag": answer["ETag"]}

    async def _abort(self, upload: dict[str, Any]) -> None:
        """The parts that are there go; where the storage does not answer, by the bucket's own rule."""
        with suppress(Exception):
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

    async def delete(self, key: str) -> None:
        async with self._calling(owner_of(key)):
            await self._ready().delete_object(Bucket=self._bucket.name, Key=key)

    async def signed_url(self, key: str, content_type: str, disposition: str, now: datetime) -> str:
        said = {"ResponseContentType": content_type, "ResponseContentDisposition": disposition}
        async with _failing():
            url: str = await self._ready().generate_presigned_url(
                "get_object", Params={"Bucket": self._bucket.name, "Key": key, **said}, ExpiresIn=SIGNED_SECONDS
            )
        return url

    async def check(self) -> None:
        async with self._calling(_OWN, looks=True):
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


@asynccontextmanager
async def _failing() -> AsyncIterator[None]:
    """What the storage answers and fails with, as ours. The log has the kind of the error, and nothing it holds."""
    from aiohttp import ClientError as ConnectionFailed
    from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _MISSING:
            raise BlobMissing from None
        log.error("storage_failed", storage="s3", code=code[:64])
        raise storage_failed() from None
    except (BotoCoreError, HTTPClientError, ConnectionFailed, OSError, TimeoutError) as error:
        log.error("storage_failed", storage="s3", error=type(error).__name__)
        raise storage_failed() from None
