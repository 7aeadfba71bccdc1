"""A server that answers and does not write: told once, until it writes again (C2.7)."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

import asyncpg
import pytest
from tests.captured import capture_logs
from tests.http.scripted_provider import ShiftedClock
from tests.waiting import until

from recado.domain.core.errors import Unavailable
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections import outage as outage_module
from recado.storage.core.connections.outage import TRY_EVERY, Outage
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.callers import working_for

CAUSES = {"53100": "its disk is full", "53200": "it is out of memory", "25006": "it is read-only"}


class Disk:
    """Where tries to write go. `tries`: for whom each of them was."""

    def __init__(self) -> None:
        self.full = True
        self.tries: list[str] = []

    async def try_write(self) -> None:
        self.tries.append(working_for.get())
        if self.full:
            raise Unavailable("full")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def outage(clock: VirtualClock, disk: Disk) -> AsyncIterator[Outage]:
    made = Outage(clock, disk.try_write)
    await made.start()
    yield made
    await made.stop()


async def test_refusals_are_told_once_and_their_end_once(outage: Outage, clock: VirtualClock, disk: Disk) -> None:
    with capture_logs() as logs:
        for _ in range(3):
            assert outage.refused(asyncpg.DiskFullError("no space"))
        await clock.advance(TRY_EVERY)
        assert outage.refuses_writes
        disk.full = False
        await clock.advance(TRY_EVERY)
        assert not outage.refuses_writes
        await clock.advance(10 * TRY_EVERY)
    assert [entry["event"] for entry in logs] == ["database_refuses_writes", "database_writes_again"]
    assert (logs[0]["cause"], logs[1]["seconds"]) == ("its disk is full", 2 * TRY_EVERY)
    assert len(disk.tries) == 2


async def test_nothing_is_over_while_callers_are_refused(outage: Outage, clock: VirtualClock, disk: Disk) -> None:
    disk.full = False
    for _ in range(5):
        assert outage.refused(asyncpg.OutOfMemoryError("out of shared memory"))
        await clock.advance(TRY_EVERY / 2)
    assert disk.tries == []
    assert outage.refuses_writes
    await clock.advance(2 * TRY_EVERY)
    assert not outage.refuses_writes


async def test_tries_are_not_made_in_the_name_of_whom_was_refused(
    outage: Outage, clock: VirtualClock, disk: Disk
) -> None:
    before = working_for.get()
    working_for.set("org_a")
    assert outage.refused(asyncpg.ReadOnlySQLTransactionError("cannot execute INSERT"))
    await clock.advance(TRY_EVERY)
    assert disk.tries == [before]


@pytest.mark.parametrize("error", [ConnectionResetError(), TimeoutError(), asyncpg.TooManyConnectionsError("sorry")])
async def test_what_is_no_refusal_to_write_is_none(outage: Outage, error: Exception) -> None:
    with capture_logs() as logs:
        assert not outage.refused(error)
    assert (outage.refuses_writes, logs) == (False, [])


async def test_a_stop_ends_the_tries_and_begins_none(outage: Outage, clock: VirtualClock, disk: Disk) -> None:
    outage.refused(asyncpg.DiskFullError("no space"))
    await outage.stop()
    assert outage.refused(asyncpg.DiskFullError("no space"))
    assert not outage.refuses_writes
    await clock.advance(3 * TRY_EVERY)
    assert disk.tries == []


# On a server ----------------------------------------------------------------------------------------------------------


def raising(state: str) -> str:
    return f"do $$ begin raise exception using errcode = '{state}'; end $$"


async def _statement(database: Database, state: str) -> None:
    await database.execute(raising(state))


async def _repeated(database: Database, state: str) -> None:
    await database.hot.execute(raising(state), rerun=True)


async def _transaction(database: Database, state: str) -> None:
    async with database.bulk.transaction() as connection:
        await connection.execute(raising(state))


async def _connection(database: Database, state: str) -> None:
    async with database.acquire() as connection:
        await connection.execute(raising(state))


@pytest.mark.parametrize("work", [_statement, _repeated, _transaction, _connection])
@pytest.mark.parametrize("state", CAUSES)
async def test_every_way_to_write_tells_of_a_refusal(
    database: Database, monkeypatch: pytest.MonkeyPatch, work: Callable[[Database, str], Awaitable[None]], state: str
) -> None:
    clock, room = ShiftedClock(), asyncio.Event()
    own = Database(database.server, clock=clock)
    refused, try_write = own._outage.refused, own._outage._try_write

    def until_the_deadline(error: BaseException) -> bool:
        """Who repeats its call does so no more: the first refusal takes all of its time."""
        clock.shift(600)
        return refused(error)

    async def once_there_is_room() -> None:
        await room.wait()
        await try_write()

    monkeypatch.setattr(outage_module, "TRY_EVERY", 0.01)
    monkeypatch.setattr(own._outage, "refused", until_the_deadline)
    monkeypatch.setattr(own._outage, "_try_write", once_there_is_room)
    await own.start()
    try:
        with capture_logs() as logs:
            with pytest.raises((Unavailable, asyncpg.PostgresError)):
                await work(own, state)
            assert own.refuses_writes
            room.set()
            await until(lambda: not own.refuses_writes, "a write succeeds again")
    finally:
        await own.stop()
    assert [entry["event"] for entry in logs] == ["database_refuses_writes", "database_writes_again"]
    assert logs[0]["cause"] == CAUSES[state]


async def test_a_database_that_became_read_only_is_tried_until_it_writes(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = asyncio.Event()

    async def try_write(self: Database) -> None:
        try:
            await original(self)
        finally:
            tried.set()

    original = Database.try_write
    monkeypatch.setattr(outage_module, "TRY_EVERY", 0.05)
    monkeypatch.setattr(Database, "try_write", try_write)
    await database.execute("create table t (a integer)")
    name = database.server["database"]
    await database.execute(f"alter database {name} set default_transaction_read_only = on")
    # Sessions of its own: those that tests keep for one another (tests/emptied.py) began before.
    own = Database(database.server, clock=SystemClock(), pool_size=3)
    await own.start()
    try:
        with pytest.raises(Unavailable):
            await own.execute("insert into t values (1)")
        async with asyncio.timeout(60):
            await tried.wait()
        assert own.refuses_writes
        assert await own.fetchval("select count(*) from t") == 0
        await database.execute(f"alter database {name} set default_transaction_read_only = off")
        await database.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()",
            name,
        )
        await until(lambda: not own.refuses_writes, "a write succeeds again")
        await own.execute("insert into t values (1)")
    finally:
        await own.stop()


async def test_nothing_is_left_of_a_try_to_write(database: Database) -> None:
    await database.try_write()
    await database.try_write()
    sql = "select count(*) from pg_class where relname = 'recado_tried_write'"
    assert await database.fetchval(sql) == 0
