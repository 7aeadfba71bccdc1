"""How many connections a server takes: from one address, and in all (C31)."""

import asyncio
from ipaddress import ip_network
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, answer_of

from recado.http.api.call import Call
from recado.http.wire import connection_limits
from recado.http.wire.client_ip import ClientAddresses
from recado.http.wire.connection_limits import ConnectionLimits
from recado.http.wire.reply import Reply

GET = b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n"


class Fake:
    """A connection that does nothing. `asked`: whether a request ever came; `at`: when it was answered."""

    def __init__(self, *, busy: bool = False, unread: bool = False, asked: bool = False, at: float = 0.0) -> None:
        self.idle = not busy and not unread
        self.unread = not busy
        self.rested_since = (asked, at)
        self.closed = False

    def close_idle(self) -> None:
        self.closed = True


@pytest.fixture
def limits() -> ConnectionLimits:
    return ConnectionLimits(20, 8, ClientAddresses((ip_network("10.0.0.0/8"),)))


def test_an_address_with_its_share_busy_gets_no_more(limits: ConnectionLimits) -> None:
    busy = [Fake(busy=True) for _ in range(8)]
    assert all(limits.enter(connection, "192.0.2.1") for connection in busy)
    assert not limits.enter(Fake(), "192.0.2.1")
    assert limits.enter(Fake(), "192.0.2.2")
    limits.leave(busy[0])
    limits.leave(busy[0])
    assert limits.enter(Fake(), "192.0.2.1")
    assert (limits.open, limits.refused) == (9, 1)


def test_an_idle_connection_makes_way_first_one_that_never_asked(limits: ConnectionLimits) -> None:
    used = [Fake(asked=True, at=float(n)) for n in range(7)]
    silent = Fake(at=99.0)
    for connection in (*used, silent):
        assert limits.enter(connection, "192.0.2.1")
    assert limits.enter(Fake(busy=True), "192.0.2.1")
    assert [silent.closed, *(c.closed for c in used)] == [True] + [False] * 7
    assert limits.enter(Fake(busy=True), "192.0.2.1")
    assert [c.closed for c in used] == [True] + [False] * 6


def test_in_all_those_of_the_address_that_has_most_make_way(limits: ConnectionLimits) -> None:
    few = [Fake() for _ in range(3)]
    many = [Fake(asked=True, at=float(n)) for n in range(8)]
    proxied = [Fake() for _ in range(9)]
    for group, address in ((few, "192.0.2.1"), (many, "192.0.2.2"), (proxied, "10.0.0.1")):
        assert all(limits.enter(connection, address) for connection in group)
    assert limits.enter(Fake(), "192.0.2.3")
    assert [c.closed for c in many] == [True, True] + [False] * 6
    assert not any(c.closed for c in (*few, *proxied))


def test_who_makes_way_counts_until_it_is_gone_and_keeps_nobody_out(limits: ConnectionLimits) -> None:
    idle = [Fake(asked=True, at=float(n)) for n in range(8)]
    assert all(limits.enter(connection, "192.0.2.1") for connection in (*idle, Fake(busy=True)))
    assert (idle[0].closed, limits.open) == (True, 9)
    limits.leave(idle[0])
    assert limits.open == 8


def test_who_still_takes_an_answer_makes_way_only_where_none_is_idle(limits: ConnectionLimits) -> None:
    unread = [Fake(unread=True) for _ in range(7)]
    idle = Fake(asked=True, at=99.0)
    for connection in (*unread, idle):
        assert limits.enter(connection, "192.0.2.1")
    assert limits.enter(Fake(busy=True), "192.0.2.1")
    assert (idle.closed, any(c.closed for c in unread)) == (True, False)
    assert limits.enter(Fake(busy=True), "192.0.2.1")
    assert [c.closed for c in unread] == [True] + [False] * 6


def test_trusted_proxies_and_local_sockets_count_in_all_only(limits: ConnectionLimits) -> None:
    assert all(limits.enter(Fake(busy=True), "10.0.0.1") for _ in range(10))
    assert all(limits.enter(Fake(busy=True), None) for _ in range(10))
    assert not limits.enter(Fake(), None)


def test_an_address_has_at_most_half_and_one_network_counts_as_one() -> None:
    limits = ConnectionLimits(8, 1_000, ClientAddresses())
    for number in range(4):
        assert limits.enter(Fake(busy=True), f"2001:db8::{number:x}")
    assert not limits.enter(Fake(), "2001:db8::ffff")
    assert limits.enter(Fake(), "2001:db8:0:1::1")


def test_behind_very_many_busy_ones_an_idle_one_still_makes_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_limits, "_LOOKED_AT", 4)
    limits = ConnectionLimits(20, 10, ClientAddresses())
    oldest = [Fake(busy=True) for _ in range(6)]
    newest = [Fake(asked=True) for _ in range(4)]
    assert all(limits.enter(connection, "192.0.2.1") for connection in (*oldest, *newest))
    assert limits.enter(Fake(), "192.0.2.1")
    assert [connection.closed for connection in newest].count(True) == 1


async def test_a_request_that_waits_for_its_turn_is_not_idle(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing(), connections=4, connections_of_address=2)
    waiting = [await api.connect() for _ in range(2)]
    for reader, writer in waiting:
        writer.write(GET)
        assert (await answer_of(reader))[0] == 200
    turns: list[asyncio.Future[None]] = []

    def wait(_: str) -> "asyncio.Future[None]":
        turns.append(asyncio.get_running_loop().create_future())
        return turns[-1]

    for connection in api.server._web.connections:
        connection.turns.wait = wait
    for _, writer in waiting:
        writer.write(GET)
    await wait_until(lambda: len(turns) == 2)
    reader, _ = await api.connect()
    assert (await answer_of(reader))[0] == 503
    for turn in turns:
        turn.set_result(None)
    assert [(await answer_of(reader))[0] for reader, _ in waiting] == [200, 200]


async def test_one_connection_too_many_is_told_to_come_again(serve: Any, thing: Any, wait_until: Any) -> None:
    entered, leave = asyncio.Semaphore(0), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.release()
        await leave.wait()
        return Reply(200, {})

    api = await serve(thing(handler=slow), connections_of_address=2)
    working = []
    for _ in range(2):
        reader, writer = await api.connect()
        writer.write(GET)
        await entered.acquire()
        working.append(reader)
    reader, _ = await api.connect()
    status, head, body = await answer_of(reader)
    assert (status, b"Retry-After: 5" in head, b"X-Request-Id: req_" in head) == (503, True, True)
    assert b'"SERVICE_UNAVAILABLE"' in body
    assert await reader.read() == b""
    leave.set()
    assert [(await answer_of(reader))[0] for reader in working] == [200, 200]


async def test_connections_that_only_rest_keep_nobody_out(serve: Any, thing: Any) -> None:
    api = await serve(thing(), connections=40, connections_of_address=16)
    resting = [await api.connect() for _ in range(50)]
    for _ in range(3):
        reader, writer = await api.connect()
        writer.write(GET)
        assert (await answer_of(reader))[0] == 200
    assert api.server.connections <= 16
    assert await resting[0][0].read() == b""
