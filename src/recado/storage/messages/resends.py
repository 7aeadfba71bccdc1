"""The messages that a resend is about, as they failed (C15.4)."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import MESSAGE, lowest_id
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import fragments
from recado.storage.messages.message_reads import AFTER_ALL_IDS, READ_LIMIT

SQL = fragments("resends")


@dataclass(frozen=True, slots=True)
class Old:
    """A message that somebody wants sent again. `payload`, `template_vars`, `metadata` and `details` are JSON texts."""

    id: str
    direction: str
    status: str
    type: str
    sender_id: str | None
    recipient: str
    recipient_hash: int | None  # None: it was erased with its contact (C12.6)
    template_id: str | None
    payload: str | None
    template_vars: str | None
    metadata: str | None
    campaign_id: str | None
    contact_id: str | None
    outcome_certain: bool | None
    replaced_by: str | None
    units: int
    details: str | None

    @property
    def uncertain(self) -> bool:
        """Whether it may have left."""
        return self.outcome_certain is False


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFilter:
    """Failed messages of a batch or a campaign; a period holds those created in [start, end)."""

    batch_id: str | None = None
    campaign_id: str | None = None
    sender_id: str | None = None
    start: datetime | None = None
    end: datetime | None = None


read = reader(Old)


async def by_ids(executor: Executor, organization_id: str, env: str, channel: str, ids: Sequence[str]) -> list[Old]:
    """Those of a channel's messages that exist here."""
    return [read(row) for row in await executor.fetch(SQL.by_ids, organization_id, env, list(ids), channel)]


async def failed(
    executor: Executor, organization_id: str, env: str, channel: str, wanted: FailedFilter, limit: int
) -> list[Old]:
    """What the filter finds that nothing replaced yet, up to `limit`.

    Raises `Unavailable` when the database does not find it in five seconds.
    """
    statement, arguments = _query(SQL.failed, organization_id, env, channel, wanted, limit)
    async with _in_time():
        return [read(row) for row in await executor.fetch(statement, *arguments)]


async def replaced(executor: Executor, organization_id: str, env: str, channel: str, wanted: FailedFilter) -> int:
    """How many of what the filter finds were replaced already; raises as `failed`."""
    statement, arguments = _query(SQL.replaced, organization_id, env, channel, wanted)
    async with _in_time():
        count: int = await executor.fetchval(statement, *arguments)
    return count


def _query(
    text: str, organization_id: str, env: str, channel: str, wanted: FailedFilter, limit: int | None = None
) -> tuple[str, list[Any]]:
    values = {
        "organization_id": organization_id,
        "env": env,
        "channel": channel,
        "first_id": MESSAGE if wanted.start is None else lowest_id(MESSAGE, wanted.start),
        "before_id": AFTER_ALL_IDS if wanted.end is None else lowest_id(MESSAGE, wanted.end),
        "batch_id": wanted.batch_id,
        "campaign_id": wanted.campaign_id,
        "sender_id": wanted.sender_id,
        "limit": limit,
    }
    given = [
        (wanted.batch_id, SQL.if_batch),
        (wanted.campaign_id, SQL.if_campaign),
        (wanted.sender_id, SQL.if_number),
    ]
    conditions = "\n".join(condition for value, condition in given if value is not None)
    return compose(text.replace("{which}", SQL.which).replace("{conditions}", conditions), values)


@asynccontextmanager
async def _in_time() -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(READ_LIMIT):
            yield
    except TimeoutError:
        raise Unavailable("The search took too long: narrow the filter with a period.") from None


async def counterparts(
    executor: Executor, organization_id: str, env: str, template_ids: Collection[str], sender_id: str
) -> Mapping[str, str]:
    """By template: the one of another number that has its name and language."""
    rows = await executor.fetch(SQL.counterparts, organization_id, env, sorted(template_ids), sender_id)
    return {row["id"]: row["counterpart"] for row in rows}
