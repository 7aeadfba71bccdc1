"""Waiting for what another process does: on a condition that can be observed, with a deadline; never for a time."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from recado.storage.core.connections.postgres import Database

T = TypeVar("T")

LOOK_EVERY = 0.02  # seconds
PATIENCE = 60.0
"""Seconds that anything may take where a machine is busy with others: a deadline that is met costs nothing."""


async def until(
    condition: Callable[[], T | Awaitable[T]], what: str, *, limit: float = 0.0, every: float = LOOK_EVERY
) -> T:
    """The condition's first truthy value, looked for again and again; AssertionError after PATIENCE.

    `limit`: seconds, of what may take longer than that. What has to be soon, a test measures. `what` ends the sentence
    "after 60 s still waiting until …".
    """
    limit = max(limit, PATIENCE)
    loop = asyncio.get_running_loop()
    give_up_at = loop.time() + limit
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if loop.time() >= give_up_at:
            raise AssertionError(f"after {limit:g} s still waiting until {what}; last seen: {value!r}")
        await asyncio.sleep(every)


async def until_locked_out(database: Database, count: int = 1) -> None:
    """Until so many sessions of this database wait for what others hold."""

    async def enough() -> bool:
        return await locked_out(database) >= count

    await until(enough, f"{count} sessions wait for locks")


async def locked_out(database: Database) -> int:
    """How many sessions of this database wait for what others hold: in `pg_locks` are those of every database."""
    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    found: int = await database.fetchval(waiting)
    return found
