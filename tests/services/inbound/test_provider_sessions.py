"""What a provider tells on a connection that we hold: it hears that we have it when it is stored (C29.1, C29.5)."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import orjson
import pytest
from tests.services.inbound.live_number import Line, live_number

from recado.channels.core.adapters import Sink
from recado.channels.core.events import CallbackEvent
from recado.domain.core.errors import Unavailable
from recado.engine.clock import SystemClock, VirtualClock
from recado.services.inbound.provider_sessions import PAUSE, ProviderSessions
from recado.storage.core.connections.postgres import Database

STORED = "select count(*) from callbacks"


class Talker:
    """A source that tells what it is given, and notes for what it was told that we have it."""

    name = "bridge"

    def __init__(self) -> None:
        self.to_tell: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self.taken: asyncio.Queue[bytes | Exception] = asyncio.Queue()
        self.listened = 0

    def parse_callback(self, headers: Mapping[str, str], body: bytes) -> Sequence[CallbackEvent]:
        raise AssertionError("the table's own reader reads it")

    async def run(self, sink: Sink) -> None:
        self.listened += 1
        while True:
            told = await self.to_tell.get()
            if isinstance(told, Exception):
                raise told
            try:
                await sink(told)
            except Unavailable as error:
                await self.taken.put(error)
            else:
                await self.taken.put(told)


@pytest.fixture
async def line(database: Database) -> AsyncIterator[Line]:
    made = Line(database, await live_number(database), SystemClock())
    await made.callbacks.start()
    yield made
    await made.callbacks.stop()


def listening(talker: Talker, line: Line, clock: Any = None) -> ProviderSessions:
    return ProviderSessions([("chatapp", talker)], take=line.callbacks.take, clock=clock or line.clock)


async def test_what_is_told_is_stored_when_it_is_taken_and_then_applied(line: Line) -> None:
    talker = Talker()
    sessions = listening(talker, line)
    await sessions.start()
    await sessions.start()
    body = orjson.dumps({"events": [line.inbound("hello", "in-1"), line.inbound("hello again", "in-2")]})
    await talker.to_tell.put(body)
    assert await talker.taken.get() == body
    assert await line.db.fetchval(STORED) == 1
    await line.worked_off()
    assert await line.db.fetchval("select count(*) from messages") == 2
    assert talker.listened == 1
    await sessions.stop()
    await sessions.stop()


async def test_what_is_told_twice_is_stored_once(line: Line) -> None:
    talker = Talker()
    sessions = listening(talker, line)
    await sessions.start()
    body = orjson.dumps({"events": [line.inbound("hello", "in-1")]})
    for _ in range(2):
        await talker.to_tell.put(body)
        assert await talker.taken.get() == body
    await line.worked_off()
    assert await line.db.fetchval(STORED) == 1
    assert await line.db.fetchval("select count(*) from messages") == 1
    await sessions.stop()


async def test_what_is_not_stored_is_not_taken(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*given: object) -> None:
        raise Unavailable("The database is away.")

    talker = Talker()
    monkeypatch.setattr(line.callbacks, "take", away)
    sessions = listening(talker, line)
    await sessions.start()
    await talker.to_tell.put(b"{}")
    assert isinstance(await talker.taken.get(), Unavailable)
    await sessions.stop()


async def test_a_source_that_fails_is_listened_to_again_after_a_pause(line: Line) -> None:
    talker, clock = Talker(), VirtualClock(SystemClock().now())
    sessions = listening(talker, line, clock)
    await sessions.start()
    await talker.to_tell.put(RuntimeError("a mistake in the adapter"))
    await clock.advance(PAUSE)
    await talker.to_tell.put(b'{"events": []}')
    assert await talker.taken.get() == b'{"events": []}'
    assert talker.listened == 2
    await sessions.stop()
