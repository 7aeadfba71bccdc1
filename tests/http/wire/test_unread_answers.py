"""Clients that leave their answers unread: the connections end, and both count until they are gone (C31)."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, Thing

from recado.http.api.call import Call
from recado.http.api.paging import CursorQuery, PageQuery
from recado.http.api.route import MIB, Access
from recado.http.dispatch import PAGES_OF_CALLER, SEARCHES_OF_CALLER
from recado.http.wire.byte_budget import STREAM_BYTES
from recado.http.wire.connection import HEAD_SECONDS, LEAST_TAKEN, READING_SECONDS
from recado.http.wire.rendering import LARGE
from recado.http.wire.reply import Reply, StreamReply

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


async def test_a_half_sent_answer_goes_on_while_an_idle_connection_can_make_way(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    api = await serve(thing(handler=answering(4_000_000)), connections=4)
    reader, slow = await api.connect()
    slow.transport.pause_reading()
    slow.write(GET)
    await wait_until(lambda: any(c.writing_paused for c in api.server._web.connections))
    (connection,) = api.server._web.connections
    assert (connection.busy, connection.idle) == (False, False)
    for _ in range(3):  # of the two that one address may have
        before = api.server._web.connections
        await api.connect()
        await wait_until(lambda before=before: set(api.server._web.connections) - set(before))
    slow.transport.resume_reading()
    await reader.readuntil(b"\r\n\r\n")
    assert len(await reader.readexactly(4_000_000)) == 4_000_000


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


async def test_whatever_a_caller_left_unread_its_small_lists_and_its_writes_go(serve: Any, thing: Any) -> None:
    small = thing(handler=answering(LARGE), query=CursorQuery)
    api = await serve(small, thing("POST", body=Thing, handler=answering(900_000)))
    full = api.server.unread.share
    ended: list[str] = []
    with api.server.unread.holding("org_1", full, lambda: ended.append("org_1")):
        async with api.client.get("/things") as answer:
            assert (answer.status, len(await answer.read())) == (200, LARGE)
        assert ended == []
        async with api.client.post("/things", json={"name": "x" * 20_000}) as answer:
            assert (answer.status, len(await answer.read())) == (200, 900_000)


async def test_who_reads_loses_nothing_beside_four_who_leave_everything_unread(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    api = await serve(thing(handler=answering(900_000), query=CursorQuery), body_memory=64 * MIB)
    unread = api.server.unread
    for number in range(2, 6):
        head = api.as_principal(organization_id=f"org_{number}", actor_id=f"key_{number}")["Authorization"].encode()
        for _ in range(8):
            before = api.server._web.requests_count
            writer = await without_reading(api)
            writer.write(b"GET /things HTTP/1.1\r\nHost: x\r\nAuthorization: " + head + b"\r\n\r\n")
            await wait_until(lambda before=before: api.server._web.requests_count > before)
            await api.clock.settle()
    assert unread.held > 7 * (64 * MIB // 2) // 8 - 900_000  # no further answer has room
    connections = api.server.connections
    for _ in range(10):
        async with api.client.get("/things") as answer:
            assert (answer.status, len(await answer.read())) == (200, 900_000)
        await wait_until(lambda: "org_1" not in unread._by_caller)
    assert unread.held > 7 * (64 * MIB // 2) // 8 - 2 * 900_000
    await wait_until(lambda: api.server.connections == connections)  # one of theirs went for the reader's own


async def test_a_small_answer_counts_once_its_connection_takes_no_more(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing(handler=answering(60_000)))
    writer = await without_reading(api)
    writer.write(GET * 20)
    await wait_until(lambda: api.server.unread.held > 0)
    assert 60_000 < api.server.unread.held < LARGE
    writer.transport.abort()
    await wait_until(lambda: api.server.unread.held == 0)


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


async def test_the_administrator_too_is_refused_and_loses_nothing_of_what_it_reads(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    go_on = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"1"
        await go_on.wait()

    async def handle(_: Call) -> Reply:
        return StreamReply(200, pieces(), content_type="application/json")

    route = thing("GET", "/v2/admin/things", handler=handle, access=Access.ADMIN, scope=None, rate_class="")
    api = await serve(route, thing(handler=handle), admin_token="secret-of-the-house", body_memory=16 * MIB)
    headers = {"Authorization": "Bearer secret-of-the-house"}
    async with (
        api.client.get("/v2/admin/things", headers=headers) as first,
        api.client.get("/v2/admin/things", headers=headers) as second,
    ):
        async with api.client.get("/v2/admin/things", headers=headers) as third:
            assert (third.status, third.headers["Retry-After"]) == (429, "1")
        async with api.client.get("/things") as other:
            assert other.status == 200
            go_on.set()
            assert [await each.read() for each in (first, second, other)] == [b"1"] * 3
    await wait_until(lambda: api.server.unread.held == 0)


async def test_documents_that_all_share_do_not_count(serve: Any, thing: Any, wait_until: Any) -> None:
    route = thing(handler=answering(4_000_000), access=Access.PUBLIC, scope=None, rate_class="public")
    api = await serve(route)
    writer = await without_reading(api)
    writer.write(GET)
    await wait_until(lambda: any(c.writing_paused for c in api.server._web.connections))
    assert api.server.unread.held == 0


async def test_pages_beyond_those_being_made_wait_and_keep_no_other_organization_waiting(
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
    go_on.set()
    assert await asyncio.gather(neighbour, *asking) == [200] * (PAGES_OF_CALLER + 3)


@pytest.mark.parametrize("search", ["q=a", "skip=1001"])
async def test_searches_of_an_organization_leave_places_for_its_lists_along_a_key(
    serve: Any, thing: Any, wait_until: Any, search: str
) -> None:
    class Query(PageQuery):
        q: str | None = None

    begun: list[str] = []
    go_on = asyncio.Event()

    async def handle(call: Call) -> Reply:
        if call.query.searches:
            begun.append(call.request_id)
            await go_on.wait()
        return Reply(200, {})

    api = await serve(thing(handler=handle, query=Query))

    async def ask(query: str) -> int:
        async with api.client.get(f"/things?{query}") as answer:
            return int(answer.status)

    searching = [asyncio.create_task(ask(search)) for _ in range(PAGES_OF_CALLER)]
    waiting = api.server._dispatcher._searches._waiting
    await wait_until(lambda: len(waiting.get("org_1", ())) == PAGES_OF_CALLER - SEARCHES_OF_CALLER)
    assert len(begun) == SEARCHES_OF_CALLER
    assert await ask("skip=1000") == 200
    go_on.set()
    assert await asyncio.gather(*searching) == [200] * PAGES_OF_CALLER


async def test_who_takes_an_answer_slowly_keeps_the_connection(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing(handler=answering(4_000_000)))
    writer = await without_reading(api)
    writer.write(GET)
    await wait_until(lambda: any(c.writing_paused for c in api.server._web.connections))
    (connection,) = api.server._web.connections
    await api.clock.advance(READING_SECONDS - 5)
    left = connection.transport.get_write_buffer_size()
    writer.transport.resume_reading()
    await wait_until(lambda: connection.transport.get_write_buffer_size() <= left - LEAST_TAKEN)
    writer.transport.pause_reading()
    await api.clock.advance(READING_SECONDS - 5)
    assert (api.server.connections, connection.writing_paused) == (1, True)
    await api.clock.advance(READING_SECONDS + 2)
    await wait_until(lambda: api.server.connections == 0)
