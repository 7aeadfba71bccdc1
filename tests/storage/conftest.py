"""Databases that the tests of a module share, and one on the server of the system's packages, which offers pg_trgm."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

import asyncpg
import pytest

from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import migrate

_numbers = itertools.count(1)


@pytest.fixture
async def system_database(system_postgres: dict[str, Any]) -> AsyncIterator[Database]:
    """A migrated database of this test's own on that server; its owner is no superuser."""
    async with empty_database(system_postgres) as arguments, opened(arguments) as db:
        await migrate(db)
        yield db


@contextmanager
def read_only(
    server: dict[str, Any], fill: Callable[[Database], Awaitable[object]], how: str = "template recado_template"
) -> Iterator[dict[str, Any]]:
    """The connect arguments of a new database that is filled once, for the tests of a module: they change nothing."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()

        async def begin() -> dict[str, Any]:
            arguments = await stack.enter_async_context(empty_database(server, how))
            async with opened(arguments) as db:
                await fill(db)
                await db.execute(f"alter database {arguments['database']} set default_transaction_read_only = on")
            return arguments

        try:
            yield runner.run(begin())
        finally:
            runner.run(stack.aclose())


@asynccontextmanager
async def empty_database(server: dict[str, Any], how: str = "") -> AsyncIterator[dict[str, Any]]:
    """The connect arguments of a new database. `how`: what follows its name when it is made."""
    arguments = {**server, "database": f"recado_own_{next(_numbers)}"}
    connection = await asyncpg.connect(**server)
    try:
        await connection.execute(f"create database {arguments['database']} {how}")
        yield arguments
        # Not with force: of its own vacuum the server then lets only a superuser end the process.
        await connection.execute(f"drop database {arguments['database']}")
    finally:
        await connection.close()


@asynccontextmanager
async def opened(arguments: dict[str, Any]) -> AsyncIterator[Database]:
    """A started `Database` there."""
    db = Database(arguments, clock=SystemClock(), pool_size=4, hot_size=1)
    await db.start()
    try:
        yield db
    finally:
        await db.stop()
