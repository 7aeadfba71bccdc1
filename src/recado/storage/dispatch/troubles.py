"""What waits, and what fails, at a glance: for an operator who asks what is wrong."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recado.domain.core.counting import counted
from recado.storage.core.connections.pool import Pool
from recado.storage.core.statements.sql import load

SQL = load("troubles")

MOST_COUNTED: Final = 100_000


@dataclass(frozen=True, slots=True)
class Waiting:
    """How much waits, of at most 100,000 that are counted; since when the oldest of these does, and where."""

    count: int
    oldest: datetime | None
    where: str | None

    def told(self, one: str, many: str) -> str:
        """The number for people, before these words."""
        return f"more than {MOST_COUNTED:,} {many}" if self.count >= MOST_COUNTED else counted(self.count, one, many)


async def ready_messages(database: Pool, now: datetime) -> Waiting:
    """The messages that are due and that no gate holds; `where`: the number of the oldest."""
    return await _waiting(database, SQL.ready_messages, now)


async def due_deliveries(database: Pool, now: datetime) -> Waiting:
    """The webhook deliveries that are due; `where`: the subscription of the oldest."""
    return await _waiting(database, SQL.due_deliveries, now)


async def failing_subscriptions(database: Pool) -> list[str]:
    """The ids of up to ten subscriptions whose endpoint fails, the one that has failed longest first."""
    return [row["id"] for row in await database.fetch(SQL.failing_subscriptions, 10)]


async def _waiting(database: Pool, sql: str, now: datetime) -> Waiting:
    row = await database.fetchrow(sql, now, MOST_COUNTED)
    assert row is not None  # noqa: S101 - an aggregate has a row
    return Waiting(row["count"], row["oldest"], row["place"])
