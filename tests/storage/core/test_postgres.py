"""The pools: values go in and come out, and calls survive what happens to the server or say 503."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.captured import capture_logs

from recado.domain.core.errors import Problem, Unavailable
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections import postgres as postgres_module
from recado.storage.core.connections.failures import worth_repeating
from recado.storage.core.connections.postgres import Database, UnsuitableServer, connection_lost
from recado.storage.embedded.embedded import EmbeddedPostgres

# The first time that this is evaluated its own connection ends.
BREAK_ONCE = "case when nextval('runs') = 1 then pg_terminate_backend(pg_backend_pid()) end"


async def count_runs(database: Database) -> None:
    await database.execute("create sequence runs")


@pytest.mark.parametrize("value", [{"é": [1, None, {"a": 2.5}]}, [1, [2]], "text", 7, True])
async def test_jsonb_values_come_back_as_they_went(database: Database, value: object) -> None:
    assert await database.fetchval("select $1::jsonb", value) == value


async def test_an_array_of_json_objects_is_one_parameter(database: Database) -> None:
    objects = [{"a": 1}, None, {"b": [1, 2]}]
    assert await database.fetchval("select $1::jsonb[]", objects) == objects


async def test_rows_values_and_command_tags_are_answered(database: Database) -> None:
    assert await database.execute("create table t (a integer)") == "CREATE TABLE"
    assert await database.execute("insert into t values (1), (2)") == "INSERT 0 2"
    assert [row["a"] for row in await database.fetch("select a from t order by a")] == [1, 2]
    assert await database.fetchrow("select a from t where a = 3") is None
    assert await database.fetchval("select max(a) from t") == 2


async def test_the_hot_pool_probes_indexes_and_the_general_pool_plans_freely(database: Database) -> None:
    settings = ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
    for setting in settings:
        assert await database.hot.fetchval(f"show {setting}") == "off"
        assert await database.fetchval(f"show {setting}") == "on"
    assert await database.hot.fetchval("show plan_cache_mode") == "force_generic_plan"


async def test_a_read_that_loses_its_connection_runs_again(database: Database) -> None:
    await count_runs(database)
    assert await database.fetchval(f"-- a comment\n  SELECT {BREAK_ONCE}") is None
    assert await database.fetchval("select last_value from runs") == 2


async def test_a_write_that_loses_its_connection_is_not_repeated(database: Database) -> None:
    await count_runs(database)
    await database.execute("create table t (a boolean)")
    with pytest.raises(Unavailable) as refusal:
        await database.execute(f"insert into t select {BREAK_ONCE}")
    assert refusal.value.headers["Retry-After"] == "1"
    assert await database.fetchval("select last_value from runs") == 1


async def test_a_write_that_bears_repetition_runs_again(database: Database) -> None:
    await count_runs(database)
    await database.execute("create table t (a boolean)")
    assert await database.execute(f"insert into t select {BREAK_ONCE}", rerun=True) == "INSERT 0 1"


async def test_connections_that_died_while_idle_are_replaced(database: Database) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(4):
            group.create_task(database.fetch("select 1"))
    async with database.acquire() as connection:
        await connection.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )
    assert await asyncio.gather(*(database.fetchval("select 1") for _ in range(8))) == [1] * 8
    async with database.hot.transaction() as connection:
        assert await connection.fetchval("select 1") == 1


async def test_a_transaction_commits_at_its_end_and_rolls_back_on_an_error(database: Database) -> None:
    await database.execute("create table t (a integer)")
    async with database.transaction() as connection:
        await connection.execute("insert into t values (1)")
    problem = Problem("CONFLICT", "no")

    async def fail() -> None:
        async with database.transaction() as connection:
            await connection.execute("insert into t values (2)")
            raise problem

    with pytest.raises(Problem) as raised:
        await fail()
    assert raised.value is problem
    assert [row["a"] for row in await database.fetch("select a from t")] == [1]


async def test_a_transaction_that_loses_its_connection_is_unavailable_and_leaves_nothing(database: Database) -> None:
    await database.execute("create table t (a integer)")

    async def write_and_break() -> None:
        async with database.transaction() as connection:
            await connection.execute("insert into t values (1)")
            await connection.execute("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(Unavailable):
        await write_and_break()
    assert await database.fetchval("select count(*) from t") == 0


async def test_a_connection_that_breaks_between_two_statements_of_a_transaction_is_unavailable(
    database: Database,
) -> None:
    async def write_after_the_break() -> None:
        async with database.transaction() as connection:
            pid = await connection.fetchval("select pg_backend_pid()")
            await database.hot.execute("select pg_terminate_backend($1, 5000)", pid)
            await connection.execute("select 1")

    with pytest.raises(Unavailable):
        await write_after_the_break()


async def test_of_two_transactions_that_wait_for_each_other_one_is_refused_and_leaves_nothing(
    database: Database,
) -> None:
    await database.execute("create table t (a integer, by text)")
    await database.execute("insert into t values (1), (2)")
    both_have_one = asyncio.Barrier(2)

    async def take(first: int, second: int, by: str) -> None:
        async with database.transaction() as connection:
            await connection.execute("set local deadlock_timeout = '10ms'")
            await connection.execute("update t set by = $2 where a = $1", first, by)
            await both_have_one.wait()
            await connection.execute("update t set by = $2 where a = $1", second, by)

    with capture_logs() as logs:
        outcomes = await asyncio.gather(take(1, 2, "x"), take(2, 1, "y"), return_exceptions=True)
    (refusal,) = (outcome for outcome in outcomes if outcome is not None)
    assert isinstance(refusal, Unavailable)
    assert (refusal.status, refusal.headers["Retry-After"]) == (503, "1")
    assert worth_repeating(refusal)
    assert [(entry["event"], entry["error"]) for entry in logs] == [("transaction_collided", "DeadlockDetectedError")]
    winner = "y" if isinstance(outcomes[0], Unavailable) else "x"
    assert [row["by"] for row in await database.fetch("select by from t")] == [winner, winner]


@pytest.mark.parametrize("by_itself", [True, False])
async def test_a_lock_that_is_not_to_be_had_is_a_refusal(database: Database, by_itself: bool) -> None:
    await database.execute("create table t (a integer)")
    await database.execute("insert into t values (1)")
    statement = "select from t for update nowait"

    async def take() -> None:
        if by_itself:
            await database.execute(statement)
        else:
            async with database.transaction() as connection:
                await connection.execute(statement)

    async with database.transaction() as holder:
        await holder.execute("select from t for update")
        with capture_logs(), pytest.raises(Unavailable):
            await take()
    await take()


async def test_a_transaction_that_came_too_late_for_its_snapshot_is_refused(database: Database) -> None:
    await database.execute("create table t (a integer)")
    await database.execute("insert into t values (1)")

    async def change_late() -> None:
        async with database.transaction() as connection:
            await connection.execute("set transaction isolation level repeatable read")
            await connection.fetchval("select a from t")
            await database.execute("update t set a = 2")
            await connection.execute("update t set a = 3")

    with capture_logs(), pytest.raises(Unavailable):
        await change_late()
    assert await database.fetchval("select a from t") == 2


async def test_an_error_of_the_data_comes_out_as_it_is(database: Database) -> None:
    with pytest.raises(asyncpg.DivisionByZeroError):
        await database.fetchval("select 1 / 0")
    with pytest.raises(asyncpg.DataError):
        await database.fetchval("select $1::integer", "one")


@pytest.mark.long
async def test_calls_wait_while_the_server_restarts(own_server: EmbeddedPostgres) -> None:
    database = Database(await own_server.start(), clock=SystemClock(), pool_size=4)
    await database.start()
    await database.execute("create table t (a integer)")
    before = own_server.pid
    restart = asyncio.create_task(own_server.restart())
    calls = 0
    while not restart.done():
        assert await database.fetchval("select count(*) from t") == 0
        async with asyncio.timeout(60):
            await asyncio.gather(*(database.fetchval("select 1") for _ in range(6)))
        calls += 7
    await restart
    assert calls > 0
    assert own_server.pid not in (None, before)
    await database.stop()


async def test_a_call_that_finds_no_free_connection_in_time_is_unavailable(
    postgres: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(postgres, clock=SystemClock(), pool_size=1)
    await database.start()
    async with database.acquire():
        with monkeypatch.context() as hurried:
            hurried.setattr(database, "_deadline", 0.1)
            with pytest.raises(Unavailable):
                await database.fetchval("select 1")
    assert await database.fetchval("select 1") == 1
    await database.stop()


async def test_starting_without_a_server_gives_up_at_the_deadline(tmp_path: Path) -> None:
    clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
    database = Database({"host": str(tmp_path), "user": "nobody", "database": "none"}, clock=clock, deadline=10)
    start = asyncio.create_task(database.start())
    while not start.done():
        await clock.advance(0.5)
    with pytest.raises(Unavailable):
        await start
    assert 8 <= clock.monotonic() <= 10.5
    await database.stop()


async def test_start_and_stop_may_be_called_twice_and_a_stopped_database_refuses(postgres: dict[str, Any]) -> None:
    database = Database(postgres, clock=SystemClock())
    await database.start()
    await database.start()
    assert await database.fetchval("select 1") == 1
    await database.stop()
    await database.stop()
    for pool in (database, database.hot):
        with pytest.raises(Unavailable):
            await pool.fetchval("select 1")
    await database.start()
    assert await database.hot.fetchval("select 1") == 1
    await database.stop()


async def test_stop_waits_for_calls_in_flight(postgres: dict[str, Any]) -> None:
    database = Database(postgres, clock=SystemClock())
    await database.start()
    async with database.acquire() as connection:
        stop = asyncio.create_task(database.stop())
        assert await connection.fetchval("select 1") == 1
        assert not stop.done()
    await stop


async def test_an_old_server_is_refused_by_name(postgres: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_module, "OLDEST_SERVER", 99)
    with pytest.raises(UnsuitableServer, match=r"needs PostgreSQL 99 or newer; this server is 18\.\d+"):
        await Database(postgres, clock=SystemClock()).start()


async def test_a_database_that_is_not_utf8_is_refused(database: Database, postgres: dict[str, Any]) -> None:
    await database.execute("create database bytes encoding 'SQL_ASCII' locale 'C' template template0")
    with pytest.raises(UnsuitableServer, match="UTF8"):
        await Database({**postgres, "database": "bytes"}, clock=SystemClock()).start()
    await database.execute("drop database bytes with (force)")


@pytest.mark.parametrize(
    ("error", "lost"),
    [
        (ConnectionRefusedError(), True),
        (TimeoutError(), True),
        (asyncpg.InternalClientError("got result for unknown protocol state 3"), True),
        (asyncpg.InterfaceError("connection is closed"), True),
        (asyncpg.InterfaceError("pool is closing"), True),
        (asyncpg.AdminShutdownError("terminating connection"), True),
        (asyncpg.CannotConnectNowError("the database system is starting up"), True),
        (asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation"), True),
        (asyncpg.TooManyConnectionsError("sorry"), True),
        (asyncpg.DiskFullError("no space"), True),
        (asyncpg.InterfaceError("cannot perform operation: another operation is in progress"), False),
        (asyncpg.DataError("invalid input for query argument $1: 'the shop is closed'"), False),
        (asyncpg.UniqueViolationError("duplicate key"), False),
        (asyncpg.UndefinedTableError("no such table"), False),
        (ValueError("connection is closed"), False),
    ],
)
def test_lost_connections_are_told_from_errors_of_the_statement(error: Exception, lost: bool) -> None:
    assert connection_lost(error) is lost
