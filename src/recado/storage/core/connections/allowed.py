"""How many connections a database allows."""

from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("allowed")


async def connections_allowed(executor: Executor) -> int:
    """In all, of this user and to this database: the least of these."""
    allowed: int = await executor.fetchval(SQL.allowed)
    return allowed
