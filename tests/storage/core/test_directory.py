"""The read-through cache of records."""

import asyncio
import gc
from datetime import UTC, datetime
from typing import Any

import pytest

from recado.engine.clock import VirtualClock
from recado.storage.core.directory import Directory

START = datetime(2026, 1, 1, tzinfo=UTC)


class Table:
    """Records behind a directory. While `gate` is closed, loads hang."""

    def __init__(self, **records: str) -> None:
        self.records = records
        self.loads: list[str] = []
        self.ended = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.failure: Exception | None = None

    async def load(self, key: str) -> str | None:
        found = self.records.get(key)
        self.loads.append(key)
        try:
            await self.gate.wait()
            if self.failure is not None:
                raise self.failure
            return found
        finally:
            self.ended += 1

    async def started(self, loads: int) -> None:
        """Until so many loads have begun."""
        while len(self.loads) < loads:
            await asyncio.sleep(0)


def directory(table: Table, clock: VirtualClock | None = None, **options: Any) -> Directory[str, str]:
    return Directory(table.load, clock=clock or VirtualClock(START), **options)


async def test_a_record_is_loaded_once_and_served_until_its_time_is_over() -> None:
    table, clock = Table(a="1"), VirtualClock(START)
    cache = directory(table, clock, ttl=2.0)
    assert cache.peek("a") is None
    assert await cache.get("a") == "1"
    table.records["a"] = "2"
    await clock.advance(1.9)
    assert cache.peek("a") == "1"
    await clock.advance(0.1)
    assert cache.peek("a") is None
    assert await cache.get("a") == "2"
    assert table.loads == ["a", "a"]


async def test_records_that_nobody_asks_for_any_more_leave_memory_when_the_next_one_comes() -> None:
    table, clock = Table(a="1", b="2", c="3", d="4"), VirtualClock(START)
    cache = directory(table, clock, ttl=2.0)
    await cache.get("a")
    await cache.get("b")
    await clock.advance(1.0)
    await cache.get("c")
    await clock.advance(1.5)
    assert len(cache) == 3
    await cache.get("d")
    assert len(cache) == 2
    assert cache.peek("c") == "3"


async def test_what_does_not_exist_is_not_remembered() -> None:
    table = Table()
    cache = directory(table)
    assert await cache.get("a") is None
    table.records["a"] = "1"
    assert await cache.get("a") == "1"


async def test_concurrent_misses_share_one_query() -> None:
    table = Table(a="1")
    table.gate.clear()
    cache = directory(table)
    asking = [asyncio.ensure_future(cache.get("a")) for _ in range(5)]
    await table.started(1)
    table.gate.set()
    assert await asyncio.gather(*asking) == ["1"] * 5
    assert table.loads == ["a"]


async def test_a_caller_that_leaves_does_not_end_the_query_of_the_others() -> None:
    table = Table(a="1")
    table.gate.clear()
    cache = directory(table)
    first, second = (asyncio.ensure_future(cache.get("a")) for _ in range(2))
    await table.started(1)
    first.cancel()
    await asyncio.sleep(0)
    table.gate.set()
    assert await second == "1"
    assert first.cancelled()


async def test_a_query_that_fails_fails_all_who_asked_and_is_asked_again() -> None:
    table = Table(a="1")
    table.failure = RuntimeError("away")
    cache = directory(table)
    results = await asyncio.gather(cache.get("a"), cache.get("a"), return_exceptions=True)
    assert [str(result) for result in results] == ["away", "away"]
    table.failure = None
    assert await cache.get("a") == "1"


async def test_what_was_read_before_a_change_is_not_remembered_after_it() -> None:
    table = Table(a="old")
    first = table.gate = asyncio.Event()
    cache = directory(table)
    early = asyncio.ensure_future(cache.get("a"))
    await table.started(1)
    table.records["a"] = "new"
    cache.forget("a")
    table.gate = asyncio.Event()
    table.gate.set()
    assert await cache.get("a") == "new"
    first.set()
    assert await early == "old"
    assert cache.peek("a") == "new"


