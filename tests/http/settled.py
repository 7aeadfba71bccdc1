"""Two organizations as they are born, written anew for each test by one statement: to make them takes thirty.

They are made once in a process, by the service's own way; what that wrote is kept as text.
"""

import os
import random
from dataclasses import dataclass

from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.storage.access.organizations import NewOrganization, create_organization
from recado.storage.core.connections.postgres import Connection, Database

NAMES = ("First", "Second")

# Columns that the table computes itself take no value. An identity takes the one that it had.
_TABLES = """
select c.oid::regclass::text as name, string_agg(quote_ident(attname), ', ' order by attnum) as columns
from pg_class c join pg_attribute on attrelid = c.oid and attnum > 0 and not attisdropped and attgenerated = ''
where relkind = 'r' and relnamespace = 'public'::regnamespace and pg_relation_size(c.oid) > 0
group by c.oid
order by c.oid
"""
_WRITTEN = "select array_agg(t)::text from {0} t where xmin = pg_current_xact_id()::xid"
_WRITTEN_AGAIN = (
    "w{0} as (insert into {1} ({2}) overriding system value select {2} from unnest(${0}::text::{1}[]) t returning 1)"
)


@dataclass(frozen=True, slots=True)
class Settled:
    """The organizations, and the statement that writes them to an empty database, with its arguments."""

    organizations: tuple[NewOrganization, ...]
    statement: str
    rows: tuple[str, ...]

    @classmethod
    async def settle(cls, database: Database, clock: Clock) -> "Settled":
        """Make them in the empty database, and leave it empty. The audit does not tell how they came to be."""
        ids = IdSource(clock, random.Random(7))
        async with database.acquire() as connection:
            transaction = connection.transaction()
            await transaction.start()
            try:
                made = [
                    await create_organization(connection, ids, name=name, now=clock.now(), random_bytes=os.urandom)
                    for name in NAMES
                ]
                await connection.execute("delete from audit")
                written = await _written(connection)
            finally:
                await transaction.rollback()
        again = [_WRITTEN_AGAIN.format(place, *table) for place, (table, _) in enumerate(written, 1)]
        statement = f"with {', '.join(again)} select"
        return cls(tuple(made), statement, tuple(rows for _, rows in written))

    async def write(self, database: Database) -> list[NewOrganization]:
        await database.execute(self.statement, *self.rows)
        return list(self.organizations)


async def _written(connection: Connection) -> list[tuple[tuple[str, str], str]]:
    """Of this transaction: each table with its columns, and the rows."""
    tables = await connection.fetch(_TABLES)
    found = [((name, columns), await connection.fetchval(_WRITTEN.format(name))) for name, columns in tables]
    return [(table, rows) for table, rows in found if rows is not None]
