"""Shares of a pool: who asks for much at once waits for itself, and what is broken off leaves nothing behind."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.faults.proxy import before_postgres
from tests.waiting import until

from recado.domain.core.errors import Unavailable
from recado.engine.clock import SystemClock
from recado.storage.core.connections import pool as pool_module
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.pool import Pool
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.callers import working_for

SIZE, SHARE = 4, 2


@asynccontextmanager
async def opened(server: dict[str, Any], **options: Any) -> AsyncIterator[Pool]:
    pool = Pool(server, clock=SystemClock(), size=SIZE, **{"deadline": 10.0, "share": SHARE, **options})
    await pool.start()
    try:
        yield pool
    finally:
        await pool.stop()


@pytest.fixture
async def pool(postgres: dict[str, Any]) -> AsyncIterator[Pool]:
    async with opened(postgres) as made:
        yield made


class Holders:
    """Calls that hold connections until they are let go. `held`: of whom they are that have one."""

    def __init__(self, pool: Pool) -> None:
        self.held: list[str] = []
        self._pool = pool
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()

    def ask(self, owner: str, times: int) -> None:
        self._tasks += [asyncio.create_task(self._hold(owner)) for _ in range(times)]

    async def until_held(self, *owners: str) -> None:
        async with asyncio.timeout(60):
            while sorted(self.held) != sorted(owners):
                self._changed.clear()
                await self._changed.wait()

    async def cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _hold(self, owner: str) -> None:
        working_for.set(owner)
        async with self._pool.acquire() as connection:
            await connection.fetchval("select 1")
            self.held.append(owner)
            self._changed.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.held.remove(owner)
                self._changed.set()


async def call(owner: str, work: Callable[[], Awaitable[Any]]) -> Any:
    async def as_owner() -> Any:
        working_for.set(owner)
        return await work()

    return await asyncio.create_task(as_owner())


async def test_an_organization_holds_no_more_than_its_share_and_another_is_served(pool: Pool) -> None:
    holders = Holders(pool)
    holders.ask("org_a", 10)
    await holders.until_held("org_a", "org_a")
    assert await call("org_b", lambda: pool.fetchval("select 7")) == 7
    async with pool.transaction() as connection:  # the service itself
        assert await connection.fetchval("select 7") == 7
    assert holders.held == ["org_a", "org_a"]
    await holders.cancel()


async def test_who_waits_in_vain_for_its_own_share_hears_so(postgres: dict[str, Any]) -> None:
    async with opened(postgres, deadline=0.05) as pool:
        holders = Holders(pool)
        holders.ask("org_a", SHARE)
        await holders.until_held("org_a", "org_a")
        with pytest.raises(Unavailable):
            await call("org_a", lambda: pool.fetchval("select 7"))
        await holders.cancel()


async def test_waits_that_are_cancelled_leave_every_connection_to_others(pool: Pool) -> None:
    holders = Holders(pool)
    for _ in range(3):
        holders.ask("org_a", 10)
        await holders.until_held("org_a", "org_a")
        await holders.cancel()
    others = Holders(pool)
    others.ask("org_a", SHARE)
    others.ask("org_b", SHARE)
    await others.until_held("org_a", "org_a", "org_b", "org_b")
    await others.cancel()


@pytest.mark.parametrize("in_transaction", [False, True], ids=["statement", "transaction"])
async def test_a_statement_that_is_broken_off_leaves_its_connection_to_others(
    database: Database, pool: Pool, in_transaction: bool
) -> None:
    async def sleep() -> None:
        if in_transaction:
            async with pool.transaction() as connection:
                await connection.execute(f"select pg_sleep(60), '{id(pool)}'")
        else:
            await pool.execute(f"select pg_sleep(60), '{id(pool)}'")

    asked = [asyncio.create_task(sleep()) for _ in range(SIZE)]
    await until(lambda: _sleeping(database, pool, SIZE), "all of them sleep")
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await until(lambda: _sleeping(database, pool, 0), "nothing goes on in the server")
    holders = Holders(pool)
    holders.ask("org_a", SHARE)
    holders.ask("org_b", SHARE)
    await holders.until_held("org_a", "org_a", "org_b", "org_b")
    await holders.cancel()


async def test_calls_to_a_server_that_falls_silent_are_let_go_at_once_and_told_once(
    postgres: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "SETTLE_LIMIT", 0.1)
    async with before_postgres(postgres) as (proxy, behind), opened(behind) as pool:
        with capture_logs() as logs:
            await asyncio.gather(*(pool.fetchval("select 1 from pg_sleep(0.05)") for _ in range(SIZE)))
            proxy.stall()
            with monkeypatch.context() as hurried:
                hurried.setattr(pool, "_deadline", 0.5)
                for _ in range(2):
                    for work in (_fetch(pool), _transaction(pool)):
                        with pytest.raises((TimeoutError, Unavailable)):
                            async with asyncio.timeout(0.05):
                                await work
            await until(lambda: bool(logs), "the outage is told")
            proxy.restore()
            assert await until(lambda: _answer(pool), "the database answers") == 1
            await asyncio.gather(*(pool.fetchval("select 1 from pg_sleep(0.05)") for _ in range(2 * SIZE)))
        assert [entry["event"] for entry in logs] == ["database_away", "database_back"]
        assert logs[0]["cause"] == "no answer in time"


async def _fetch(pool: Pool) -> None:
    await pool.fetchval("select 1")


async def _transaction(pool: Pool) -> None:
    async with pool.transaction() as connection:
        await connection.fetchval("select 1")


async def _answer(pool: Pool) -> int | None:
    try:
        found: int = await pool.fetchval("select 1")
    except Unavailable:
        return None
    return found


async def _sleeping(database: Database, pool: Pool, wanted: int) -> bool:
    """Whether so many of the pool's statements sleep in the server."""
    sql = "select count(*) from pg_stat_activity where state = 'active' and query like $1"
    found: int = await database.fetchval(sql, f"select pg_sleep(60), '{id(pool)}'")
    return found == wanted


async def test_a_change_that_was_broken_off_is_told_again_when_its_transaction_has_ended(pool: Any) -> None:
    told: list[str] = []
    begun = asyncio.Event()

    async def change() -> None:
        async with changing(pool, told.append, "it") as connection:
            begun.set()
            await connection.execute("select pg_sleep(60)")

    task = asyncio.create_task(change())
    await begun.wait()
    task.cancel()
    await asyncio.wait([task])
    assert told == ["it"]
    await until(lambda: told == ["it", "it"], "the transaction has ended")