async def test_forgetting_by_condition_also_stops_queries_under_way_from_being_remembered() -> None:
    table = Table(a="x1", b="y1", c="x1")
    cache = directory(table)
    await cache.get("a")
    await cache.get("b")
    table.gate.clear()
    early = asyncio.ensure_future(cache.get("c"))
    await table.started(3)
    cache.forget_where(lambda record: record.startswith("x"))
    table.gate.set()
    assert await early == "x1"
    assert (cache.peek("a"), cache.peek("b"), cache.peek("c")) == (None, "y1", None)


async def test_the_least_recently_used_record_goes_when_there_are_too_many() -> None:
    table = Table(a="1", b="2", c="3")
    cache = directory(table, capacity=2)
    await cache.get("a")
    await cache.get("b")
    assert cache.peek("a") == "1"
    await cache.get("c")
    assert (cache.peek("a"), cache.peek("b"), cache.peek("c")) == ("1", None, "3")
    assert len(cache) == 2
    cache.clear()
    assert len(cache) == 0


async def test_records_go_that_weigh_too_much_together_but_the_last_one_stays() -> None:
    table = Table(a="1", b="22", c="333", d="4444444")
    cache = directory(table, most=5, weight=len)
    for key in ("a", "b", "c"):
        await cache.get(key)
    assert (cache.peek("a"), cache.peek("b"), cache.peek("c")) == (None, "22", "333")
    await cache.get("d")
    assert (len(cache), cache.peek("d")) == (1, "4444444")


async def test_who_asks_for_much_loses_its_own_records_and_nobody_else_s() -> None:
    table = Table(a1="1", a2="22", a3="333", a4="4444444444", b1="1", b2="2")
    cache = directory(table, capacity=6, most=12, weight=len, owner=lambda key: key[0], parts=2)
    for key in ("b1", "a1", "a2", "b2", "a1", "a3"):  # a2 was used least lately
        await cache.get(key)
    assert [key for key in table.records if cache.peek(key) is not None] == ["a1", "a2", "a3", "b1", "b2"]
    await cache.get("a4")
    assert [key for key in table.records if cache.peek(key) is not None] == ["a4", "b1", "b2"]
    table.records["a5"] = "5"
    await cache.get("a5")
    assert [key for key in table.records if cache.peek(key) is not None] == ["b1", "b2", "a5"]


async def test_a_failure_that_nobody_waits_for_any_more_warns_nobody() -> None:
    table = Table(a="1")
    table.gate.clear()
    table.failure = RuntimeError("away")
    cache = directory(table)
    asking = asyncio.ensure_future(cache.get("a"))
    await table.started(1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    table.gate.set()
    while table.ended < 1:
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    del asking  # tracebacks hold the query
    table.failure = None
    gc.collect()
    assert reported == []


async def test_what_is_gone_is_asked_for_once_in_its_time_where_that_is_said() -> None:
    table, clock = Table(), VirtualClock(START)
    cache, other = directory(table, clock, gone=1.0, capacity=2), directory(table, clock)
    assert [await cache.get("a") for _ in range(3)] == [None] * 3
    assert table.loads == ["a"]
    table.records["a"] = "1"
    await clock.advance(1.0)
    assert await cache.get("a") == "1"
    table.loads.clear()
    assert [await other.get("b") for _ in range(2)] == [None] * 2
    assert table.loads == ["b", "b"]
    table.loads.clear()
    for key in ("b", "c", "d", "b", "d"):  # two places
        assert await cache.get(key) is None
    assert table.loads == ["b", "c", "d", "b"]


@pytest.mark.parametrize("change", ["forget", "forget_where", "clear"])
async def test_a_record_that_comes_to_be_is_served_at_once(change: str) -> None:
    table = Table()
    cache = directory(table, gone=60.0)
    assert await cache.get("a") is None
    table.records["a"] = "1"
    {"forget": lambda: cache.forget("a"), "forget_where": lambda: cache.forget_where(bool), "clear": cache.clear}[
        change
    ]()
    assert await cache.get("a") == "1"
