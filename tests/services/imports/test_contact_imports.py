"""The worker of imports: what cannot be written keeps nobody waiting, and what is through is forgotten (C12.7)."""

import asyncio
import io
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.waiting import until, until_locked_out

from recado.domain.contacts.contact import Contact
from recado.domain.contacts.contact_import import ImportFormat, ImportOptions
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CONTACT_IMPORT, ORGANIZATION, IdSource
from recado.engine.clock import SystemClock
from recado.engine.turns import Turns
from recado.services.contacts.consents import Consents
from recado.services.effects.consequences import Consequences
from recado.services.imports import contact_imports as actors_imports
from recado.services.imports.contact_block import PIECE, Raced
from recado.services.imports.contact_imports import MOST_ATTEMPTS, ContactImports, Draft
from recado.services.imports.contact_rows import ContactRow, RowReader
from recado.services.imports.contact_targets import STATEMENT
from recado.storage.audience import lists
from recado.storage.audience.lists import StaticList
from recado.storage.contacts import contact_columns, contact_imports, contacts
from recado.storage.contacts.contact_imports import ContactImport
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing

CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(3))
RING = KeyRing.parse("test:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")
MANY = 2_001  # rows: more than are written in the call


@pytest.fixture
def imports(database: Database) -> ContactImports:
    """The service, not started: a test does its looks."""
    documents = DocumentCipher(RING, b"i" * 32)
    consents = Consents(IDS, Consequences(), lambda _: None, RING)
    return ContactImports(database, ids=IDS, documents=documents, consents=consents, clock=CLOCK)


async def accepted(imports: ContactImports, rows: int, *, first: int = 0, of: str = "1") -> ContactImport:
    lines = b"\n".join(b"+55119%08d" % serial for serial in range(first, first + rows))
    return await handed_in(imports, b"phone\n" + lines, of=of)


async def handed_in(
    imports: ContactImports, table: bytes, options: ImportOptions | None = None, *, of: str = "1"
) -> ContactImport:
    draft = Draft(
        ORGANIZATION + of * 21, "test", IDS.new(CONTACT_IMPORT), ImportFormat.CSV, AuditPrincipal("key", "key_1")
    )
    return await imports.accept(draft, io.BytesIO(table), lambda _: options or ImportOptions())


async def now(database: Database, found: ContactImport) -> ContactImport:
    latest = await contact_imports.get(database, *found.key)
    assert latest is not None
    return latest


