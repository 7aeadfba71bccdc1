"""The transaction of a change that others hold a copy of."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from recado.domain.core.errors import Unavailable
from recado.storage.core.connections.postgres import Connection, Database

T = TypeVar("T")


@asynccontextmanager
async def changing(database: Database, changed: Callable[[T], None], change: T) -> AsyncIterator[Connection]:
    """One transaction. When its answer is lost, or whoever waits for it gives up, the change may be committed all the
    same, and is told: at once, and again when the server has said what became of it.

    Raises `Unavailable` as `Database.transaction` does. After a commit its caller tells the change, if there is one.
    """
    connection: Connection | None = None
    try:
        async with database.transaction() as connection:
            yield connection
    except (Unavailable, asyncio.CancelledError):
        changed(change)
        if connection is not None:
            database.when_settled(connection, lambda: changed(change))
        raise
