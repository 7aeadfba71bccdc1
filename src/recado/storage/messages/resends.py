"""The messages that a resend is about, as they failed (C15.4)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.storage.core.connections.read_limit import in_time
from recado.storage.core.statements.compose import compose
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import fragments
from recado.storage.messages.message_reads import AFTER_ALL_IDS

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
MEASURE = SQL.measure.replace("{held}", SQL.held)
SIZE = SQL.size.replace("{held}", SQL.held)
_NARROWER = "narrow the filter with a period"


async def by_ids(executor: Executor, organization_id: str, env: str, channel: str, ids: Sequence[str]) -> list[Old]:
    """Those of a channel's messages that exist here."""
    return [read(row) for row in await executor.fetch(SQL.by_ids, organization_id, env, list(ids), channel)]


async def size(executor: Executor, organization_id: str, env: str, channel: str, ids: Sequence[str]) -> int:
    """The bytes of content of these."""
    found: int = await executor.fetchval(SIZE, organization_id, env, list(ids), channel)
    return found


async def measure(
    executor: Executor, organization_id: str, env: str, channel: str, wanted: FailedFilter, limit: int
) -> tuple[int, int]:
    """How many messages the filter finds that nothing replaced yet, up to `limit`, and the bytes of their content.

    Raises `Unavailable` when the database does not find it in five seconds.
    """
    statement, arguments = _query(MEASURE, organization_id, env, channel, wanted, limit)
    async with in_time(_NARROWER):
        row = await executor.fetchrow(statement, *arguments)
    assert row is not None  # noqa: S101 - an aggregate
    return row["messages"], row["bytes"]


async def failed(
    executor: Executor, organization_id: str, env: str, channel: str, wanted: FailedFilter, limit: int
) -> list[Old]:
    """These messages, up to `limit`; raises as `measure`."""
    statement, arguments = _query(SQL.failed, organization_id, env, channel, wanted, limit)
    async with in_time(_NARROWER):
        return [read(row) for row in await executor.fetch(statement, *arguments)]


async def replaced(executor: Executor, organization_id: str, env: str, channel: str, wanted: FailedFilter) -> int:
    """How many of what the filter finds were replaced already; raises as `measure`."""
    statement, arguments = _query(SQL.replaced, organization_id, env, channel, wanted)
    async with in_time(_NARROWER):
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


async def counterparts(
    executor: Executor, organization_id: str, env: str, template_ids: Collection[str], sender_id: str
) -> Mapping[str, str]:
    """By template: the one of another number that has its name and language."""
    rows = await executor.fetch(SQL.counterparts, organization_id, env, sorted(template_ids), sender_id)
    return {row["id"]: row["counterpart"] for row in rows}
