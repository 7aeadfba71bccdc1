"""Connections that come faster than they are made ready (C31)."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime

import pytest
from tests.captured import capture_logs
from tests.waiting import until

from recado.engine.clock import VirtualClock
from recado.http.wire import arrivals
from recado.http.wire.arrivals import Arrivals
from recado.http.wire.client_ip import ClientAddresses
from recado.http.wire.connection_limits import ConnectionLimits

REFUSAL = b"no place"


class Listening(socket.socket):
    """A listening socket. `fails`: as many times the kernel has no descriptor for another connection; `taken`: how many
    connections have one.
    """

    fails = taken = 0

    def accept(self) -> tuple[socket.socket, object]:
        if self.fails:
            self.fails -= 1
            raise OSError(errno.EMFILE, "too many open files")
        arrived = super().accept()
        self.taken += 1
        return arrived


class Stage:
    """Arrivals at `bound`. `ready`: the addresses of the connections that were made ready, in that order;
    `when_ready` follows each.
    """

    def __init__(self, places: int = 1_250) -> None:
        self.clock = VirtualClock(datetime(2026, 3, 1, tzinfo=UTC))
        self.bound = Listening()
        self.bound.bind(("127.0.0.1", 0))
        self.limits = ConnectionLimits(10_000, 10_000, ClientAddresses())
        self.ready: list[str] = []
        self.when_ready: Callable[[], None] = lambda: None
        self.arrivals = Arrivals(
            [self.bound],
            lambda: Ready(self),
            places=places,
            limits=self.limits,
            refusal=lambda: REFUSAL,
            clock=self.clock,
        )

    def ask(self, source: str) -> socket.socket:
        """Ask for a connection, which the kernel grants by itself."""
        return socket.create_connection(self.bound.getsockname(), source_address=(source, 0))


class Ready(asyncio.Protocol):
    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._stage.ready.append(transport.get_extra_info("peername")[0])
        self._stage.when_ready()
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    stage = Stage()
    stage.arrivals.start()
    yield stage
    stage.arrivals.stop()
    stage.arrivals.stop()
    await stage.arrivals.settled()
    assert stage.bound.fileno() == -1


async def test_who_opens_many_connections_does_not_stand_before_another(stage: Stage) -> None:
    async with AsyncExitStack() as asked:
        for source in [*["127.0.0.2"] * 60, "127.0.0.3"]:
            asked.enter_context(stage.ask(source))
        await until(lambda: len(stage.ready) == 61, "all connections are ready")
    assert stage.ready.index("127.0.0.3") == 1


async def test_a_network_that_has_very_many_waiting_is_refused_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrivals, "MOST_WAITING", 3)
    async with AsyncExitStack() as asked:
        many = [asked.enter_context(stage.ask("127.0.0.2")) for _ in range(5)]
        asked.enter_context(stage.ask("127.0.0.3"))
        await until(lambda: len(stage.ready) == 4, "the first ones are ready")
        assert [each.recv(100) for each in many[3:]] == [REFUSAL] * 2
    assert stage.limits.refused == 2


async def test_only_so_many_wait_as_there_are_descriptors_for_the_others_wait_in_the_kernels_line() -> None:
    stage = Stage(places=3)
    stage.arrivals.start()
    held: list[tuple[int, int]] = []
    stage.when_ready = lambda: held.append((stage.bound.taken - len(stage.ready), stage.arrivals.waiting))
    async with AsyncExitStack() as asked:
        for _ in range(30):
            asked.enter_context(stage.ask("127.0.0.2"))
        await until(lambda: len(stage.ready) == 30, "all connections are ready in the end")
    stage.arrivals.stop()
    await stage.arrivals.settled()
    assert max(max(each) for each in held) <= 3
    assert stage.arrivals.waiting == 0


async def test_who_waits_no_longer_until_all_are_ready_lets_them_become_that(stage: Stage) -> None:
    async with AsyncExitStack() as asked:
        for _ in range(30):
            asked.enter_context(stage.ask("127.0.0.2"))
        await until(lambda: stage.ready, "the first ones are ready", every=0.0)
        assert stage.arrivals.waiting > 0
        waits = asyncio.create_task(stage.arrivals.settled())
        await asyncio.sleep(0)
        waits.cancel()
        await stage.arrivals.settled()
    assert waits.cancelled()
    assert len(stage.ready) == 30


async def test_without_descriptors_it_looks_again_a_second_later(stage: Stage) -> None:
    stage.bound.fails = 1
    with stage.ask("127.0.0.2"):
        await until(lambda: not stage.bound.fails, "the kernel had none")
        assert not stage.ready
        await stage.clock.advance(1.0)
        await until(lambda: stage.ready == ["127.0.0.2"], "the connection is ready")


async def test_running_out_of_descriptors_is_told_once_a_minute(stage: Stage) -> None:
    stage.bound.fails = 70
    with stage.ask("127.0.0.2"), capture_logs() as logs:
        for left in range(69, -1, -1):
            await until(lambda left=left: stage.bound.fails == left, "the kernel had none", every=0.0)
            await stage.clock.advance(1.0)
        await until(lambda: stage.ready == ["127.0.0.2"], "the connection is ready")
    assert [(entry["event"], entry["error"]) for entry in logs] == [
        ("connections_not_taken", "too many open files")
    ] * 2


async def test_what_waits_at_the_end_is_closed(stage: Stage) -> None:
    stage.when_ready = stage.arrivals.stop
    async with AsyncExitStack() as asked:
        many = [asked.enter_context(stage.ask("127.0.0.2")) for _ in range(30)]
        await until(lambda: stage.bound.fileno() == -1, "the first one is ready")
        for each in many:
            await until(lambda each=each: ended(each), "it is closed")
    assert 0 < len(stage.ready) < 30


def ended(asked: socket.socket) -> bool:
    asked.setblocking(False)
    try:
        return asked.recv(1) == b""
    except BlockingIOError:
        return False
