"""A database on the server of the system's packages, which offers pg_trgm."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from recado.engine.clock import SystemClock
from recado.storage.migrate import migrate
from recado.storage.postgres import Database

_numbers = itertools.count(1)


@pytest.fixture
async def system_database(system_postgres: dict[str, Any]) -> AsyncIterator[Database]:
    """A migrated database of this test's own on that server; its owner is no superuser."""
    async with empty_database(system_postgres) as arguments, opened(arguments) as db:
        await migrate(db)
        yield db


@asynccontextmanager
async def empty_database(server: dict[str, Any], how: str = "") -> AsyncIterator[dict[str, Any]]:
    """The connect arguments of a new database. `how`: what follows its name when it is made."""
    arguments = {**server, "database": f"recado_own_{next(_numbers)}"}
    connection = await asyncpg.connect(**server)
    try:
        await connection.execute(f"create database {arguments['database']} {how}")
        yield arguments
        await connection.execute(f"drop database {arguments['database']} with (force)")
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
