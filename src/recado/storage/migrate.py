"""Brings a database to this program's schema: numbered SQL files, forward only, each in its own transaction.

Several processes may start at once: an advisory lock lets one migrate and shows the others that nothing is left to do.
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from recado.storage.pool import Connection, Pool

_FOLDER = Path(__file__).parent / "migrations"
_FILE_NAME = re.compile(r"\d{4}_[a-z0-9_]+\.sql")
_LOCK = int.from_bytes(hashlib.sha256(b"recado migrations").digest()[:8], "big", signed=True)
_LONG = 24 * 3600.0  # seconds; a migration of a large table takes what it takes

_TABLE = """
create table if not exists schema_migrations (
    name text primary key,
    checksum bytea not null,
    applied_at timestamptz not null default now()
)
"""


class MigrationError(Exception):
    """The database and this program's migrations do not belong together; the text says why."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file: its name orders it, its SHA-256 notices a later change of it."""

    name: str
    sql: str

    @property
    def checksum(self) -> bytes:
        return hashlib.sha256(self.sql.encode()).digest()


def read_migrations(folder: Path = _FOLDER) -> tuple[Migration, ...]:
    """The migrations of a folder in order; MigrationError when a name is malformed or a number missing or repeated."""
    files = sorted(folder.glob("*.sql"))
    for number, file in enumerate(files, start=1):
        if not _FILE_NAME.fullmatch(file.name):
            raise MigrationError(f"{file.name} is no migration: files are named NNNN_name.sql")
        if int(file.name[:4]) != number:
            raise MigrationError(f"{file.name} stands where migration {number:04} is expected")
    return tuple(Migration(file.name.removesuffix(".sql"), file.read_text(encoding="utf-8")) for file in files)


async def migrate(database: Pool | Connection, migrations: Sequence[Migration] | None = None) -> list[str]:
    """Applies what is missing and answers its names; MigrationError when the database is changed or newer."""
    known = read_migrations() if migrations is None else migrations
    if isinstance(database, Pool):
        async with database.acquire() as connection:
            return await _migrate(connection, known)
    return await _migrate(database, known)


async def pending(connection: Pool | Connection, migrations: Sequence[Migration] | None = None) -> list[str]:
    """The names of the migrations that this database lacks; changes nothing."""
    known = read_migrations() if migrations is None else migrations
    if await connection.fetchval("select to_regclass('schema_migrations') is null"):
        return [migration.name for migration in known]
    applied = await connection.fetch("select name, checksum from schema_migrations order by name")
    return [migration.name for migration in _missing(applied, known)]


async def _migrate(connection: Connection, known: Sequence[Migration]) -> list[str]:
    done: list[str] = []
    while True:
        async with connection.transaction():
            # The lock goes with the transaction, so that a process that is killed here leaves none behind.
            await connection.execute("select pg_advisory_xact_lock($1)", _LOCK, timeout=_LONG)
            await connection.execute("set local client_min_messages = warning")
            await connection.execute(_TABLE)
            applied = await connection.fetch("select name, checksum from schema_migrations order by name")
            missing = _missing(applied, known)
            if not missing:
                return done
            await connection.execute(missing[0].sql, timeout=_LONG)
            await connection.execute(
                "insert into schema_migrations (name, checksum) values ($1, $2)", missing[0].name, missing[0].checksum
            )
        done.append(missing[0].name)


def _missing(applied: Sequence[asyncpg.Record], known: Sequence[Migration]) -> list[Migration]:
    if len(applied) > len(known):
        raise MigrationError(
            f"the database holds the migration {applied[len(known)]['name']}, which this program does not know: "
            "it was written by a newer version of Recado"
        )
    for row, migration in zip(applied, known, strict=False):
        if row["name"] != migration.name:
            raise MigrationError(f"the database holds the migration {row['name']} where {migration.name} is expected")
        if row["checksum"] != migration.checksum:
            raise MigrationError(f"the migration {migration.name} was changed after the database took it")
    return list(known[len(applied) :])
