"""What callers uploaded (C8.2): its form, its copy in the storage, and what each sender's provider calls it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.ids import Identified
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor, in_blocks
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table

KEPT: Final = timedelta(days=30)
_BLOCK: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMedia(Identified):
    """One upload, to a number or a social account. `size` in bytes; `sha256` in hex; `provider_ids`: by sender."""

    organization_id: str
    env: str
    id: str
    number_id: str | None
    social_account_id: str | None
    kind: str
    mime_type: str
    filename: str = field(repr=False)
    size: int
    sha256: str
    voice: bool
    blob_key: str
    provider_ids: Mapping[str, str]
    expires_at: datetime


MEDIA: Final = Table("media", KeptMedia, "media", own=load("media"))
SQL = MEDIA.sql
get, insert = MEDIA.get, MEDIA.insert


async def at_sender(executor: Executor, media: KeptMedia, sender_id: str, provider_id: str) -> None:
    """The provider of another number or account has it too."""
    await executor.execute(SQL.at_sender, media.organization_id, media.env, media.id, sender_id, provider_id)


async def purge(executor: Executor, now: datetime) -> None:
    """Forget what is past its time; its binary goes by its own."""
    await in_blocks(executor, SQL.purge, now, block=_BLOCK)


MediaKey = tuple[str, str, str]  # organization, environment, media


class MediaDirectory(Directory[MediaKey, KeptMedia]):
    """Uploads that exist, read through, at most 5 s old."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda key: get(executor, *key), clock=clock)
