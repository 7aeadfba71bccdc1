"""The queue of a database that was restored from a backup, ended so that nothing leaves twice."""

from dataclasses import dataclass
from datetime import datetime

from recado.storage.core.connections.pool import Pool
from recado.storage.core.statements.sql import load

SQL = load("restored")

_LONG = 24 * 3600.0  # seconds; a long queue takes what it takes


@dataclass(frozen=True, slots=True)
class Ended:
    """How many messages were ended; `scheduled`: those among them whose moment was still to come."""

    messages: int
    scheduled: int


async def end_queue(database: Pool, now: datetime) -> Ended:
    """Fail everything that is queued or being sent as `outcome_unknown`, and cancel open batches.

    In one transaction, while no service runs on the database. What is held for the messages is released.
    """
    async with database.transaction() as connection:
        await connection.execute(SQL.end_batches, now, timeout=_LONG)
        await connection.execute(SQL.end_blocks, timeout=_LONG)
        await connection.execute(SQL.end_claims, timeout=_LONG)
        await connection.execute(SQL.end_replies, timeout=_LONG)
        [ended] = await connection.fetch(SQL.end_queue, now, timeout=_LONG)
    return Ended(ended["messages"], ended["scheduled"])
