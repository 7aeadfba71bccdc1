"""What is due for messages that have left, as rows: noted when they leave, gone when they move on, or when it is due.

A row may hold a part of the message's price, which is released with it (C25.2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.channels.policies import POLICIES
from recado.storage.core.moves import Moved
from recado.storage.core.rows import Executor, columns, reader
from recado.storage.core.sql import load

SQL = load("message_deadlines")


@dataclass(frozen=True, slots=True)
class DueDeadline:
    """Something that was due for a message, and the coins that were held until then."""

    organization_id: str
    env: str
    channel: str
    message_id: str
    kind: str
    due_at: datetime
    held_coins: int


_read = reader(DueDeadline)


async def any_due(executor: Executor, now: datetime) -> bool:
    """Whether `take` would find something."""
    found: bool = await executor.fetchval(SQL.any, now)
    return found


async def take(connection: Executor, now: datetime, limit: int) -> list[DueDeadline]:
    """Take one block of what is due, in a transaction, in the order of the messages' ids."""
    rows = [_read(row) for row in await connection.fetch(SQL.take, now, limit)]
    return sorted(rows, key=lambda row: (row.message_id, row.kind))


async def put_off(executor: Executor, now: datetime, until: datetime) -> None:
    """Let what `take` would take first wait."""
    await executor.execute(SQL.put_off, now, until)


async def end(connection: Executor, moved: Sequence[Moved]) -> dict[str, int]:
    """Nothing is due any more for these messages, which the transaction has locked.

    Answers, by message, the coins that were held with what was. What another transaction is taking is left to it.
    """
    keys = sorted((move.organization_id, move.id) for move in moved)
    rows = await connection.fetch(SQL.end, *columns(keys, 2))
    return {row["message_id"]: row["held_coins"] for row in rows}


async def note(connection: Executor, moved: Sequence[Moved]) -> None:
    """Something is due for these messages, which have left, by the policies of their channels."""
    kept = {move.id: 0 if move.money is None else move.money.kept for move in moved}
    keys = [(move.organization_id, move.env, move.channel, move.id) for move in moved]
    deadlines = [
        (*key, each.kind, each.due_at, kept[row["id"]] if each.holds_rest else 0)
        for row in await connection.fetch(SQL.left, *columns(keys, 4))
        for key in [(row["organization_id"], row["env"], row["channel"], row["id"])]
        for each in POLICIES[row["channel"]].deadlines(row["details"], row["sent_at"])
    ]
    if deadlines:
        await connection.execute(SQL.add, *columns(deadlines, 7))
