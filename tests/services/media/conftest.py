"""Uploads, their use and copies of what came, with a provider of media that does as it is told."""

import asyncio
import io
import os
import random
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from recado.channels.core.errors import ProviderError
from recado.channels.core.media import OpenMedia
from recado.channels.core.provider import Account
from recado.domain.core.ids import NUMBER, SOCIAL_ACCOUNT, IdSource, lowest_id
from recado.domain.senders.social_account import Platform, SocialAccountStatus
from recado.engine.clock import VirtualClock
from recado.services.media.blob_sweep import BlobSweep
from recado.services.media.file_work import FileWork
from recado.services.media.inbound_copies import InboundCopies
from recado.services.media.media_senders import MediaSender, MediaSenders
from recado.services.media.media_use import MediaUse
from recado.services.media.new_blobs import NewBlobs
from recado.services.media.provider_media import ProviderMedia
from recado.services.media.uploads import Upload, Uploads
from recado.storage.blobs.local import LocalBlobs
from recado.storage.blobs.signed_links import SignedLinks
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.media.media import MediaDirectory
from recado.storage.senders.numbers import Number
from recado.storage.senders.social_accounts import SocialAccount

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
ORGANIZATION = "org_000000000000000000000"


class Provider:
    """`fails`: what its next operations raise, None: they succeed."""

    def __init__(self) -> None:
        self.fails: deque[Exception | None] = deque()
        self.taken: list[tuple[str, bytes]] = []
        self.holds: dict[str, bytes] = {}
        self.holds_back: dict[str, asyncio.Event] = {}  # until then nothing of it comes
        self.said_size = 0  # more than there is

    async def upload_media(
        self, account: Account, content: AsyncIterable[bytes | memoryview], *, size: int, mime_type: str, filename: str
    ) -> str:
        self._fail()
        came = b"".join([chunk async for chunk in content])
        assert len(came) == size
        self.taken.append((account.provider_id, came))
        return f"theirs-{len(self.taken)}"

    @asynccontextmanager
    async def open_media(self, account: Account, media_ref: str) -> AsyncIterator[OpenMedia]:
        self._fail()
        content = self.holds[media_ref]

        async def chunks() -> AsyncIterator[bytes]:
            if media_ref in self.holds_back:
                await self.holds_back[media_ref].wait()
            yield content

        yield OpenMedia("image/png", len(content) + self.said_size, None, chunks())

    def _fail(self) -> None:
        error = self.fails.popleft() if self.fails else None
        if error is not None:
            raise error


class Numbers:
    """Two of an organization."""

    def __init__(self) -> None:
        self.known = [number(n) for n in range(2)]

    async def get(self, key: tuple[str, str, str]) -> Number | None:
        return next((each for each in self.known if (each.organization_id, each.env, each.id) == key), None)


class Accounts:
    """One of the same organization."""

    known = SocialAccount(
        organization_id=ORGANIZATION, env="test", id=lowest_id(SOCIAL_ACCOUNT, NOW), platform=Platform.PAGE,
        external_account_id="page-1", display_name="Padaria", status=SocialAccountStatus.CONNECTED,
        updated_at=NOW,
    )  # fmt: skip

    async def get(self, key: tuple[str, str, str]) -> SocialAccount | None:
        return self.known if key == (ORGANIZATION, "test", self.known.id) else None


def number(n: int) -> Number:
    return Number(
        organization_id=ORGANIZATION,
        id=lowest_id(NUMBER, NOW)[:-1] + str(n),
        env="test",
        phone_number_id=f"phone-{n}",
        business_account_id="business",
        display_phone="+5511900000000",
        updated_at=NOW,
    )


@dataclass
class Shelf:
    db: Database
    clock: VirtualClock
    provider: Provider
    numbers: Any
    blobs: LocalBlobs
    folder: Path
    use: MediaUse
    uploads: Uploads
    copies: InboundCopies
    sweep: BlobSweep
    ids: IdSource
    until: list[datetime | None] = field(default_factory=list)

    async def sender(self, channel: str = "chatapp", sender_id: str = "") -> MediaSender:
        """The first number, unless said."""
        found = await self.use.senders.get(channel, (ORGANIZATION, "test", sender_id or self.numbers.known[0].id))
        assert found is not None
        return found

    def files(self) -> list[Path]:
        return [path for path in self.folder.rglob("*") if path.is_file()]

    async def count(self, table: str) -> int:
        return int(await self.db.fetchval(f"select count(*) from {table}"))


def upload(content: bytes, declared: str = "image/png") -> Upload:
    return Upload(io.BytesIO(content), len(content), sha256(content).hexdigest(), declared, "dot.png", "/dataBase64")


def refused(code: str = "media_invalid") -> ProviderError:
    return ProviderError("refused", code, "no")


def unreachable() -> ProviderError:
    return ProviderError("unreachable", "no_answer", "nothing came")


@pytest.fixture
async def shelf(database: Database, tmp_path: Path) -> AsyncIterator[Shelf]:
    clock, provider, numbers = VirtualClock(NOW), Provider(), Numbers()
    folder = tmp_path / "media"
    blobs, files = LocalBlobs(folder, SignedLinks("http://here", b"k" * 32)), FileWork()
    keys = KeyRing.parse("k1:" + "A" * 43 + "=")
    senders = MediaSenders(numbers=numbers, social_accounts=Accounts(), keys=keys)
    known: Any = {"senders": senders, "media_for": lambda channel, env: provider}
    use = MediaUse(database, blobs=blobs, directory=MediaDirectory(database, clock=clock), clock=clock, **known)
    ids = IdSource(clock, random.Random(1))
    until: list[datetime | None] = [None]
    new = NewBlobs(database, blobs=blobs, clock=clock, random_bytes=os.urandom)

    async def confirmed_until() -> datetime | None:
        return until[0]

    await blobs.start()
    await files.start()
    yield Shelf(
        database, clock, provider, numbers, blobs, folder, use,
        Uploads(database, blobs=new, use=use, files=files, clock=clock, ids=ids),
        InboundCopies(database, blobs=new, provider=ProviderMedia(**known), clock=clock),
        BlobSweep(database, blobs=blobs, clock=clock, confirmed_until=confirmed_until), ids, until,
    )  # fmt: skip
    await files.stop()
    await blobs.stop()
