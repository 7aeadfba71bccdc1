"""Connections that a front hands over to the owner: the client sees one server (C31)."""

import asyncio
import multiprocessing
import os
import random
import signal
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from tests.http.wire.conftest import LIMITS, Api
from tests.http.wire.test_server import HEAD, Thing, answer_of
from tests.waiting import until

from recado.http.api.call import Call
from recado.http.api.local_requests import local_of
from recado.http.api.route import Route
from recado.http.server import ServerPart
from recado.http.wire.handover import Giving
from recado.http.wire.reply import Reply, StreamReply

JSON = b"Content-Type: application/json\r\n"
LOCAL = b"POST /local HTTP/1.1\r\n" + HEAD + JSON
REMOTE = b"POST /remote HTTP/1.1\r\n" + HEAD + JSON
GET = b"GET /remote HTTP/1.1\r\n" + HEAD + b"\r\n"
BODY = b'{"name": "y"}'


def with_body(head: bytes, body: bytes = BODY) -> bytes:
    return head + b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def in_chunks(head: bytes, body: bytes = BODY, size: int = 5) -> bytes:
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    return head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in [*parts, b""])


def told_by(who: str) -> Callable[[Call], Awaitable[Reply]]:
    async def tell(call: Call) -> Reply:
        return Reply(200, {"who": who, "bytes": len(call.raw_body)})

    return tell


async def pieces() -> AsyncGenerator[bytes]:
    for number in range(3):
        await asyncio.sleep(0)
        yield b"data: %d\n\n" % number


async def stream(_: Call) -> Reply:
    return StreamReply(200, pieces(), content_type="text/event-stream")


@dataclass
class Pair:
    """An owner and its front; `channel`: the front's end."""

    owner: Api
    front: Api
    giving: Giving
    channel: socket.socket

    @property
    def servers(self) -> tuple[Any, Any]:
        return self.owner.server, self.front.server


def routes(thing: Callable[..., Route], who: str) -> tuple[list[Route], list[Route]]:
    """Those of the front, and the others."""
    big = {"body": Thing, "body_limit": 4 * 1024 * 1024}
    return (
        [
            thing("POST", "/local", handler=told_by(who), **big),
            thing("POST", "/file", handler=told_by(who), spooled={"text/csv": None}, body_limit=4 * 1024 * 1024),
        ],
        [
            thing("POST", "/remote", handler=told_by(who), **big),
            thing("GET", "/remote", handler=told_by(who)),
            thing("GET", "/stream", handler=stream),
        ],
    )


@pytest.fixture
async def pair(serve: Any, thing: Any) -> AsyncIterator[Callable[..., Awaitable[Pair]]]:
    async def start(**options: Any) -> Pair:
        limits = {**LIMITS, "read": (1e6, 10**6), "write": (1e6, 10**6)}
        local, others = routes(thing, "owner")
        owner = await serve(*local, *others, limits=limits, part=ServerPart(has_fronts=True))
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        made.append((owner.server, ours))
        if options.pop("taken", True):
            owner.server.add_front(ours)
        own, _ = routes(thing, "front")
        giving = Giving(theirs, local_of(own, [*local, *others]), **options)
        front = await serve(
            *own, limits=limits, part=ServerPart(listening=[each.dup() for each in owner.server.bound], gives=giving)
        )
        return Pair(owner, front, giving, ours)

    made: list[tuple[Any, socket.socket]] = []
    yield start
    for server, ours in made:
        server.remove_front(ours)
        ours.close()


async def answers(reader: asyncio.StreamReader, count: int) -> list[tuple[int, bytes]]:
    async with asyncio.timeout(60):
        return [(status, body) for status, _, body in [await answer_of(reader) for _ in range(count)]]


