"""Clients that leave their answers unread: the connections end, and both count until they are gone (C31)."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import orjson
import pytest
from tests.http.wire.test_server import HEAD, Thing

from recado.domain.errors import Problem
from recado.http.call import Call
from recado.http.connection import HEAD_SECONDS, READING_SECONDS
from recado.http.dispatch import PAGES_OF_CALLER
from recado.http.paging import CursorQuery
from recado.http.rendering import LARGE
from recado.http.reply import Reply, StreamReply
from recado.http.route import MIB, Access
from recado.http.unread_answers import STREAM_BYTES, UnreadAnswers

GET = b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n"


def answering(size: int) -> Any:
    body = b" " * size

    async def handle(_: Call) -> Reply:
        return Reply(200, body)

    return handle


async def without_reading(api: Any) -> asyncio.StreamWriter:
    """A connection of a client that reads nothing, and of which the kernel takes little."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", api.server.port))
    _, writer = await asyncio.open_connection(sock=client)
    writer.transport.pause_reading()
    api.writers.append(writer)
    return writer


@pytest.mark.parametrize("further", [b"G", b""])
async def test_an_answer_left_unread_is_dropped_whatever_comes_behind_its_request(
    serve: Any, thing: Any, wait_until: Any, further: bytes
) -> None:
    api = await serve(thing(handler=answering(4_000_000)))
    writer = await without_reading(api)
    writer.write(GET + further)
    await wait_until(lambda: any(c.writing_paused for c in api.server._web.connections))
    await api.clock.advance(READING_SECONDS - 1)
    assert api.server.connections == 1
    await api.clock.advance(3)
    await wait_until(lambda: api.server.connections == 0)
    assert api.server.limits.open == 0


