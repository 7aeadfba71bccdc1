"""Callbacks that time out each time: they stand aside, in ever smaller parts, and lose nothing (C29.5)."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import orjson
import pytest
from tests.captured import capture_logs
from tests.services.inbound.live_number import Line, live_number
from tests.waiting import until

from recado.channels.core.events import CallbackEvent
from recado.domain.channels.source import Source
from recado.domain.core.errors import Unavailable
from recado.engine.clock import SystemClock, VirtualClock
from recado.services.inbound.callbacks import MOST_BROKEN
from recado.services.inbound.postponed_callbacks import MOST, PostponedCallbacks
from recado.storage.core.connections import outage
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import receipts
from recado.storage.messages.receipts import CallbackRow

STUCK = "5511987650009"


async def store(line: Line, *events: dict[str, Any]) -> None:
    """A callback of these events, as it lies in the table; nobody works it off yet."""
    body = orjson.dumps({"events": events})
    row = CallbackRow("chatapp", "bridge", hashlib.sha256(body).digest(), body, line.clock.now())
    await receipts.store_callbacks(line.db, [row])


async def received(line: Line) -> list[str]:
    return [row[0] for row in await line.db.fetch("select provider_message_id from messages order by 1")]


async def open_ones(line: Line) -> int:
    return int(await line.db.fetchval("select count(*) from callbacks where processed_at is null"))


@pytest.fixture
async def line(database: Database, postgres: dict[str, Any]) -> AsyncIterator[Line]:
    """Its statements end after a moment, and time moves by hand."""
    number = await live_number(database)
    name = await database.fetchval("select current_database()")
    hurried = Database({**postgres, "database": name}, clock=SystemClock(), statement_limit=1.0)
    await hurried.start()
    made = Line(hurried, number, VirtualClock(SystemClock().now()))
    await store(made, made.inbound("first", "in-0", **{"from": STUCK}))
    await made.callbacks.work()
    yield made
    await made.callbacks.stop()
    await hurried.stop()


@asynccontextmanager
async def held_up(line: Line, postgres: dict[str, Any]) -> AsyncIterator[None]:
    """Somebody else holds the contact of one person."""
    name = await line.db.fetchval("select current_database()")
    other = await asyncpg.connect(**{**postgres, "database": name})
    try:
        async with other.transaction():
            await other.execute("select * from contacts where phone = $1 for update", f"+{STUCK}")
            yield
    finally:
        await other.close()


async def test_a_callback_that_times_out_lets_those_behind_it_go_on_and_is_tried_again_after_its_pause(
    line: Line, postgres: dict[str, Any]
) -> None:
    with capture_logs() as logs:
        async with held_up(line, postgres):
            await store(line, line.inbound("stuck", "in-1", **{"from": STUCK}))
            await store(line, line.inbound("hello", "in-2"))
            await line.callbacks.work()
            assert await received(line) == ["in-0", "in-2"]
            assert await open_ones(line) == 1
            await line.callbacks.work()  # it is not taken up again, and holds nobody up
            await line.callbacks.postponed.work()  # nor is its pause over
    postponed = [entry for entry in logs if entry["event"] == "callback_postponed"]
    assert [(entry["log_level"], entry["failures"], entry["seconds"]) for entry in postponed] == [("warning", 1, 5.0)]

    await line.callbacks.postponed.work()
    assert await open_ones(line) == 1
    await line.clock.advance(5)
    await line.callbacks.postponed.work()
    assert await received(line) == ["in-0", "in-1", "in-2"]
    assert await open_ones(line) == 0
    assert line.callbacks.postponed.ids == []


async def test_of_a_callback_with_many_events_only_the_one_that_times_out_waits(
    line: Line, postgres: dict[str, Any]
) -> None:
    people = [f"55119876501{place:02}" for place in range(20)]
    events = [line.inbound("hello", f"in-a{place:02}", **{"from": each}) for place, each in enumerate(people)]
    events[7]["from"] = STUCK
    async with held_up(line, postgres):
        await store(line, *events)
        await line.callbacks.work()
        tries = 0
        while len(await received(line)) < 20:
            tries += 1
            assert tries < 5, "its other events are applied within few tries"
            await line.clock.advance(60)
            await line.callbacks.postponed.work()
        assert await received(line) == ["in-0"] + [f"in-a{place:02}" for place in range(20) if place != 7]
        assert await open_ones(line) == 1
    await line.clock.advance(300)
    await line.callbacks.postponed.work()
    assert len(await received(line)) == 21
    assert await open_ones(line) == 0


async def test_a_restart_forgets_nothing_that_was_postponed(line: Line, postgres: dict[str, Any]) -> None:
    async with held_up(line, postgres):
        await store(line, line.inbound("stuck", "in-1", **{"from": STUCK}))
        await line.callbacks.work()
    restarted = Line(line.db, line.number, line.clock)
    await restarted.callbacks.work()
    assert await received(line) == ["in-0", "in-1"]


class Hindered:
    """What callbacks meet when they are applied: `hinder` comes first, for each block that holds `only`."""

    def __init__(self, line: Line, monkeypatch: pytest.MonkeyPatch, only: str = "") -> None:
        self.times = 0
        self.hinder: Callable[[Any], Awaitable[object]] | None = None
        self._only = only
        self._take_in = line.receipts.take_in
        monkeypatch.setattr(line.receipts, "take_in", self.take_in)

    async def take_in(self, executor: Any, env: str, events: Sequence[Any]) -> None:
        self.times += 1
        if self.hinder is not None and any(self._only in each.provider_message_id for each in events):
            await self.hinder(executor)
        await self._take_in(executor, env, events)


async def finds_no_room(executor: Any) -> None:
    await executor.execute("do $$ begin raise exception using errcode = '53100'; end $$")


async def loses_its_connection(executor: Any) -> None:
    await executor.execute("select pg_terminate_backend(pg_backend_pid())")


async def test_while_the_database_refuses_writes_callbacks_wait_in_order(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = asyncio.Event()

    async def try_write() -> None:
        await room.wait()

    monkeypatch.setattr(outage, "TRY_EVERY", 0.01)
    monkeypatch.setattr(line.db._outage, "_try_write", try_write)
    applied = Hindered(line, monkeypatch)
    applied.hinder = finds_no_room
    await store(line, line.inbound("hello", "in-1"))
    await store(line, line.inbound("hello", "in-2"))
    with capture_logs() as logs:
        with pytest.raises(Unavailable):
            await line.callbacks.work()
        assert applied.times == 2  # together, and the first alone
        with pytest.raises(Unavailable):
            await line.callbacks.work()
        assert applied.times == 2
        applied.hinder = None
        room.set()
        await until(lambda: not line.db.refuses_writes, "there is room")
        await line.callbacks.work()
    assert applied.times == 3
    assert await received(line) == ["in-0", "in-1", "in-2"]
    assert not [entry for entry in logs if entry["event"] == "callback_postponed"]


async def test_a_connection_that_breaks_is_no_fault_of_the_callback(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Hindered(line, monkeypatch)
    applied.hinder = loses_its_connection
    await store(line, line.inbound("hello", "in-1"))
    await store(line, line.inbound("hello", "in-2"))
    for _ in range(MOST_BROKEN - 1):
        with pytest.raises(Unavailable):
            await line.callbacks.work()
    assert line.callbacks.postponed.ids == []
    assert await received(line) == ["in-0"]
    applied.hinder = None
    await line.callbacks.work()
    assert await received(line) == ["in-0", "in-1", "in-2"]


async def test_a_callback_that_breaks_every_connection_holds_the_others_up_for_so_many_only(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Hindered(line, monkeypatch, only="in-1")
    applied.hinder = loses_its_connection
    await store(line, line.inbound("hello", "in-1"))
    await store(line, line.inbound("hello", "in-2"))
    for _ in range(MOST_BROKEN - 1):
        with pytest.raises(Unavailable):
            await line.callbacks.work()
    await line.callbacks.work()
    assert len(line.callbacks.postponed.ids) == 1
    assert await received(line) == ["in-0", "in-2"]


class Apart:
    """One postponed callback of twenty events; `apply` fails as it is told."""

    def __init__(self, db: Database, callback_id: int, clock: VirtualClock) -> None:
        self.id = callback_id
        self.applied: list[int] = []
        self.errors: dict[int, Exception] = {}
        self.away = False
        self.desk = PostponedCallbacks(db, clock=clock, read=self.read, apply=self.apply, answers=self.answers)

    async def read(self, row: Any) -> tuple[list[CallbackEvent], str | None]:
        assert row["id"] == self.id
        return list(range(20)), None  # type: ignore[arg-type]  # what an event is does not matter here

    async def apply(self, source: Source, events: Sequence[Any]) -> None:
        assert source == ("chatapp", "bridge", "live")
        for each in events:
            if each in self.errors:
                raise self.errors[each]
        self.applied += events

    async def answers(self) -> None:
        if self.away:
            raise Unavailable("away")


@pytest.fixture
async def apart(database: Database) -> Apart:
    clock = VirtualClock(SystemClock().now())
    await receipts.store_callbacks(database, [CallbackRow("chatapp", "bridge", b"1", b"{}", clock.now())])
    made = Apart(database, await database.fetchval("select id from callbacks"), clock)
    made.desk.take(made.id, ValueError("no other try would mend it"))
    return made


async def test_an_event_that_cannot_be_stored_costs_no_other_event_of_its_callback(
    apart: Apart, database: Database
) -> None:
    apart.errors = {3: ValueError("personal"), 11: ValueError("personal")}
    with capture_logs() as logs:
        await apart.desk.work()
    assert apart.applied == [each for each in range(20) if each not in (3, 11)]  # in their order
    assert logs == [
        {"event": "callback_set_aside", "log_level": "error", "callback": apart.id, "error": "ValueError", "events": 2}
    ]
    (row,) = await database.fetch("select processed_at is not null as processed, failure from callbacks")
    assert tuple(row) == (True, "ValueError")


async def test_while_the_database_is_away_no_part_is_blamed(apart: Apart) -> None:
    apart.errors, apart.away = {0: Unavailable("away")}, True
    with pytest.raises(Unavailable):
        await apart.desk.work()
    assert apart.desk.ids == [apart.id]
    apart.errors, apart.away = {}, False
    await apart.desk.work()  # at once: it did not have to wait for a pause
    assert apart.applied == list(range(20))
    assert apart.desk.ids == []


async def test_a_callback_that_is_gone_is_forgotten(apart: Apart, database: Database) -> None:
    await database.execute("delete from callbacks")
    await apart.desk.work()
    assert (apart.desk.ids, apart.applied) == ([], [])


async def test_when_very_many_fail_it_is_not_they_that_are_at_fault(apart: Apart) -> None:
    for callback_id in range(-MOST + 1, 0):
        apart.desk.take(callback_id, Unavailable("slow"))
    with pytest.raises(Unavailable):
        apart.desk.take(-MOST, Unavailable("slow"))
    assert len(apart.desk.ids) == MOST


async def test_a_block_whose_commit_was_not_answered_is_not_applied_again(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied: list[int] = []
    take_in, transaction = line.receipts.take_in, line.receipts.transaction

    async def counted(executor: Any, env: str, events: Sequence[Any]) -> None:
        applied.append(len(events))
        await take_in(executor, env, events)

    @asynccontextmanager
    async def unanswered() -> AsyncIterator[Any]:
        async with transaction() as connection:
            yield connection
        raise Unavailable("nobody knows whether it is committed")

    monkeypatch.setattr(line.receipts, "take_in", counted)
    monkeypatch.setattr(line.receipts, "transaction", unanswered)
    await store(line, line.inbound("hello", "in-1"))
    await store(line, line.inbound("hello", "in-2"))
    await line.callbacks.work()
    assert applied == [2]
    assert await open_ones(line) == 0
    assert line.callbacks.postponed.ids == []
