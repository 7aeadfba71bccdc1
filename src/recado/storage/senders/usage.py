"""What went through a number: read from stored minute counters, never from a scan of messages (C14.4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.messages.message import CLASSES
from recado.domain.senders.sender import SenderKey
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("usage")

LOOKED_AT = 200_000
"""Messages of its organization among which the recipients of a number without a limit are counted: some 0.2 s."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Sends in a window. `marketing` is None when the category of some template message was not recorded."""

    sent: int
    marketing: int | None


async def totals(executor: Executor, organization_id: str, sender_id: str, since: datetime, until: datetime) -> Usage:
    """Messages that left in [since, until); `since` is a whole minute."""
    row = await executor.fetchrow(SQL.totals, organization_id, sender_id, since, until)
    return Usage(row["sent"], None if row["uncategorized"] else row["marketing"])


async def series(
    executor: Executor,
    organization_id: str,
    sender_id: str,
    since: datetime,
    until: datetime,
    starts: Sequence[datetime],
) -> list[int]:
    """Messages that left, per bucket of `starts` (ascending, the first not after `since`); empty ones are 0."""
    sent = [0] * len(starts)
    for row in await executor.fetch(SQL.series, organization_id, sender_id, since, until, list(starts)):
        sent[row["bucket"] - 1] = row["sent"]
    return sent


async def waiting(executor: Executor, organization_id: str, sender_id: str) -> dict[str, int]:
    """Messages of the number that have not left, by class."""
    rows = await executor.fetch(SQL.waiting, organization_id, sender_id)
    counted = {row["class"]: row["waiting"] for row in rows}
    return {priority.value: counted.get(index, 0) for index, priority in enumerate(CLASSES)}


async def unique_recipients(executor: Executor, organization_id: str, sender_id: str, since: datetime) -> int:
    """Distinct recipients of business-initiated messages after `since`, of a number whose tier has a limit (C14.5)."""
    count: int = await executor.fetchval(SQL.recipients, organization_id, sender_id, since)
    return count


async def addressed(executor: Executor, sender: SenderKey, since: datetime) -> int:
    """The same of a number without a limit: at least so many, when its organization has made more than `LOOKED_AT`."""
    organization_id, env, channel, sender_id = sender
    count: int = await executor.fetchval(SQL.addressed, organization_id, sender_id, env, channel, since, LOOKED_AT)
    return count
