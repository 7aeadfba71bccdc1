"""Imports of contacts: handed in as blocks of rows in one commit, then written block by block (C12.7).

Small ones are written in the call, the others by a worker. Anyone who writes a block takes it in the commit of its
rows, so that a crash, a repeat or two workers change nothing about the result.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import IO, Final

import structlog

from recado.domain.contacts.contact_import import (
    MOST_ROWS,
    MOST_ROWS_AT_ONCE,
    ImportFormat,
    ImportOptions,
    column_fault,
)
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.core.ids import LIST, IdSource
from recado.domain.core.references import reference_not_found
from recado.engine.periodic import Periodic
from recado.engine.turns import turns
from recado.services.contacts.consents import Consents
from recado.services.imports.contact_block import BlockWriter, Raced
from recado.services.imports.contact_files import STEP, ContactFile, DocumentFile, LineFile, TableFile, Unreadable
from recado.services.imports.contact_rows import ContactRow, RowReader
from recado.storage.audience import lists
from recado.storage.contacts import contact_imports
from recado.storage.contacts.contact_imports import ContactImport, ImportKey
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.core.crypto import Tampered
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.statements.rows import Executor

log = structlog.get_logger()

LOOK_EVERY: Final = 1.0  # seconds
READ_AT_ONCE: Final = 2  # files, each of another organization: each holds a connection while it is read
MOST_WAITING: Final = 16  # files of one organization
BLOCKS_IN_A_ROW: Final = 20  # of one import, before the next one has its turn
BLOCKS_AT_ONCE: Final = 2  # of one import: while one commits, the server has the other to write
ROWS_IN_A_ROW: Final = 40  # read in one turn
TRIES_AT_A_RACE: Final = 5
MOST_ATTEMPTS: Final = 10  # at a block, before the import fails


OptionsOf = Callable[[ContactFile], ImportOptions]
"""The options of a file, from its header, or from the members of a document, which are known then; raises `Problem`."""

Keep = Callable[[int, bytes], Awaitable[None]]
"""Keeps a block of rows, the first of which is the one of that number."""


@dataclass(frozen=True, slots=True)
class Draft:
    """An import that is being handed in: by whom, with which program (`agent`)."""

    organization_id: str
    env: str
    id: str
    format: ImportFormat
    by: AuditPrincipal
    agent: str | None = None

    @property
    def key(self) -> ImportKey:
        return (self.organization_id, self.env, self.id)


@dataclass(frozen=True, slots=True)
class _Batch:
    """A block that was read: its rows, and whom they may mean."""

    first_row: int
    rows: Sequence[ContactRow]
    names: frozenset[str]


_Begun = tuple[frozenset[str], "asyncio.Task[None]"]
"""A block that is being written: whom it may mean, and what writes it."""


class ContactImports:
    """A service; and what callers do."""

    def __init__(
        self, db: Database, *, ids: IdSource, documents: DocumentCipher, consents: Consents, clock: Clock
    ) -> None:
        self._db = db
        self._ids = ids
        self._documents = documents
        self._clock = clock
        self._writer = BlockWriter(db, ids=ids, documents=documents, consents=consents, clock=clock)
        self._reading = FairPlaces(READ_AT_ONCE, most_waiting=MOST_WAITING)
        self._under_way: set[ImportKey] = set()
        self._worker = Periodic("contact imports", LOOK_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    # What callers do ------------------------------------------------------------------------------------------------

    async def accept(self, draft: Draft, file: IO[bytes], options_of: OptionsOf) -> ContactImport:
        """Store what a file holds, and write it when it is small; answers the import as it is then.

        Raises `Problem`, and has stored nothing: 503 when too many files of the organization wait already, 422
        IMPORT_INVALID for a file that cannot be read, REFERENCE_NOT_FOUND for its list, and what `options_of` raises.
        """
        async with self._reading.place(draft.organization_id), self._db.bulk.transaction() as connection:
            with _read_as(draft.format, file) as contacts:
                new = await self._store(connection, draft, contacts, options_of)
        if new.total > MOST_ROWS_AT_ONCE:
            self._worker.hint()
        elif new.total:
            try:
                await self._write(new.key)
            except (Raced, Unavailable):
                self._worker.hint()  # it is stored: the worker goes on
        return await contact_imports.get(self._db, *new.key) or new

    async def examine(self, draft: Draft, file: IO[bytes], options_of: OptionsOf) -> None:
        """Raise what `accept` would refuse in the file, and store nothing."""
        async with self._reading.place(draft.organization_id):
            with _read_as(draft.format, file) as contacts:
                await self._through(self._db, draft, contacts, options_of, _forget)

    async def _store(
        self, connection: Connection, draft: Draft, contacts: ContactFile, options_of: OptionsOf
    ) -> ContactImport:
        async def keep(first_row: int, rows: bytes) -> None:
            await contact_imports.insert_block(connection, draft.key, first_row, rows, self._documents)

        options, total = await self._through(connection, draft, contacts, options_of, keep)
        new = ContactImport(
            organization_id=draft.organization_id,
            env=draft.env,
            id=draft.id,
            status=contact_imports.PROCESSING if total else contact_imports.COMPLETED,
            format=draft.format.value,
            options=options.stored(),
            columns=contacts.columns,
            total=total,
            actor_type=draft.by.type,
            actor_id=draft.by.id,
            actor_ip=draft.by.ip,
            actor_agent=draft.agent,
            finished_at=None if total else self._clock.now(),
        )
        await contact_imports.insert(connection, new)
        return new

    async def _through(
        self, executor: Executor, draft: Draft, contacts: ContactFile, options_of: OptionsOf, keep: Keep
    ) -> tuple[ImportOptions, int]:
        """The options of a file, and how many rows it has, each block of which is kept; raises what refuses it."""
        options = None
        if contacts.columns is not None:
            options = options_of(contacts)
            if fault := column_fault(contacts.columns, options.match_by):
                raise Unreadable(fault)
        total = 0
        for block in contacts:
            await turns.next()
            if not block.count:
                continue
            await keep(total + 1, block.rows)
            total += block.count
            if total > MOST_ROWS:
                raise Problem("IMPORT_INVALID", f"A file holds at most {MOST_ROWS:,} rows.", meta={"limit": MOST_ROWS})
        options = options or options_of(contacts)
        if options.list_id is not None and await lists.get(executor, *draft.key[:2], options.list_id) is None:
            raise reference_not_found(
                "options.listId" if draft.format is ImportFormat.JSON else "listId", LIST, options.list_id, draft.env,
                parameter=draft.format is not ImportFormat.JSON,
            )  # fmt: skip
        return options, total

    # What happens by itself -----------------------------------------------------------------------------------------

    async def work(self) -> None:
        """One look: some blocks of one import of each organization, again and again until none is left.

        The imports of an organization take turns among themselves. One that fails waits for the next look.
        """
        failed: set[ImportKey] = set()
        had_a_turn: set[ImportKey] = set()
        while keys := await contact_imports.unfinished(self._db, without=failed | self._under_way, after=had_a_turn):
            for key in keys:
                if key in had_a_turn:  # so had all others of its organization
                    had_a_turn = {other for other in had_a_turn if other[0] != key[0]}
                had_a_turn.add(key)
                if not await self._go_on(key):
                    failed.add(key)

    async def _go_on(self, key: ImportKey) -> bool:
        """Whether blocks of the import were written; one that cannot be written must not keep the others waiting."""
        try:
            await self._write(key, in_turns=True)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, the others are not
            attempts = await contact_imports.failed_once(self._db, key)
            log.error("import_not_written", import_id=key[2], error=type(error).__name__, attempts=attempts)
            if attempts >= MOST_ATTEMPTS:
                await contact_imports.give_up(self._db, key, self._clock.now())
                if isinstance(error, Tampered):
                    await audit.write(
                        self._db, self._ids, audit.SYSTEM, "record.tampered",
                        organization_id=key[0], env=key[1], target_id=key[2],
                    )  # fmt: skip
            return False
        return True

    async def _write(self, key: ImportKey, *, in_turns: bool = False) -> None:
        """Write the blocks of an import in their order, while the next one is read.

        Some are under way at once, as long as no two of them may mean the same contact: then the later one waits.
        `in_turns`: only some of the blocks when other imports wait.
        """
        self._under_way.add(key)
        begun: deque[_Begun] = deque()
        try:
            found = await contact_imports.get(self._db, *key)
            if found is None:
                return
            reader = RowReader(found, self._clock.now().date())
            for place, first_row in enumerate(await contact_imports.next_blocks(self._db, key, MOST_ROWS)):
                if in_turns and place and not place % BLOCKS_IN_A_ROW and await self._others_wait():
                    break
                batch = await self._read(reader, key, first_row)
                if batch is None:
                    continue
                while begun and (len(begun) == BLOCKS_AT_ONCE or any(names & batch.names for names, _ in begun)):
                    await begun.popleft()[1]
                begun.append((batch.names, asyncio.ensure_future(self._write_block(found, batch))))
            while begun:
                await begun.popleft()[1]
        finally:
            self._under_way.discard(key)
            await asyncio.gather(*(task for _, task in begun), return_exceptions=True)

    async def _others_wait(self) -> bool:
        return bool(await contact_imports.unfinished(self._db, without=self._under_way))

    async def _read(self, reader: RowReader, key: ImportKey, first_row: int) -> _Batch | None:
        """The rows of a block; None when it is written already."""
        block = await contact_imports.block(self._db, key, first_row, self._documents)
        if block is None:
            return None
        await turns.next()
        rows: list[ContactRow] = []
        in_a_row = ROWS_IN_A_ROW if len(block) <= 4 * STEP else 1  # of long rows each takes milliseconds
        for row in reader.rows(block, first_row):
            rows.append(row)
            if not len(rows) % in_a_row:
                await turns.next()
        names = [row.values.get(name) for row in rows for name in ("phone", "external_id")]
        return _Batch(first_row, rows, frozenset(name for name in names if name is not None))

    async def _write_block(self, found: ContactImport, batch: _Batch) -> None:
        for attempt in range(TRIES_AT_A_RACE):
            try:
                await self._writer.write(found, batch.first_row, batch.rows, wary=attempt > 0)
                return
            except Raced:
                if attempt + 1 == TRIES_AT_A_RACE:
                    raise


_READERS: Final[dict[ImportFormat, Callable[[IO[bytes]], ContactFile]]] = {
    ImportFormat.JSON: DocumentFile,
    ImportFormat.NDJSON: LineFile,
    ImportFormat.CSV: TableFile,
}


@contextmanager
def _read_as(form: ImportFormat, file: IO[bytes]) -> Iterator[ContactFile]:
    """The file, read in its format; IMPORT_INVALID (422) where it cannot be."""
    try:
        with closing(_READERS[form](file)) as contacts:
            yield contacts
    except Unreadable as error:
        raise Problem("IMPORT_INVALID", str(error), errors=error.errors) from None


async def _forget(_: int, __: bytes) -> None:
    """Keep nothing of a block."""