def by(who: str, size: int = len(BODY)) -> tuple[int, bytes]:
    return 200, b'{"who":"%b","bytes":%d}' % (who.encode(), size)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (with_body(LOCAL), [by("front")]),
        (with_body(LOCAL) * 3, [by("front")] * 3),
        (GET, [by("owner", 0)]),
        (with_body(LOCAL) + GET + with_body(LOCAL), [by("front"), by("owner", 0), by("owner")]),
        (with_body(LOCAL) * 2 + GET * 20, [by("front")] * 2 + [by("owner", 0)] * 20),
        (in_chunks(LOCAL), [by("owner")]),
        (in_chunks(REMOTE) + GET, [by("owner"), by("owner", 0)]),
        (with_body(LOCAL) + in_chunks(LOCAL) + GET, [by("front"), by("owner"), by("owner", 0)]),
        (with_body(LOCAL.replace(b"1.1", b"1.0") + b"Connection: keep-alive\r\n") + GET, [by("front"), by("owner", 0)]),
        (with_body(REMOTE.replace(b"1.1", b"1.0")), [by("owner")]),
        (with_body(REMOTE, BODY + b" " * 900_000), [by("owner", 0)]),
        (in_chunks(REMOTE, BODY + b" " * 900_000, 50_000), [by("owner", 0)]),
        (with_body(LOCAL, BODY + b" " * 900_000) + GET, [by("front", 0), by("owner", 0)]),
        (with_body(LOCAL.replace(b"POST /", b"POST http://x/")), [by("owner")]),
        (with_body(LOCAL.replace(b"/local", b"/local?")), [by("front")]),
        (b"\r\n" + with_body(LOCAL), [by("owner")]),
    ],
)
async def test_each_request_is_answered_in_order_by_who_can(pair: Any, sent: bytes, expected: Any) -> None:
    both = await pair()
    reader, writer = await both.front.connect()
    writer.write(sent)
    assert await answers(reader, len(expected)) == expected


async def test_what_follows_a_large_body_that_goes_past_the_parser_is_a_request(pair: Any) -> None:
    both = await pair()
    reader, writer = await both.front.connect()
    for _ in range(2):
        writer.write(with_body(b"POST /file HTTP/1.1\r\n" + HEAD + b"Content-Type: text/csv\r\n", b" " * 3_500_000))
        assert await answers(reader, 1) == [by("front", 0)]
        writer.write(with_body(LOCAL))
        assert await answers(reader, 1) == [by("front")]
    writer.write(GET)
    assert await answers(reader, 1) == [by("owner", 0)]


@pytest.mark.parametrize("at", [2, 40, len(REMOTE), len(REMOTE) + 22])
async def test_half_a_request_goes_on_at_the_owner(pair: Any, at: int) -> None:
    both, sent = await pair(), with_body(REMOTE)
    reader, writer = await both.front.connect()
    writer.write(sent[:at])
    await until(lambda: any(each.heard for each in both.owner.server._web.connections), "it has gone over", every=0.0)
    writer.write(sent[at:] + GET)
    assert await answers(reader, 2) == [by("owner"), by("owner", 0)]


async def test_a_client_that_asks_whether_to_go_on_is_told_so(pair: Any) -> None:
    both = await pair()
    reader, writer = await both.front.connect()
    writer.write(LOCAL + b"Expect: 100-continue\r\nContent-Length: 13\r\n\r\n")
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100")
    writer.write(BODY)
    assert await answers(reader, 1) == [by("owner")]


async def test_streams_and_many_requests_follow_on_one_connection(pair: Any) -> None:
    both = await pair()
    connector = aiohttp.TCPConnector(limit=1)
    address = f"http://127.0.0.1:{both.front.server.port}"
    async with aiohttp.ClientSession(address, connector=connector, headers={"Authorization": "Bearer good"}) as client:
        async with client.get("/stream") as answer:
            assert (await answer.read()).count(b"data: ") == 3
        for _ in range(50):
            async with client.post("/local", json={"name": "y"}) as answer:
                assert (await answer.json())["who"] == "owner"
    assert both.front.server.limits.open == 0


async def test_the_limits_of_connections_count_it_where_it_is(pair: Any) -> None:
    both = await pair()
    reader, writer = await both.front.connect()
    writer.write(with_body(LOCAL))
    await answers(reader, 1)
    assert [each.limits.open for each in both.servers] == [0, 1]
    writer.write(GET)
    await answers(reader, 1)
    assert [each.limits.open for each in both.servers] == [1, 0]


async def test_a_slow_head_ends_at_the_owner(pair: Any) -> None:
    both = await pair()
    reader, writer = await both.front.connect()
    writer.write(b"PO")
    await until(lambda: both.owner.server.connections == 1, "it has gone over", every=0.0)
    await until(lambda: all(each.heard for each in both.owner.server._web.connections), "it was heard", every=0.0)
    await both.owner.clock.advance(12)
    assert (await answer_of(reader))[0] == 408
    assert await reader.read() == b""


