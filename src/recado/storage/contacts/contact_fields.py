"""The keys of attributes that contacts have, counted hourly where something changed (C12.8)."""

from datetime import datetime, timedelta

from recado.domain.contacts.contact_fields import MOST_KEYS, AttributeKey
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import load

SQL = load("contact_fields")

UNSEEN = timedelta(minutes=5)
"""A change has the moment at which it began: longer ago than this, none is still to be committed."""

read = reader(AttributeKey)


async def of_environment(executor: Executor, organization_id: str, env: str) -> list[AttributeKey]:
    """At most 500, most used first."""
    return [read(row) for row in await executor.fetch(SQL.of_environment, organization_id, env, MOST_KEYS)]


async def refresh(db: Database, now: datetime) -> None:
    """Count the keys of every environment whose contacts changed since they were counted; one transaction for each."""
    for row in await db.fetch(SQL.stale):
        environment = (row["organization_id"], row["env"])
        async with db.transaction() as connection:
            await connection.execute(SQL.forget, *environment)
            await connection.execute(SQL.count, *environment)
            await connection.execute(SQL.counted, *environment, now - UNSEEN)
