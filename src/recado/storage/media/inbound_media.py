"""The media of messages that came (C8.3): where it is at the provider, and its copy in the storage."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import orjson

from recado.domain.core.timestamps import format_timestamp
from recado.storage.core.statements.rows import Executor, columns, in_blocks, reader
from recado.storage.core.statements.sql import load
from recado.storage.media.kept_blobs import WRITTEN_AND_GONE

SQL = load("inbound_media")

KEPT: Final = timedelta(days=365)
_BLOCK: Final = 1_000


@dataclass(frozen=True, slots=True)
class InboundMedia:
    """`reference`: what its provider calls it; `mime_type`: what it says it is. Without a copy the rest is None."""

    organization_id: str
    env: str
    message_id: str
    channel: str
    sender_id: str
    reference: str = field(repr=False)
    mime_type: str
    filename: str | None = field(repr=False)
    attempts: int
    expires_at: datetime
    blob_key: str | None = None
    stored_type: str | None = None
    size: int | None = None
    stored_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Expected:
    """What came with a message that is being stored."""

    organization_id: str
    env: str
    channel: str
    message_id: str
    sender_id: str
    reference: str = field(repr=False)
    mime_type: str
    filename: str | None = field(repr=False)


_read = reader(InboundMedia)


async def expect(executor: Executor, came: Sequence[Expected], now: datetime) -> None:
    """Note, in the commit that stores the messages, what is to be copied."""
    rows = [
        (
            each.organization_id,
            each.env,
            each.channel,
            each.message_id,
            each.sender_id,
            each.reference,
            each.mime_type,
            each.filename,
        )
        for each in came
    ]
    await executor.execute(SQL.expect, *columns(rows, 8), now, now + KEPT)


async def get(
    executor: Executor, organization_id: str, env: str, message_id: str, now: datetime
) -> InboundMedia | None:
    row = await executor.fetchrow(SQL.get, organization_id, env, message_id, now)
    return None if row is None else _read(row)


async def size_of(executor: Executor, organization_id: str, env: str, blob_key: str) -> int | None:
    """Bytes of a copy."""
    size: int | None = await executor.fetchval(SQL.size_of, organization_id, env, blob_key)
    return size


async def due(executor: Executor, now: datetime, limit: int, each: int) -> list[InboundMedia]:
    """What is to be copied now, at most `each` of an organization."""
    return [_read(row) for row in await executor.fetch(SQL.due, now, limit, each)]


async def tried(executor: Executor, media: InboundMedia, again_at: datetime | None) -> None:
    """A copy failed; None: there will be no other try."""
    await executor.execute(SQL.tried, media.organization_id, media.env, media.message_id, again_at)


async def stored(
    executor: Executor, media: InboundMedia, blob_key: str, mime_type: str, size: int, now: datetime
) -> bool:
    """The copy is there, and the message shows it; False where the message is erased, or was copied before."""
    shown = {"mimeType": mime_type, "size": size, "storedAt": format_timestamp(now)}
    key = (media.organization_id, media.env, media.channel, media.message_id)
    text = orjson.dumps(shown).decode()
    found: bool = await executor.fetchval(SQL.stored, *key, blob_key, mime_type, size, now, text)
    return found


async def erase(executor: Executor, organization_id: str, env: str, message_ids: Sequence[str]) -> None:
    """Forget the media of messages, with the copies (C12.6)."""
    await executor.execute(SQL.erase, organization_id, env, list(message_ids), WRITTEN_AND_GONE)


async def purge(executor: Executor, now: datetime) -> None:
    """Forget what is past its time; its binary goes by its own."""
    await in_blocks(executor, SQL.purge, now, block=_BLOCK)
