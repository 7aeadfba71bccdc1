"""Rows of the queue that wait without a moment for what is over, though nobody released them.

The process died, or the database was away, between a change and the release that follows from it. What is held is read
page by page: a look has an end however much of it there is.
"""

from dataclasses import dataclass
from typing import Final

from recado.domain.channels.chatapp import TEMPLATE_WAITS
from recado.domain.channels.policies import HELD_WITHOUT_MOMENT
from recado.domain.senders.number import NumberStatus
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("overtaken")

_SENDS_SOMETHING: Final = [NumberStatus.CONNECTED.value, NumberStatus.FLAGGED.value]
_REASONS: Final = [reason.value for reason in HELD_WITHOUT_MOMENT]
_TEMPLATE_WAITS: Final = [status.value for status in TEMPLATE_WAITS]


@dataclass(frozen=True, slots=True)
class WaitingGroup:
    """The rows of a number that wait for the same reason."""

    organization_id: str
    sender_id: str
    reason: str


FIRST: Final = WaitingGroup("", "", "")


@dataclass(frozen=True, slots=True)
class OvertakenPage:
    """One page of a group: how many rows it has, the id of the last one, and how many of them are ready again."""

    rows: int
    last: str | None
    released: int


async def groups(executor: Executor, since: WaitingGroup = FIRST) -> list[WaitingGroup]:
    """What may be overtaken, in the order of the index, from `since` on."""
    position = (since.organization_id, since.sender_id, since.reason)
    rows = await executor.fetch(SQL.groups, *position, _SENDS_SOMETHING, _REASONS)
    return [WaitingGroup(row["organization_id"], row["sender_id"], row["reason"]) for row in rows]


async def release(executor: Executor, group: WaitingGroup, after: str = "", *, limit: int) -> OvertakenPage:
    """Make the rows of one page ready whose reason is gone."""
    row = await executor.fetchrow(
        SQL.release, group.organization_id, group.sender_id, group.reason, after, _TEMPLATE_WAITS, limit
    )
    return OvertakenPage(row["rows"], row["last"], row["released"])
