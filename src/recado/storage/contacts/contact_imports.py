"""Imports of contacts as rows (C12.7): what was handed in, in blocks, and how far it is written.

A block and the rows that it stands for change in one commit, so that a crash loses none and repeats none.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.core.ids import CONTACT_IMPORT, Identified, lowest_id
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor, affected
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table

KEPT: Final = timedelta(days=30)  # C32
MOST_ERRORS: Final = 1_000

PROCESSING: Final = "processing"
COMPLETED: Final = "completed"
FAILED: Final = "failed"

ImportKey = tuple[str, str, str]
"""Organization, environment, id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContactImport(Identified):
    """One import. `options`: as given; `columns`: the header of a CSV file. `errors`: of the first bad rows."""

    organization_id: str
    env: str
    id: str
    status: str
    format: str
    options: Mapping[str, Any]
    columns: tuple[str, ...] | None = None
    total: int
    processed: int = 0
    created: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    consent_ignored: int = 0
    errors: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    actor_type: str
    actor_id: str
    actor_ip: str | None = field(default=None, repr=False)
    actor_agent: str | None = field(default=None, repr=False)
    attempts: int = 0
    finished_at: datetime | None = None

    @property
    def key(self) -> ImportKey:
        return (self.organization_id, self.env, self.id)


@dataclass(slots=True)
class Progress:
    """What became of the rows of one block."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: int = 0
    consent_ignored: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list, repr=False)


IMPORTS: Final = Table(
    "contact_imports", ContactImport, "import", own=load("contact_imports"), convert={"columns": tuple}
)
SQL = IMPORTS.sql
get, insert = IMPORTS.get, IMPORTS.insert


async def insert_block(
    connection: Executor, key: ImportKey, first_row: int, rows: bytes, documents: DocumentCipher
) -> None:
    """Store rows that are to be written, encrypted; `first_row`: the number of the first one in the file, from 1."""
    sealed = documents.seal_rows(rows, organization_id=key[0], import_id=key[2], first_row=first_row)
    await connection.execute(SQL.insert_block, key[0], key[2], first_row, sealed)


async def unfinished(
    executor: Executor, *, without: Collection[ImportKey] = (), after: Collection[ImportKey] = ()
) -> list[ImportKey]:
    """Of each organization one import with rows to be written: the oldest that is not one of `after`, or the oldest.

    Those in `without` do not count.
    """
    rows = await executor.fetch(SQL.open, [key[2] for key in without], [key[2] for key in after])
    return [(row["organization_id"], row["env"], row["id"]) for row in rows]


async def next_blocks(executor: Executor, key: ImportKey, limit: int) -> list[int]:
    """The first rows of the blocks that come next."""
    return [row["first_row"] for row in await executor.fetch(SQL.next_blocks, key[0], key[2], limit)]


async def block(executor: Executor, key: ImportKey, first_row: int, documents: DocumentCipher) -> bytes | None:
    """The rows of a block; None when it is written already. Raises `storage.crypto.Tampered`."""
    found = await executor.fetchrow(SQL.block, key[0], key[2], first_row)
    if found is None:
        return None
    rows: bytes = found["rows"]
    if not found["sealed"]:
        return rows
    return documents.open_rows(rows, organization_id=key[0], import_id=key[2], first_row=first_row)


async def blocks_under_other_keys(executor: Executor, keys: KeyRing) -> int:
    """How many blocks need another key than the first one to be read. They go as their imports go on."""
    return int(await executor.fetchval(SQL.blocks_under_other_keys, keys.prefix.encode()))


async def take_block(connection: Executor, key: ImportKey, first_row: int) -> bool:
    """Take a block, in the transaction that writes its rows; False when somebody else has written them."""
    return await connection.fetchval(SQL.take_block, key[0], key[2], first_row) is not None


async def advance(connection: Executor, key: ImportKey, progress: Progress, now: datetime) -> None:
    """Record what became of a block that was taken: the last statement of its transaction.

    Of the errors those of the first rows stay, whatever the order in which blocks are written.
    """
    errors = None
    if progress.errors:
        known = await connection.fetchval(SQL.lock_errors, *key)
        errors = sorted([*known, *progress.errors], key=lambda error: error["row"])[:MOST_ERRORS]
    organization_id, env, import_id = key
    processed = progress.created + progress.updated + progress.unchanged + progress.failed
    await connection.execute(
        *SQL.bind(
            "advance",
            progress,
            organization_id=organization_id,
            env=env,
            id=import_id,
            processed=processed,
            errors=errors,
            now=now,
        )
    )


async def failed_once(executor: Executor, key: ImportKey) -> int:
    """A block could not be written; answers how often in a row now."""
    return await executor.fetchval(SQL.failed_once, *key) or 0


async def give_up(executor: Executor, key: ImportKey, now: datetime) -> None:
    """→ failed: what is not written yet never will be."""
    await executor.execute(SQL.give_up, *key, now)


async def purge(executor: Executor, now: datetime, *, block: int = 100) -> None:
    """Remove imports that are older than 30 days, some at a time: their errors may be long."""
    while affected(await executor.execute(SQL.purge, lowest_id(CONTACT_IMPORT, now - KEPT), block)) == block:
        pass
