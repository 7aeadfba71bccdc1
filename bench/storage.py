"""What the batcher costs: rows that callers put one by one, beside batches that are ready before."""

import asyncio
import time
from collections.abc import Sequence

import asyncpg

from bench.harness import Figure, Say, against, remove_cluster, scratch
from recado.engine.clock import SystemClock
from recado.storage.core.connections.batch import Batcher
from recado.storage.embedded.embedded import EmbeddedPostgres

ROWS = 100_000
BATCH = 500
IN_FLIGHT = 2
CALLERS = 2_000
ROUNDS = 3
LEAST = 0.6

SCHEMA = "create table rows (id bigint primary key, owner text not null, payload text not null, at bigint not null)"
INSERT = "insert into rows select * from unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[])"
Row = tuple[int, str, str, int]


async def run(say: Say) -> list[Figure]:
    """The same statement, batch size and number of connections, in turns."""
    clock = SystemClock()
    async with scratch() as folder:
        postgres = EmbeddedPostgres(folder / "storage", clock=clock)
        try:
            pool = await asyncpg.create_pool(**await postgres.start(), min_size=IN_FLIGHT, max_size=IN_FLIGHT)
            await pool.execute(SCHEMA)
            direct, batched = [], []
            for number in range(ROUNDS):
                say(f"storage, round {number + 1} of {ROUNDS}")
                direct.append(await _direct(pool, 2 * number * ROWS))
                batched.append(await _batched(pool, clock, (2 * number + 1) * ROWS))
            pool.terminate()
        finally:
            await postgres.stop()
            remove_cluster(folder / "storage")
    return [against("storage: rows through the batcher", batched, direct, "rows/s", LEAST)]


async def _insert(pool: "asyncpg.Pool[asyncpg.Record]", rows: Sequence[Row]) -> Sequence[None]:
    await pool.execute(INSERT, *map(list, zip(*rows, strict=True)))
    return [None] * len(rows)


async def _direct(pool: "asyncpg.Pool[asyncpg.Record]", first: int) -> float:
    """Batches of rows, each after the other, over as many connections."""
    numbers = iter(range(first, first + ROWS, BATCH))

    async def insert() -> None:
        for start in numbers:
            await _insert(pool, [_row(start + offset) for offset in range(BATCH)])

    began = time.perf_counter()
    await asyncio.gather(*(insert() for _ in range(IN_FLIGHT)))
    return ROWS / (time.perf_counter() - began)


async def _batched(pool: "asyncpg.Pool[asyncpg.Record]", clock: SystemClock, first: int) -> float:
    """Callers that put one row and wait for its commit before they put the next."""
    batcher: Batcher[Row, None] = Batcher(
        "bench", lambda rows: _insert(pool, rows), clock=clock, max_rows=BATCH, concurrency=IN_FLIGHT
    )
    await batcher.start()
    numbers = iter(range(first, first + ROWS))

    async def caller() -> None:
        for number in numbers:
            await batcher.put(_row(number))

    began = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    seconds = time.perf_counter() - began
    await batcher.stop()
    return ROWS / seconds


def _row(number: int) -> Row:
    return (number, "single", "Hello, here is news.", number)
