"""Clients that leave their answers unread: their connections end, and count until they have (C31)."""

import asyncio
import socket
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD

from recado.http.call import Call
from recado.http.connection import HEAD_SECONDS, READING_SECONDS
from recado.http.reply import Reply

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
