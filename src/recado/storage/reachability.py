"""On which channels contacts cannot be reached: set by a provider's final word, cleared by a delivery (C13.2)."""

from collections.abc import Sequence

from recado.storage.rows import Executor, columns
from recado.storage.sql import load

SQL = load("reachability")

Environment = tuple[str, str]
"""Organization, environment."""

Told = tuple[str, str, str]
"""A message that told something: organization, environment, id."""


async def mark(executor: Executor, failed: Sequence[Told], channel: str) -> set[Environment]:
    """Mark the recipients of messages that failed because nobody is there; answers where there is a mark now."""
    rows = await executor.fetch(SQL.mark, *columns(list(failed), 3), channel)
    return {(row["organization_id"], row["env"]) for row in rows}


async def clear(executor: Executor, reached: Sequence[Told], channel: str) -> None:
    """Take the mark from the recipients of messages that arrived."""
    await executor.execute(SQL.clear, *columns(list(reached), 3), channel)


async def any_marked(executor: Executor, environment: Environment) -> bool:
    """Whether anybody there is marked."""
    found: bool = await executor.fetchval(SQL.any_marked, *environment)
    return found
