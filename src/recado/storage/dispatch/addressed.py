"""Counts whom a number has written to in a day from its messages, when a limit comes to its tier (C14.5.5)."""

from datetime import datetime, timedelta

from recado.domain.senders.sender import SenderKey
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("addressed")

BLOCK = 5_000  # messages of the organization, whose ever they are
DAY, MINUTE = timedelta(days=1), timedelta(minutes=1)


async def count(executor: Executor, sender: SenderKey, now: datetime) -> None:
    """Keep whom the number has addressed within a day, as its claims would have done; a block a statement.

    Nothing may be claimed meanwhile that would count.
    """
    organization_id, env, channel, sender_id = sender
    since = now - DAY
    block: str | None = await executor.fetchval(SQL.oldest, organization_id, sender_id, since - MINUTE)
    while block is not None:
        block = await executor.fetchval(SQL.count_block, organization_id, env, channel, sender_id, block, BLOCK, since)
