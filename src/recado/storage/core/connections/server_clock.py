"""What a database knows of time: what its server's clock shows, and the newest id that it holds."""

from datetime import datetime, timedelta

import structlog

from recado.domain.channels.policies import POLICIES
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource, created_at, lowest_id
from recado.domain.dispatch.leases import MOST_OFFSET_OF_TWO
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("clock")
log = structlog.get_logger(__name__)


async def shown(executor: Executor) -> datetime:
    """The server's present."""
    moment: datetime = await executor.fetchval(SQL.shown)
    return moment


async def newest_id(executor: Executor, after: datetime) -> str | None:
    """The newest id, without its prefix, of those that were made after a moment; None when there is none."""
    newest: str | None = await executor.fetchval(SQL.newest, lowest_id("", after), list(POLICIES))
    return newest


async def continue_ids(executor: Executor, clock: Clock, ids: IdSource) -> None:
    """Let ids be later than those of a process before: order by id is order of creation all the same (C2.1).

    Its clock may have been later, which alone is told of; and it may have made ids until the very end.
    """
    newest = await newest_id(executor, clock.now())
    if newest is None:
        return
    continued = ids.continue_after(newest)
    if created_at(newest) - clock.now() > timedelta(seconds=MOST_OFFSET_OF_TWO):
        log.error("clock_is_behind", newest=created_at(newest).isoformat(), ids_continue=continued)
