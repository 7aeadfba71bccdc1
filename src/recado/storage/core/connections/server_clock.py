"""What a database knows of time: what its server's clock shows, and the newest id that it holds."""

from datetime import datetime

from recado.domain.channels.policies import POLICIES
from recado.domain.core.ids import lowest_id
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("clock")


async def shown(executor: Executor) -> datetime:
    """The server's present."""
    moment: datetime = await executor.fetchval(SQL.shown)
    return moment


async def newest_id(executor: Executor, after: datetime) -> str | None:
    """The newest id, without its prefix, of those that were made after a moment; None when there is none."""
    newest: str | None = await executor.fetchval(SQL.newest, lowest_id("", after), list(POLICIES))
    return newest