async def test_thousands_of_hand_overs_leave_no_descriptor(pair: Any) -> None:
    both = await pair()
    before = descriptors()
    for _ in range(40):
        clients = [await asyncio.open_connection("127.0.0.1", both.front.server.port) for _ in range(50)]
        for number, (_, writer) in enumerate(clients):
            writer.write(GET)
            if number % 5 == 0:
                writer.transport.abort()  # gone while it goes over
        for number, (reader, writer) in enumerate(clients):
            if number % 5:
                assert await answers(reader, 1) == [by("owner", 0)]
                writer.close()
    await until(lambda: descriptors() <= before, "all are closed")
    assert [(each.limits.open, each.connections) for each in both.servers] == [(0, 0)] * 2


LARGE = with_body(REMOTE, BODY + b" " * 60_000)


async def fill(both: Pair, waiting: int) -> list[asyncio.StreamReader]:
    """Send until so many wait, as the owner takes none."""
    readers: list[asyncio.StreamReader] = []
    while both.giving.waiting < waiting:
        readers.append(await send_large(both, len(readers) + 1))
    return readers


async def send_large(both: Pair, number: int) -> asyncio.StreamReader:
    reader, writer = await both.front.connect()
    writer.write(LARGE)
    await until(lambda: both.giving._number == number, "it is to go over", every=0.0)
    return reader


async def test_an_owner_that_does_not_read_keeps_some_waiting_and_others_get_503(pair: Any) -> None:
    both = await pair(taken=False, waiting=6)  # of which one network has half
    readers = await fill(both, 3)
    beyond = await send_large(both, len(readers) + 1)
    assert (await answers(beyond, 1))[0][0] == 503
    assert await beyond.read() == b""
    both.owner.server.add_front(both.channel)
    assert [await answers(each, 1) for each in readers] == [[by("owner", len(BODY) + 60_000)]] * len(readers)
    assert both.giving.waiting == 0
    assert (both.giving._bytes, both.front.server.limits.open) == (0, 0)


async def test_the_bytes_of_those_that_wait_are_bounded(pair: Any) -> None:
    both = await pair(taken=False, waiting_bytes=200_000)  # likewise
    readers = await fill(both, 1)
    beyond = [await send_large(both, len(readers) + number) for number in (1, 2)]
    assert (await answers(beyond[-1], 1))[0][0] == 503


class Waiter:
    """A connection of a network that is to go over."""

    def __init__(self, network: str) -> None:
        self.network = network
        self.turned = False

    def fileno(self) -> int:
        return 0

    def gone_over(self) -> None:
        raise AssertionError("the owner takes nothing")

    def turned_away(self) -> None:
        self.turned = True


async def test_one_network_has_half_of_the_places_of_those_that_wait() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    giving = Giving(ours, lambda _: False, waiting=4)
    with suppress(BlockingIOError):
        while True:
            ours.send(b"full")
    waiters = [Waiter(network) for network in "aaabbc"]
    with theirs:
        for each in waiters:
            giving.give(each, b"")
        assert [each.turned for each in waiters] == [False, False, True, False, False, True]
        giving.stop()
    assert all(each.turned for each in waiters)
    assert giving.waiting == 0


async def test_a_stop_of_the_front_turns_away_those_that_wait(pair: Any) -> None:
    both = await pair(taken=False)
    *_, last = await fill(both, 2)
    await both.front.server.stop()
    assert (await answers(last, 1))[0][0] == 503


async def test_a_front_that_leaves_breaks_no_connection(pair: Any) -> None:
    both = await pair()
    clients = [await both.front.connect() for _ in range(3)]
    for reader, writer in clients[1:]:
        writer.write(with_body(LOCAL))
        assert await answers(reader, 1) == [by("front")]
    leaving = asyncio.ensure_future(both.front.server.leave(3.0))
    reader, writer = clients[1]

    async def ends(reader: asyncio.StreamReader, who: tuple[int, bytes]) -> None:
        status, headers, body = await answer_of(reader)
        assert (status, body) == who
        assert b"Connection: close" in headers
        assert await reader.read() == b""

    # With its next answer each connection ends; those that rest go over, and rest on.
    writer.write(with_body(LOCAL))
    await ends(reader, by("front"))
    assert both.owner.server.connections == 0
    await both.front.clock.advance(3)
    await until(lambda: both.owner.server.connections == 2, "both have gone over", every=0.0)
    await both.front.clock.advance(1)
    await leaving
    await both.front.server.stop()
    for _ in range(12):  # longer than a head may take
        await both.owner.clock.advance(1)
    for reader, writer in (clients[0], clients[2]):
        writer.write(with_body(LOCAL))
        await ends(reader, by("owner"))