async def test_an_import_that_cannot_be_written_fails_and_keeps_no_other_waiting(
    database: Database, imports: ContactImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = await accepted(imports, MANY)
    good = await accepted(imports, MANY, first=MANY)
    write = imports._writer.write

    async def failing(found: ContactImport, first_row: int, rows: Sequence[ContactRow], *, wary: bool) -> None:
        if found.id == broken.id and first_row > 1:
            raise RuntimeError
        await write(found, first_row, rows, wary=wary)

    monkeypatch.setattr(imports._writer, "write", failing)
    await imports.work()
    assert (await now(database, good)).status == "completed"
    assert (await now(database, broken)).status == "processing"
    for _ in range(MOST_ATTEMPTS):
        await imports.work()
    found = await now(database, broken)
    assert (found.status, found.processed, found.created) == ("failed", 1_000, 1_000)
    assert found.finished_at is not None
    assert await database.fetchval("select count(*) from contact_import_blocks") == 0


async def test_few_rows_are_read_looked_up_and_made_in_one_turn(
    database: Database, imports: ContactImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, line, look_up, wait = RowReader.rows, contact_columns.line, contacts.by_phones, Turns.next
    of_tasks: defaultdict[Any, Counter[str]] = defaultdict(Counter)  # two blocks are under way at once
    most: Counter[str] = Counter()

    def since() -> Counter[str]:
        return of_tasks[asyncio.current_task()]

    def reading(reader: RowReader, block: bytes, first_row: int) -> Iterator[ContactRow]:
        for row in read(reader, block, first_row):
            since()["read"] += 1
            yield row

    def making(contact: Contact) -> str:
        since()["made"] += 1
        return line(contact)

    async def looking_up(*arguments: Any) -> list[Contact]:
        since()["looked up"] += len(arguments[-1])
        return await look_up(*arguments)

    async def waiting(turns: Turns) -> None:
        most.update(since() - most)
        since().clear()
        await wait(turns)

    monkeypatch.setattr(RowReader, "rows", reading)
    monkeypatch.setattr(contact_columns, "line", making)
    monkeypatch.setattr(contacts, "by_phones", looking_up)
    monkeypatch.setattr(Turns, "next", waiting)
    rows = b"\n".join(b"+55119%08d,granted,site" % serial for serial in range(MANY))
    found = await handed_in(imports, b"phone,optIn.status,optIn.source\n" + rows)
    await imports.work()
    assert (await now(database, found)).created == MANY
    assert most == {"read": actors_imports.ROWS_IN_A_ROW, "made": PIECE, "looked up": STATEMENT}


async def test_of_an_organization_one_file_is_read_and_16_wait(
    imports: ContactImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, go_on = imports._store, asyncio.Event()
    read: list[str] = []

    async def held(connection: Any, draft: Draft, *arguments: Any) -> ContactImport:
        read.append(draft.organization_id)
        await go_on.wait()
        return await store(connection, draft, *arguments)

    async def reads(files: int) -> None:
        async def so_many() -> bool:
            return len(read) == files

        await until(so_many, "files are being read")

    monkeypatch.setattr(imports, "_store", held)
    table, other = (
        b"phone\n+5511987654321",
        Draft(
            ORGANIZATION + "2" * 21, "test", IDS.new(CONTACT_IMPORT), ImportFormat.CSV, AuditPrincipal("key", "key_2")
        ),
    )
    running = [asyncio.ensure_future(handed_in(imports, table)) for _ in range(17)]
    await reads(1)
    with pytest.raises(Unavailable) as caught:
        await handed_in(imports, table)
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "10")
    running.append(asyncio.ensure_future(imports.accept(other, io.BytesIO(table), lambda _: ImportOptions())))
    await reads(2)
    assert len(set(read)) == 2
    go_on.set()
    assert {found.status for found in await asyncio.gather(*running)} == {"completed"}


async def test_imports_take_turns(database: Database, imports: ContactImports, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = await accepted(imports, 4_001), await accepted(imports, MANY, first=4_001)
    write = imports._writer.write
    written: list[str] = []

    async def noted(found: ContactImport, first_row: int, rows: Sequence[ContactRow], *, wary: bool) -> None:
        written.append(found.id)
        await write(found, first_row, rows, wary=wary)

    monkeypatch.setattr(imports._writer, "write", noted)
    monkeypatch.setattr(actors_imports, "BLOCKS_IN_A_ROW", 2)
    await imports.work()
    assert written == [one.id] * 2 + [other.id] * 2 + [one.id] * 2 + [other.id, one.id]
    assert {(await now(database, each)).status for each in (one, other)} == {"completed"}


async def test_organizations_take_turns_however_many_imports_one_of_them_has(
    imports: ContactImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(actors_imports, "MOST_ROWS_AT_ONCE", 0)
    many = [await accepted(imports, 1, first=serial) for serial in range(120)]
    last = await accepted(imports, 1, of="2")
    write = imports._writer.write
    written: list[str] = []

    async def noted(found: ContactImport, first_row: int, rows: Sequence[ContactRow], *, wary: bool) -> None:
        written.append(found.id)
        await write(found, first_row, rows, wary=wary)

    monkeypatch.setattr(imports._writer, "write", noted)
    await imports.work()
    assert written == [many[0].id, last.id, *(each.id for each in many[1:])]


async def test_a_block_that_was_raced_is_written_again(
    database: Database, imports: ContactImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = imports._writer.write
    tries: list[bool] = []

    async def raced(found: ContactImport, first_row: int, rows: Sequence[ContactRow], *, wary: bool) -> None:
        tries.append(wary)
        if len(tries) < 3:
            raise Raced
        await write(found, first_row, rows, wary=wary)

    monkeypatch.setattr(imports._writer, "write", raced)
    found = await accepted(imports, 3)
    assert (found.status, found.created) == ("completed", 3)
    assert tries == [False, True, True]


async def test_a_block_that_has_to_give_way_to_another_change_is_written_again(
    database: Database, imports: ContactImports
) -> None:
    await accepted(imports, MANY - 1)
    await database.execute("analyze contacts")
    first, second = [row["id"] for row in await database.fetch("select id from contacts order by phone limit 2")]
    lock = "select from contacts where id = $1 for update"

    with capture_logs() as logs:
        async with database.transaction() as connection:
            await connection.execute("set local deadlock_timeout = '1min'")  # so that the block has to give way
            await connection.execute(lock, second)
            running = asyncio.ensure_future(handed_in(imports, b"phone,name\n+5511900000001,B\n+5511900000000,A"))
            await until_locked_out(database)  # the block has its first contact and waits for the second
            await connection.execute(lock, first)
        found = await running
    # Once as a rule; again where the other one is slow to end.
    assert {entry["event"] for entry in logs} == {"transaction_collided"}
    assert (found.status, found.updated, found.failed) == ("completed", 2, 0)


async def test_contacts_that_a_block_changes_are_locked_in_the_order_of_their_ids(
    database: Database, imports: ContactImports
) -> None:
    await accepted(imports, MANY - 1)
    await database.execute("analyze contacts")
    first, second = [row["id"] for row in await database.fetch("select id from contacts order by phone limit 2")]

    async with database.transaction() as connection:
        await connection.execute("select from contacts where id = $1 for update", first)
        running = asyncio.ensure_future(handed_in(imports, b"phone,name\n+5511900000001,B\n+5511900000000,A"))
        await until_locked_out(database)  # the block waits for its first contact
        free = await connection.fetch("select id from contacts where id = $1 for update skip locked", second)
        assert [row["id"] for row in free] == [second]
    assert (await running).updated == 2


async def test_who_is_deleted_while_a_block_is_written_is_no_member_of_its_list(
    database: Database, imports: ContactImports, monkeypatch: pytest.MonkeyPatch
) -> None:
    await accepted(imports, 2)
    made = StaticList(
        organization_id=ORGANIZATION + "1" * 21, env="test", id="lst_" + "1" * 21, name="All", updated_at=CLOCK.now()
    )
    async with database.transaction() as connection:
        await lists.insert(connection, made)
    read = contacts.by_phones

    async def deleted_after(*asked: Any) -> Any:
        monkeypatch.undo()
        found = await read(*asked)
        await database.execute("delete from contacts where id = $1", found[0].id)
        return found

    monkeypatch.setattr(contacts, "by_phones", deleted_after)
    table = b"phone\n+5511900000000\n+5511900000001"
    found = await handed_in(imports, table, ImportOptions(list_id=made.id))
    assert (found.created, found.unchanged) == (1, 1)
    members = await database.fetch("select contact_id from static_list_members order by 1")
    present = await database.fetch("select id from contacts order by 1")
    assert [row["contact_id"] for row in members] == [row["id"] for row in present]


async def test_two_workers_write_each_row_once(database: Database, imports: ContactImports) -> None:
    found = await accepted(imports, MANY)
    others: Any = [
        ContactImports(
            database,
            ids=IDS,
            documents=imports._writer._documents,
            consents=imports._writer._consents,
            clock=CLOCK,
        )
        for _ in range(2)
    ]
    await asyncio.gather(imports.work(), *(other.work() for other in others))
    latest = await now(database, found)
    assert (latest.status, latest.processed, latest.created, latest.failed) == ("completed", MANY, MANY, 0)
    assert await database.fetchval("select count(*) from contacts") == MANY


async def test_rows_that_wait_are_encrypted_for_their_place(database: Database, imports: ContactImports) -> None:
    lines = b"\n".join(b"+55119%08d;52998224725" % serial for serial in range(MANY))
    found = await handed_in(imports, b"phone;cpf\n" + lines)
    blocks = await database.fetch("select first_row, rows from contact_import_blocks order by first_row")
    assert [block["first_row"] for block in blocks] == [1, 1_001, 2_001]
    for block in blocks:
        assert block["rows"].startswith(b"v1.test.")
        assert b"52998224725" not in block["rows"]
        assert b"+55119" not in block["rows"]
    assert await contact_imports.blocks_under_other_keys(database, RING) == 0
    assert await contact_imports.blocks_under_other_keys(database, KeyRing({"next": bytes(32)})) == 3
    await imports.work()
    latest = await now(database, found)
    assert (latest.status, latest.created, latest.failed) == ("completed", MANY, 0)
    assert await contact_imports.blocks_under_other_keys(database, KeyRing({"next": bytes(32)})) == 0


async def test_a_block_that_was_moved_is_written_nowhere_and_told(database: Database, imports: ContactImports) -> None:
    found = await accepted(imports, MANY)
    await database.execute(
        "update contact_import_blocks b set rows = o.rows from contact_import_blocks o "
        "where b.first_row = 1 and o.first_row = 1001"
    )
    for _ in range(MOST_ATTEMPTS):
        await imports.work()
    latest = await now(database, found)
    assert (latest.status, latest.created) == ("failed", 0)
    assert await database.fetchval("select target_id from audit where action = 'record.tampered'") == found.id


async def test_rows_from_before_they_were_encrypted_are_written(database: Database, imports: ContactImports) -> None:
    found = await accepted(imports, MANY)
    await database.execute(
        "update contact_import_blocks set rows = $1, sealed = false where first_row = 2001", b'[["+5511987654321"]]'
    )
    assert await contact_imports.blocks_under_other_keys(database, RING) == 1
    await imports.work()
    assert (await now(database, found)).status == "completed"
    assert await database.fetchval("select count(*) from contacts where phone = '+5511987654321'") == 1


async def test_imports_are_kept_for_thirty_days(database: Database, imports: ContactImports) -> None:
    done, open_one = await accepted(imports, 1), await accepted(imports, MANY)
    at = CLOCK.now()
    await contact_imports.purge(database, at + timedelta(days=29))
    assert (await now(database, done)).status == "completed"
    await contact_imports.purge(database, at + timedelta(days=31))
    assert await contact_imports.get(database, *done.key) is None
    assert (await now(database, open_one)).status == "processing"


async def test_errors_are_those_of_the_first_rows(database: Database, imports: ContactImports) -> None:
    draft = Draft(
        ORGANIZATION + "1" * 21, "test", IDS.new(CONTACT_IMPORT), ImportFormat.NDJSON, AuditPrincipal("key", "key_1")
    )
    await imports.accept(draft, io.BytesIO(b"1\n" * 2_500), lambda _: ImportOptions())
    await imports.work()
    found = await contact_imports.get(database, *draft.key)
    assert found is not None
    assert (found.status, found.failed) == ("completed", 2_500)
    assert [error["row"] for error in found.errors] == list(range(1, 1_001))
