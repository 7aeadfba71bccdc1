"""Queued messages of journeys (C9.12): which journeys hold theirs back, or did, and their rows of the queue."""

from datetime import UTC, datetime, timedelta
from typing import Final

from recado.domain.messages.owner_pauses import OwnerPauses
from recado.domain.senders.sender import SenderKey
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import load
from recado.storage.journeys.states import JourneyKey

SQL: Final = load("journey_queues")

Position = tuple[str, str]
"""The sender and the id of a queued message."""

FIRST: Final[Position] = ("", "")
EVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
ARCHIVED_FOR: Final = timedelta(days=30)
"""Until when the pauses of a replaced version are known after its end, as its last messages may still wait."""

_read: Final = reader(OwnerPauses, past=tuple)


async def stood_still(executor: Executor, now: datetime, since: datetime = EVER) -> list[OwnerPauses]:
    """The journeys that are paused or were, of those that were moved since then."""
    return [_read(row) for row in await executor.fetch(SQL.stood_still, since, now - ARCHIVED_FOR)]


async def senders(executor: Executor, key: JourneyKey) -> list[SenderKey]:
    """The senders that its messages wait for."""
    organization_id, env, journey_id = key
    rows = await executor.fetch(SQL.senders, organization_id, journey_id)
    return [SenderKey(organization_id, env, row["channel"], row["sender_id"]) for row in rows]


async def hold(executor: Executor, key: JourneyKey, after: Position = FIRST, *, limit: int) -> list[Position]:
    """Take one block of the ready rows of a paused journey out of the ready index; answers which, in their order."""
    rows = await executor.fetch(SQL.hold, *key, *after, limit)
    return sorted((row["sender_id"], row["id"]) for row in rows)