async def test_more_that_rest_than_the_owner_takes_at_once_go_over_one_after_the_other(pair: Any) -> None:
    both = await pair(taken=False, waiting=8)
    both.giving._channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)  # the least: room for a few
    clients = [await both.front.connect() for _ in range(40)]
    for reader, writer in clients:
        writer.write(with_body(LOCAL))
        assert await answers(reader, 1) == [by("front")]
    leaving = asyncio.ensure_future(both.front.server.leave(0.0))
    await until(lambda: both.giving.waiting == 2, "some wait", every=0.0)
    await both.front.clock.advance(1)
    assert both.giving.waiting == 2
    both.owner.server.add_front(both.channel)
    while not leaving.done():
        await both.front.clock.advance(0.02)
    assert both.owner.server.connections == len(clients)
    await both.front.server.stop()
    for reader, writer in clients:
        writer.write(with_body(LOCAL))
        assert await answers(reader, 1) == [by("owner")]


async def test_the_rest_of_a_body_that_nobody_wanted_is_no_request_for_the_owner(pair: Any) -> None:
    both = await pair()
    reader, writer = await both.front.connect()
    sent = with_body(LOCAL.replace(b"good", b"bad"))
    writer.write(sent[:-3])
    assert [status for status, _ in await answers(reader, 1)] == [401]
    (connection,) = both.front.server._web.connections
    await until(lambda: connection.rest is not None, "the rest is read", every=0.0)
    await both.front.server.leave(0.0)
    await both.front.server.stop()
    await until(lambda: both.front.server.connections == 0, "it has ended", every=0.0)
    assert both.owner.server.connections == 0
    assert await reader.read() == b""


async def test_what_is_under_way_when_a_front_leaves_is_answered_by_it(pair: Any) -> None:
    both = await pair()
    reader, writer = await both.front.connect()
    sent = with_body(LOCAL)
    writer.write(sent[:-3])
    await until(lambda: both.front.server.connections == 1, "it is there", every=0.0)
    (connection,) = both.front.server._web.connections
    await until(lambda: not connection.idle, "a request is under way", every=0.0)
    await both.front.server.leave(0.0)
    stopping = asyncio.ensure_future(both.front.server.stop())
    writer.write(sent[-3:])
    status, headers, body = await answer_of(reader)
    assert (status, body) == by("front")
    assert b"Connection: close" in headers
    await stopping


@pytest.mark.parametrize("comes", [True, False])
async def test_a_front_that_leaves_waits_for_a_body_that_comes_slowly_but_not_for_ever(pair: Any, comes: bool) -> None:
    both = await pair()
    server, clock = both.front.server, both.front.clock
    reader, writer = await both.front.connect()
    sent = with_body(LOCAL)
    writer.write(sent[:-3])
    await until(lambda: server.connections == 1, "it is there", every=0.0)
    (connection,) = server._web.connections
    await until(lambda: not connection.idle, "a request is under way", every=0.0)
    await server.leave(0.0)
    settled = asyncio.ensure_future(server.settled(25.0))
    for _ in range(24):
        await clock.advance(1)
    assert not settled.done()
    if comes:
        writer.write(sent[-3:])
        status, headers, body = await answer_of(reader)
        assert (status, body) == by("front")
        assert b"Connection: close" in headers
        await clock.advance(0.5)
    else:
        await clock.advance(1.5)
    await asyncio.wait_for(settled, 10)
    await server.stop()


async def test_an_owner_that_is_gone_is_a_503(pair: Any) -> None:
    both = await pair()
    both.owner.server.remove_front(both.channel)
    reader, writer = await both.front.connect()
    writer.write(with_body(LOCAL) + GET)
    first, second = await answers(reader, 2)
    assert (first, second[0]) == (by("front"), 503)
    assert await reader.read() == b""


HEADS = struct.Struct("=I?")


