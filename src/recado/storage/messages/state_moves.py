"""Moves messages by an event of their channel's machine, many at once, where their state still knows it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from recado.domain.channels.policies import POLICIES
from recado.domain.messages.message import REACHED_AT, Cause, MessageEvent, MessageStatus
from recado.storage.core.statements.moves import Moved
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("state_moves")

MessageKey = tuple[str, str, str]
"""Organization, environment, message."""


async def move(
    connection: Executor,
    channel: str,
    messages: Sequence[MessageKey],
    event: MessageEvent,
    at: datetime,
    cause: Cause | None = None,
) -> list[Moved]:
    """Move messages of one channel, in a transaction; answers what this moved. `cause`: why they fail by it.

    They are not put away by it: what is archived keeps why it failed.
    """
    machine = POLICIES[channel].machine
    targets = {state: machine.move(state, event) for state in machine.sources(event)}
    moved, given = [], []
    for row in await connection.fetch(SQL.lock, *columns(list(messages), 3), channel, list(targets)):
        target = targets[MessageStatus(row["status"])]
        moved.append(_moved(row, channel, target))
        given.append((row["organization_id"], row["env"], channel, row["id"], target, REACHED_AT.get(target)))
    if moved:
        told = (None, None, None) if cause is None else (cause.last_error, cause.code, cause.certain)
        await connection.execute(SQL.move, *columns(given, 6), at, *told)
    return moved


async def stay(connection: Executor, channel: str, messages: Sequence[MessageKey]) -> list[Moved]:
    """Moves of coins alone, one for each of these messages of a channel, which stay as they are."""
    rows = await connection.fetch(SQL.as_they_are, *columns(list(messages), 3), channel)
    return [replace(_moved(row, channel, row["status"]), quiet=True) for row in rows]


def _moved(row: Any, channel: str, to_status: str) -> Moved:
    return Moved(
        row["organization_id"],
        row["env"],
        channel,
        row["id"],
        row["status"],
        to_status,
        batch_id=row["batch_id"],
        campaign_id=row["campaign_id"],
    )
