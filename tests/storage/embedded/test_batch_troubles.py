"""A batch in trouble: bad rows, lost connections, restarts and repairs harm nobody else and lose nothing."""

import asyncio
import gc
import weakref
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage.batching import INSERT, START, inserter, make_table, stored

from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import BODY_LENGTH, MESSAGE, lowest_id
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.partitions import partition_repair
from recado.storage.embedded.embedded import EmbeddedPostgres


async def test_a_poison_row_harms_only_its_own_caller(database: Database) -> None:
    await make_table(database)
    batcher = Batcher("test", inserter(database), clock=SystemClock())
    await batcher.start()
    rows: list[Any] = [1, 2, 13, 4, "five", 6, 7]
    outcomes = await asyncio.gather(*(batcher.put(row) for row in rows), return_exceptions=True)
    assert [outcome for outcome in outcomes if not isinstance(outcome, Exception)] == [1, 2, 4, 6, 7]
    assert isinstance(outcomes[2], asyncpg.CheckViolationError)
    assert isinstance(outcomes[4], asyncpg.DataError)
    assert await stored(database) == [1, 2, 4, 6, 7]
    await batcher.stop()


async def test_a_wrong_statement_is_no_fault_of_a_row_and_runs_once(database: Database) -> None:
    runs = 0

    async def run(rows: Sequence[int]) -> Sequence[int]:
        nonlocal runs
        runs += 1
        await database.hot.execute("insert into no_such_table values (1)")
        return rows

    batcher = Batcher("test", run, clock=SystemClock())
    await batcher.start()
    outcomes = await asyncio.gather(*(batcher.put(row) for row in range(5)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {asyncpg.UndefinedTableError}
    assert runs == 1
    await batcher.stop()


class Row:
    """A row whose end can be noticed."""


@pytest.mark.parametrize("together", [1, 8])
async def test_refused_rows_are_forgotten_without_the_collector(together: int) -> None:
    async def run(rows: Sequence[Row]) -> Sequence[Row]:
        raise ValueError("a bad row")

    async def put() -> "weakref.ref[Row]":
        row = Row()
        with pytest.raises(ValueError, match="bad"):
            await batcher.put(row)
        return weakref.ref(row)

    batcher = Batcher("test", run, clock=SystemClock())
    await batcher.start()
    gc.collect()
    gc.disable()
    try:
        rows = await asyncio.gather(*(put() for _ in range(together)))
        await batcher.stop()
        left = sum(row() is not None for row in rows)
    finally:
        gc.enable()
    assert left == 0


async def test_a_batch_that_lost_its_connection_runs_again_whole(database: Database) -> None:
    await make_table(database)
    await database.execute("create sequence runs")
    batches = []

    async def run(rows: Sequence[int]) -> Sequence[int]:
        batches.append(list(rows))
        async with database.hot.transaction() as connection:
            await connection.execute(INSERT, list(rows))
            await connection.execute(
                "select case when nextval('runs') < 3 then pg_terminate_backend(pg_backend_pid()) end"
            )
        return rows

    batcher = Batcher("test", run, clock=SystemClock())
    await batcher.start()
    assert await asyncio.gather(*(batcher.put(row) for row in (1, 2, 3))) == [1, 2, 3]
    assert batches == [[1, 2, 3]] * 3
    assert await stored(database) == [1, 2, 3]
    await batcher.stop()


async def test_a_batch_that_committed_though_its_answer_was_lost_is_not_doubled(database: Database) -> None:
    await make_table(database)
    lost: list[Exception] = [asyncpg.InternalClientError("unexpected"), ConnectionResetError(), TimeoutError()]

    async def run(rows: Sequence[int]) -> Sequence[int]:
        await database.hot.fetch(INSERT, list(rows))
        if lost:
            raise lost.pop()
        return rows

    batcher = Batcher("test", run, clock=SystemClock())
    await batcher.start()
    assert await asyncio.gather(*(batcher.put(row) for row in (1, 2, 3))) == [1, 2, 3]
    assert await stored(database) == [1, 2, 3]
    assert lost == []
    await batcher.stop()


@pytest.mark.long
async def test_a_server_that_restarts_under_load_loses_and_doubles_nothing(own_server: EmbeddedPostgres) -> None:
    database = Database(await own_server.start(), clock=SystemClock(), hot_size=2)
    await database.start()
    await database.execute("create table t (a integer)")  # without a key: a doubled row would show

    async def run(rows: Sequence[int]) -> Sequence[int]:
        # One commit claims the rows and writes them, as the statements of the program do.
        await database.hot.execute(
            "with claimed as (insert into claims select unnest($1::integer[]) on conflict do nothing returning a) "
            "insert into t select a from claimed",
            list(rows),
        )
        return rows

    await database.execute("create table claims (a integer primary key)")
    batcher = Batcher("test", run, clock=SystemClock(), max_rows=20)
    await batcher.start()
    answered: list[int] = []
    milestones = {800: asyncio.Event(), 1600: asyncio.Event(), 2400: asyncio.Event()}

    async def caller(first: int, last: int) -> None:
        for row in range(first, last):
            answered.append(await batcher.put(row))
            if len(answered) in milestones:
                milestones[len(answered)].set()

    callers = [asyncio.create_task(caller(number * 100, number * 100 + 100)) for number in range(40)]
    for milestone in milestones.values():
        await milestone.wait()
        await own_server.restart()
    await asyncio.gather(*callers)
    assert sorted(answered) == list(range(4000))
    assert await stored(database) == list(range(4000))
    await batcher.stop()
    await database.stop()


async def test_a_row_without_a_partition_makes_it_and_is_stored(database: Database) -> None:
    next_year = datetime(START.year + 1, 8, 20, 12, tzinfo=UTC)
    clock = VirtualClock(next_year)
    first = lowest_id(MESSAGE, next_year)
    ids = [first[:-1] + str(digit) for digit in range(5)]
    assert len(first) == len(MESSAGE) + BODY_LENGTH

    async def run(rows: Sequence[str]) -> Sequence[str]:
        await database.hot.execute(
            "insert into messages (organization_id, env, channel, id, direction, status, type, recipient, "
            "recipient_hash, class, force, updated_at) "
            "select 'org_1', 'test', 'chat_app', id, 'outbound', 'queued', 'text', '+1', 1, 1, false, $2 "
            "from unnest($1::text[]) as new (id) on conflict do nothing",
            list(rows),
            next_year,
        )
        return rows

    batcher = Batcher("test", run, clock=clock, max_rows=2, repair=partition_repair(database, clock))
    await batcher.start()
    assert await asyncio.gather(*(batcher.put(row) for row in ids)) == ids
    assert await database.fetchval("select array_agg(id order by id) from messages") == ids
    assert await database.fetchval("select distinct tableoid::regclass::text from messages") == "messages_2027_08"

    # A row of a month far away is nobody's but its caller's trouble.
    strange = lowest_id(MESSAGE, datetime(2050, 1, 1, tzinfo=UTC))
    near = first[:-1] + "9"
    outcomes = await asyncio.gather(batcher.put(strange), batcher.put(near), return_exceptions=True)
    assert isinstance(outcomes[0], asyncpg.CheckViolationError)
    assert outcomes[1] == near
    await batcher.stop()


async def test_a_repair_that_fails_leaves_the_error_to_its_row() -> None:
    async def run(rows: Sequence[int]) -> Sequence[int]:
        if 2 in rows:
            raise ValueError("two")
        return rows

    async def repair(error: Exception) -> bool:
        raise ConnectionResetError

    batcher = Batcher("test", run, clock=VirtualClock(START), repair=repair)
    await batcher.start()
    outcomes = await asyncio.gather(*(batcher.put(row) for row in (1, 2, 3)), return_exceptions=True)
    assert outcomes[::2] == [1, 3]
    assert isinstance(outcomes[1], ValueError)
    await batcher.stop()


@pytest.mark.parametrize(
    "error",
    [
        Unavailable(),
        ConnectionRefusedError(),
        asyncpg.DeadlockDetectedError("deadlock detected"),
        asyncpg.SerializationError("could not serialize access"),
    ],
)
async def test_what_a_later_try_may_mend_is_tried_until_the_deadline_and_then_unavailable(error: Exception) -> None:
    clock = VirtualClock(START)
    runs = 0

    async def run(rows: Sequence[int]) -> Sequence[int]:
        nonlocal runs
        runs += 1
        raise error

    batcher = Batcher("test", run, clock=clock, concurrency=1, max_rows=2, deadline=30)
    await batcher.start()
    early = [batcher.put(row) for row in range(5)]
    await clock.advance(20)
    late = batcher.put(5)
    await clock.advance(9)
    assert not any(answer.done() for answer in early)
    assert runs > 20
    await clock.advance(1)
    # The rows behind the batch have waited as long as it has; the late one shares a batch with them but has time left.
    assert [type(answer.exception()) for answer in early] == [Unavailable] * 5
    assert not late.done()
    await clock.advance(20)
    assert isinstance(late.exception(), Unavailable)
    await batcher.stop()


class FlakyTable:
    """A table in memory whose connection breaks before or after the commit as told; row 13 breaks its check."""

    def __init__(self, troubles: list[str]) -> None:
        self.rows: list[int] = []
        self.troubles = troubles

    async def __call__(self, rows: Sequence[int]) -> Sequence[int]:
        trouble = self.troubles.pop() if self.troubles else "none"
        if trouble == "lost before":
            raise ConnectionResetError
        if any(row % 13 == 0 for row in rows):
            raise asyncpg.CheckViolationError("poison")
        self.rows += [row for row in rows if row not in self.rows]
        if trouble == "lost after":
            raise asyncpg.InternalClientError("lost")
        return rows


@given(
    rows=st.lists(st.integers(1, 60), unique=True, max_size=40),
    troubles=st.lists(st.sampled_from(["none", "lost before", "lost after"]), max_size=10),
    max_rows=st.integers(1, 12),
    concurrency=st.integers(1, 3),
)
def test_every_good_row_is_stored_once_and_answered_whatever_breaks(
    rows: list[int], troubles: list[str], max_rows: int, concurrency: int
) -> None:
    async def scenario() -> None:
        clock = VirtualClock(START)
        table = FlakyTable(troubles)
        batcher = Batcher("test", table, clock=clock, max_rows=max_rows, concurrency=concurrency)
        await batcher.start()
        answers = {row: batcher.put(row) for row in rows}
        await clock.advance(29)
        for row, answer in answers.items():
            if row % 13 == 0:
                assert isinstance(answer.exception(), asyncpg.CheckViolationError)
            else:
                assert answer.result() == row
        assert sorted(table.rows) == sorted(row for row in rows if row % 13)
        await batcher.stop()

    asyncio.run(scenario())