@pytest.mark.parametrize(
    "sent",
    [
        [(7, True, True)],
        [(7, True, True), (8, False, True)],
        [(7, True, True), (8, False, False)],
        [(7, False, False)],
        [(7, True, False), (7, True, False)],
        [(7, True, True), (7, True, True), (9, False, False)],
    ],
    ids=["no end", "another begins", "another without its own", "none at all", "none but more", "twice the same"],
)
async def test_torn_hand_overs_end_their_connections_only(pair: Any, sent: list[tuple[int, bool, bool]]) -> None:
    both = await pair(taken=False)
    before = descriptors()
    both.owner.server.add_front(both.channel)
    given = []
    for number, more, has_descriptor in sent:
        client, ours = socket.socketpair()
        given.append(client)
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=i", ours.fileno()))] if has_descriptor else []
        both.giving._channel.sendmsg([HEADS.pack(number, more), b"GE"], rights)
        ours.close()
    reader, writer = await both.front.connect()
    writer.write(GET)
    assert await answers(reader, 1) == [by("owner", 0)]
    for each in given:
        each.close()
    writer.close()
    await until(lambda: descriptors() <= before, "all are closed")


def hand_over_half(channel: socket.socket, port: int) -> None:
    """A front in a process of its own, amid a hand-over."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("=i", connection.fileno()))]
        channel.sendmsg([HEADS.pack(1, True), GET[:10]], rights)
        signal.pause()


async def test_a_front_that_is_killed_amid_a_hand_over_leaves_nothing(pair: Any) -> None:
    both = await pair()
    before = descriptors()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        child = multiprocessing.get_context("spawn").Process(
            target=hand_over_half, args=(theirs, listening.getsockname()[1])
        )
        child.start()
        theirs.close()
        both.owner.server.add_front(ours)
        taking = both.owner.server._fronts[ours]
        await until(lambda: taking._connection is not None, "half of it has come")
        assert child.pid is not None
        os.kill(child.pid, signal.SIGKILL)
        await until(lambda: ours not in both.owner.server._fronts, "its end is noticed")
        child.join()
        child.close()
    assert ours.fileno() == -1
    assert taking._connection is None
    await until(lambda: descriptors() <= before, "all are closed")


def descriptors() -> int:
    """How many sockets this process has."""
    count = 0
    for each in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # that of the listing
            count += str(each.readlink()).startswith("socket:")
    return count


MANY = with_body(LOCAL) + with_body(LOCAL, BODY + b"  ") + with_body(REMOTE) + GET + in_chunks(LOCAL) + with_body(LOCAL)


async def test_however_the_bytes_are_split_the_answers_are_those_of_one_server(pair: Any) -> None:
    both, chance = await pair(), random.Random(17)
    sizes = [13, 15, 13, 0, 13, 13]
    for _ in range(150):
        at = sorted(chance.sample(range(1, len(MANY)), chance.randint(0, 6)))
        reader, writer = await both.front.connect()
        for begin, end in pairwise([0, *at, len(MANY)]):
            writer.write(MANY[begin:end])
            for _ in range(chance.choice([0, 1, 3, 10])):
                await asyncio.sleep(0)
        assert [(status, orjson.loads(body)["bytes"]) for status, body in await answers(reader, 6)] == [
            (200, size) for size in sizes
        ]
        writer.close()


@pytest.mark.parametrize(
    ("line", "is_local"),
    [
        (b"GET /things/a%20b?c=/?d HTTP/1.1\r\n", True),
        (b"GET /things/search HTTP/1.1\r\n", False),
        (b"GET /things/search? HTTP/1.1\r\n", False),
        (b"GET /things/searching HTTP/1.0\r\n", True),
        (b"GET /things/a/b HTTP/1.1\r\n", False),
        (b"GET /things/ HTTP/1.1\r\n", False),
        (b"HEAD /things/a HTTP/1.1\r\n", False),
        (b"GET /things/a HTTP/2.0\r\n", False),
        (b"GET http://x/things/a HTTP/1.1\r\n", False),
        (b"GET /things/a b HTTP/1.1\r\n", False),
        (b"GET /things/a HTTP/1.1", False),
        (b"GET /things/\xff HTTP/1.1\r\n", False),
    ],
)
def test_local_is_only_what_plainly_is(thing: Any, line: bytes, is_local: bool) -> None:
    local = [thing("GET", "/things/{id}")]
    assert local_of(local, [*local, thing("GET", "/things/search")])(line) is is_local
    assert not local_of([])(line)
