"""A clock that was set is believed when the server's clock, which was of another opinion before, agrees."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recado.actors.jobs.clock_watch import ClockWatch
from recado.engine.clock import SystemClock

START = datetime(2026, 11, 22, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Room:
    """Two machines whose clocks somebody sets: ours and the server's."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.ours = self.servers = timedelta()
        self.clock = SystemClock(lambda: self._shown(self.ours), lambda: self.seconds)
        server: Any = self
        # Another process, which has our clock from then on.
        self.beside = SystemClock(
            lambda: self._shown(self.ours), lambda: self.seconds, (self.clock.now(), self.seconds)
        )
        self.watch = ClockWatch(server, self.clock, self._believed)

    def _believed(self) -> None:
        self.beside.now()
        self.beside.follow()

    def _shown(self, off: timedelta) -> datetime:
        return START + timedelta(seconds=self.seconds) + off

    async def fetchval(self, sql: str) -> datetime:
        assert "clock_timestamp" in sql
        return self._shown(self.servers)

    async def ahead(self) -> timedelta:
        """How far we are ahead of the time that passed, ten seconds and a look later."""
        self.seconds += 10
        await self.watch.look()
        assert self.beside.now() == self.clock.now()
        return self.clock.now() - START - timedelta(seconds=self.seconds)


@pytest.fixture
async def room() -> Room:
    room = Room()
    assert await room.ahead() == timedelta()
    return room


async def test_a_jump_that_the_server_does_not_know_is_not_followed(room: Room) -> None:
    room.ours = HOUR
    assert [await room.ahead() for _ in range(3)] == [timedelta()] * 3


async def test_a_clock_that_is_put_right_is_followed_when_the_server_was_right_before(room: Room) -> None:
    room.servers = HOUR
    assert await room.ahead() == timedelta()
    room.ours = HOUR
    assert await room.ahead() == HOUR
    room.ours += timedelta(seconds=1)
    assert await room.ahead() == HOUR + timedelta(seconds=1)


async def test_a_server_whose_clock_jumps_with_ours_confirms_nothing(room: Room) -> None:
    room.ours = room.servers = HOUR
    assert [await room.ahead() for _ in range(3)] == [timedelta()] * 3


async def test_a_server_whose_clock_is_set_after_ours_confirms_nothing(room: Room) -> None:
    room.ours = HOUR
    await room.ahead()
    room.servers = HOUR
    assert [await room.ahead() for _ in range(3)] == [timedelta()] * 3


async def test_the_server_may_confirm_one_jump_after_another(room: Room) -> None:
    for hours in (1, 2):
        room.servers = hours * HOUR
        await room.ahead()
        room.ours = hours * HOUR
        assert await room.ahead() == hours * HOUR
        await room.ahead()
