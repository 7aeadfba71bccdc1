"""What is due for messages that have left, as rows: noted when they leave, gone when they move on, or when it is due.

A row may hold a part of the message's price, which is released with it (C25.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from recado.domain.channels.policies import POLICIES
from recado.domain.journeys.belonging import Belonging
from recado.storage.core.statements.moves import Moved
from recado.storage.core.statements.rows import Executor, columns, reader
from recado.storage.core.statements.sql import load

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


@dataclass(frozen=True, slots=True)
class DueMessage(DueDeadline):
    """The same, with its message as it has left. `held_ms`: for which its organization was ever suspended, which ended
    at `held_until` at the latest.
    """

    provider_message_id: str | None
    recipient: str
    details: Mapping[str, Any]
    sent_at: datetime
    held_ms: int
    held_until: datetime


_read = reader(DueDeadline)
_read_message = reader(DueMessage)
_read_belonging = reader(Belonging)


async def any_due(executor: Executor, now: datetime, but: Sequence[str] = ()) -> bool:
    """Whether `take` would find something."""
    found: bool = await executor.fetchval(SQL.any, now, list(but))
    return found


async def take(connection: Executor, now: datetime, limit: int, but: Sequence[str] = ()) -> list[DueDeadline]:
    """Take one block of what is due, `but` these kinds, in a transaction, in the order of the messages' ids."""
    rows = [_read(row) for row in await connection.fetch(SQL.take, now, limit, list(but))]
    return sorted(rows, key=lambda row: (row.message_id, row.kind))


async def put_off(executor: Executor, now: datetime, until: datetime, but: Sequence[str] = ()) -> None:
    """Let what `take` would take first wait."""
    await executor.execute(SQL.put_off, now, until, list(but))


async def due_fallbacks(executor: Executor, now: datetime, limit: int, each: int) -> list[DueMessage]:
    """Fallbacks that are due, at most `each` of an organization, with what is asked of their messages; they stay."""
    return [_read_message(row) for row in await executor.fetch(SQL.due_fallbacks, now, limit, each)]


async def take_one(connection: Executor, due: DueDeadline) -> int | None:
    """Take this one, in a transaction; the coins that it held, None when it is gone."""
    found: int | None = await connection.fetchval(SQL.take_one, due.organization_id, due.message_id, due.kind)
    return found


async def hold_belonging(connection: Executor, due: DueDeadline) -> None:
    """Let its message, and whom that belongs to, stay as they are until the commit."""
    await connection.execute(SQL.hold_belonging, due.organization_id, due.env, due.channel, due.message_id)


async def belonging(executor: Executor, due: DueDeadline) -> Belonging | None:
    """Whom its message belongs to, as they are now; None: there is no such message any more."""
    row = await executor.fetchrow(SQL.belonging, due.organization_id, due.env, due.channel, due.message_id)
    return None if row is None else _read_belonging(row)


async def put_off_one(executor: Executor, due: DueDeadline, until: datetime) -> None:
    """Let this one wait."""
    await executor.execute(SQL.put_off_one, due.organization_id, due.message_id, due.kind, until)


async def end(connection: Executor, moved: Sequence[Moved]) -> dict[str, int]:
    """Nothing is due any more for these messages, which the transaction has locked.

    Answers, by message, the coins that were held with what was. What another transaction is taking is left to it.
    """
    keys = sorted((move.organization_id, move.id) for move in moved)
    rows = await connection.fetch(SQL.end, *columns(keys, 2))
    return {row["message_id"]: row["held_coins"] for row in rows}


async def details_of(connection: Executor, moved: Sequence[Moved]) -> dict[str, Mapping[str, Any]]:
    """What their channels alone know of these messages, by id."""
    keys = [(move.organization_id, move.env, move.channel, move.id) for move in moved]
    return {row["id"]: row["details"] or {} for row in await connection.fetch(SQL.left, *columns(keys, 4))}


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