async def test_a_little_left_unread_does_not_keep_a_closed_connection_open(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    api = await serve(thing(handler=answering(6_000)))
    writer = await without_reading(api)
    await wait_until(lambda: api.server.connections == 1)
    (connection,) = api.server._web.connections
    transport = connection.transport
    answered = 0
    while not transport.get_write_buffer_size():
        writer.write(GET)
        answered += 1
        await wait_until(lambda count=answered: api.server._web.requests_count == count)
        await api.clock.settle()
    assert not connection.writing_paused
    writer.write(b"G")
    await wait_until(lambda: connection.begun)
    await api.clock.advance(HEAD_SECONDS + 2)
    assert transport.is_closing()
    assert api.server.connections == 1
    await api.clock.advance(READING_SECONDS + 1)
    await wait_until(lambda: api.server.connections == 0)


async def test_who_makes_way_with_an_answer_unread_is_gone_at_once(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing(handler=answering(1_000_000)), connections=20)
    for asked in range(1, 61):
        writer = await without_reading(api)
        writer.write(GET)
        await wait_until(lambda count=asked: api.server._web.requests_count == count)
        await api.clock.settle()
        assert api.server.connections <= 10
        assert api.server.limits.open == api.server.connections
    assert api.server.limits.refused == 0


def refusal(unread: UnreadAnswers, caller: str, size: int) -> int:
    """The status with which an answer of `size` bytes is refused, 0 when it goes."""
    try:
        unread.admit(caller, size)
    except Problem as problem:
        return problem.status if int(problem.headers["Retry-After"]) else -1
    return 0


def test_one_caller_has_a_quarter_and_all_together_the_whole() -> None:
    unread = UnreadAnswers(100)
    with ExitStack() as held:
        for caller in ("a", "b", "c", "d"):
            assert [refusal(unread, caller, size) for size in (25, 90 - unread.held)] == [0, 0]
            held.enter_context(unread.holding(caller, 20))
            assert [refusal(unread, caller, size) for size in (5, 6)] == [0, 429]
        assert [refusal(unread, "e", size) for size in (20, 21)] == [0, 503]
    assert (unread.held, unread._by_caller) == (0, {})


def test_one_answer_goes_however_large() -> None:
    unread = UnreadAnswers(100)
    assert refusal(unread, "a", 1000) == 0
    with unread.holding("a", 1000):
        assert [refusal(unread, caller, 1) for caller in ("a", "b")] == [429, 503]


async def test_who_leaves_large_answers_unread_gets_no_further_one_until_they_are_gone(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    small = thing(path="/small", handler=answering(LARGE))
    api = await serve(thing(handler=answering(900_000)), small, body_memory=8 * MIB)
    other = api.as_principal(organization_id="org_2", actor_id="key_2")
    writer = await without_reading(api)
    writer.write(GET)
    await wait_until(lambda: api.server.unread.held == 900_000)
    async with api.client.get("/things") as answer:
        assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
        assert (await answer.json())["code"] == "RATE_LIMITED"
    for path, headers in (("/small", {}), ("/things", other)):
        async with api.client.get(path, headers=headers) as answer:
            assert answer.status == 200
            await answer.read()
    writer.transport.abort()
    await wait_until(lambda: api.server.unread.held == 0)
    async with api.client.get("/things") as answer:
        assert answer.status == 200
        assert len(await answer.read()) == 900_000


async def test_a_large_answer_counts_whole_until_its_last_byte_is_taken(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    api = await serve(thing(handler=answering(4_000_000)))
    reader, writer = await api.connect()
    writer.write(GET)
    await wait_until(lambda: api.server.unread.held == 4_000_000)
    (connection,) = api.server._web.connections
    assert connection.transport.get_write_buffer_limits() == (0, 0)
    await reader.readuntil(b"\r\n\r\n")
    assert len(await reader.readexactly(4_000_000)) == 4_000_000
    await wait_until(lambda: api.server.unread.held == 0)
    assert connection.transport.get_write_buffer_limits() != (0, 0)


async def test_lists_and_large_bodies_are_refused_before_anything_is_done(serve: Any, thing: Any) -> None:
    done: list[str] = []

    async def handle(call: Call) -> Reply:
        done.append(call.method)
        return Reply(200, {})

    api = await serve(thing(handler=handle, query=CursorQuery), thing("POST", body=Thing, handler=handle))

    async def ask(method: str, size: int = 0) -> int:
        body = orjson.dumps({"name": "x" * size}) if size else None
        headers = {"Content-Type": "application/json"} if size else {}
        async with api.client.request(method, "/things", data=body, headers=headers) as answer:
            return int(answer.status)

    with api.server.unread.holding("org_1", api.server.unread.share):
        assert [await ask("GET"), await ask("POST", 20_000)] == [429, 429]
        assert done == []
        assert await ask("POST", 100) == 200
    assert [await ask("GET"), await ask("POST", 20_000)] == [200, 200]


async def test_the_answer_of_a_write_always_goes(serve: Any, thing: Any) -> None:
    api = await serve(thing("POST", handler=answering(900_000)))
    with api.server.unread.holding("org_1", api.server.unread.share):
        async with api.client.post("/things") as answer:
            assert (answer.status, len(await answer.read())) == (200, 900_000)


async def test_an_answer_that_is_sent_while_it_is_read_counts_until_its_end(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    go_on = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"1"
        await go_on.wait()

    async def handle(_: Call) -> Reply:
        return StreamReply(200, pieces(), content_type="application/json")

    api = await serve(thing(handler=handle), body_memory=8 * MIB)
    async with api.client.get("/things") as first:
        assert api.server.unread.held == STREAM_BYTES
        async with api.client.get("/things") as second:
            assert second.status == 429
        go_on.set()
        assert await first.read() == b"1"
    await wait_until(lambda: api.server.unread.held == 0)


async def test_documents_that_all_share_do_not_count(serve: Any, thing: Any, wait_until: Any) -> None:
    route = thing(handler=answering(4_000_000), access=Access.PUBLIC, scope=None, rate_class="public")
    api = await serve(route)
    writer = await without_reading(api)
    writer.write(GET)
    await wait_until(lambda: any(c.writing_paused for c in api.server._web.connections))
    assert api.server.unread.held == 0


async def test_pages_beyond_those_being_made_are_read_only_when_there_is_room_for_them(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    begun: list[Call] = []
    go_on = asyncio.Event()

    async def handle(call: Call) -> Reply:
        begun.append(call)
        await go_on.wait()
        return Reply(200, {})

    api = await serve(thing(handler=handle, query=CursorQuery))

    async def ask(headers: dict[str, str]) -> int:
        async with api.client.get("/things", headers=headers) as answer:
            return int(answer.status)

    other = api.as_principal(organization_id="org_2", actor_id="key_2")
    waiting = api.server._dispatcher._pages._waiting
    asking = [asyncio.create_task(ask({})) for _ in range(PAGES_OF_CALLER + 2)]
    await wait_until(lambda: len(waiting.get("org_1", ())) == 2)
    neighbour = asyncio.create_task(ask(other))
    await wait_until(lambda: len(begun) == PAGES_OF_CALLER + 1)
    with api.server.unread.holding("org_1", api.server.unread.share):
        go_on.set()
        statuses = await asyncio.gather(*asking)
    assert (statuses.count(200), statuses.count(429)) == (PAGES_OF_CALLER, 2)
    assert await neighbour == 200
    assert len(begun) == PAGES_OF_CALLER + 1
    assert await ask({}) == 200
