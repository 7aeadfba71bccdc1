"""Brings a database to this program's schema: numbered SQL files, forward only, each in its own transaction.

Several processes may start at once: an advisory lock lets one migrate and shows the others that nothing is left to do.
One that hangs keeps it: whoever waits says for whom, and ends after a while (C33).
"""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import structlog

from recado.domain.core.timestamps import format_timestamp
from recado.storage.core.connections.pool import Connection, Pool

_FOLDER = Path(__file__).parents[2] / "migrations"
_FILE_NAME = re.compile(r"\d{4}_[a-z0-9_]+\.sql")
_LOCK = int.from_bytes(hashlib.sha256(b"recado migrations").digest()[:8], "big", signed=True)
_LONG = 24 * 3600.0  # seconds; a migration of a large table takes what it takes
TOLD_AFTER = 3.0  # seconds that one try to take the lock lasts; after the first it is told who has it
TRIES = 25  # 75 s: the server itself ends a transaction of ours in which nothing happens for 60 s (`pool.py`)

_TABLE = """
create table if not exists schema_migrations (
    name text primary key,
    checksum bytea not null,
    applied_at timestamptz not null default now()
)
"""

# Who has the lock: what its session is called, and since when its transaction runs; no address.
_HOLDER = """
select a.pid, a.application_name, a.xact_start
from pg_locks l
join pg_database d on d.oid = l.database
join pg_stat_activity a on a.pid = l.pid
where
    l.locktype = 'advisory' and d.datname = current_database() and l.granted and l.objsubid = 1
    and (l.classid::bigint << 32 | l.objid::bigint) = $1
"""

log = structlog.get_logger(__name__)


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
    """Applies what is missing and answers its names.

    MigrationError when the database is changed or newer, or another process migrates it for more than 75 s.
    """
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
            await _lock(connection)
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


async def _lock(connection: Connection) -> None:
    for number in range(TRIES):
        try:
            async with connection.transaction():  # a savepoint: what is left of a try that failed
                await connection.execute(f"set local lock_timeout = '{TOLD_AFTER * 1000:.0f}ms'")
                await connection.execute("select pg_advisory_xact_lock($1)", _LOCK, timeout=_LONG)
                await connection.execute("set local lock_timeout to default")
            return
        except asyncpg.LockNotAvailableError:
            if number == 0:
                log.error("migration_waits", holder=await _holder(connection))
    raise MigrationError(
        f"{await _holder(connection)} still migrates this database: wait for it, or, only if it hangs, end that process"
        " (or its session, by pg_terminate_backend); then start again"
    )


async def _holder(connection: Connection) -> str:
    row = await connection.fetchrow(_HOLDER, _LOCK)
    if row is None:  # it has ended at this moment
        return "another process"
    since = "" if row["xact_start"] is None else f", since {format_timestamp(row['xact_start'])}"
    return f"another process (session {row['pid']} of '{row['application_name']}'{since})"


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
