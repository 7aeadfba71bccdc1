"""Heads on the socket: requests sent ahead, half of a further head, offers of another protocol (C31)."""

import asyncio
from typing import Any

import orjson
import pytest
from tests.http.wire.test_server import HEAD, Thing, answer_of

from recado.http.api.call import Call
from recado.http.wire.connection import HEAD_BYTES
from recado.http.wire.reply import Reply

GET = b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n"
POST = b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n"


async def test_requests_sent_ahead_take_turns_with_those_of_others(serve: Any, thing: Any, wait_until: Any) -> None:
    asked: list[str] = []

    async def note(call: Call) -> Reply:
        asked.append(call.headers["X-Who"])
        return Reply(200, {})

    api = await serve(thing(handler=note))
    _, other = await api.connect()
    reader, hasty = await api.connect()
    await wait_until(lambda: api.server.connections == 2)
    hasty.write((GET[:-2] + b"X-Who: hasty\r\n\r\n") * 300)
    await wait_until(lambda: len(asked) >= 1)
    other.write(GET[:-2] + b"X-Who: other\r\n\r\n")
    await wait_until(lambda: "other" in asked)
    assert asked.index("other") < 100
    assert [(await answer_of(reader))[0] for _ in range(300)] == [200] * 300


async def test_what_is_sent_ahead_of_a_busy_connection_waits_outside(serve: Any, thing: Any, wait_until: Any) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {})

    api = await serve(thing(handler=slow))
    reader, writer = await api.connect()
    writer.write(GET)
    await entered.wait()
    large = GET[:-2] + b"".join(b"X-%d: %b\r\n" % (n, b"a" * 8000) for n in range(7)) + b"\r\n"
    writer.write(large * 100)
    (connection,) = api.server._web.connections
    await wait_until(lambda: connection._buffer_paused)
    assert sum(len(str(message.raw_headers)) for message, _ in connection._messages) < 1_000_000
    leave.set()
    assert [(await answer_of(reader))[0] for _ in range(101)] == [200] * 101


async def answered(serve: Any, thing: Any, wait_until: Any, first: bytes, rest: bytes) -> Any:
    """A service, and a connection whose requests, sent in two pieces, are all answered: its reader and writer."""
    api = await serve(thing(), thing("POST", body=Thing))
    reader, writer = await api.connect()
    writer.write(first)
    if rest:
        await wait_until(lambda: any(c.heard for c in api.server._web.connections))
        writer.write(rest)
    for _ in range(first.count(b"HTTP/1.1")):
        assert (await answer_of(reader))[0] == 200
    return api, reader, writer


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (GET + b"G", b""),
        (GET[:-1], b"\nG"),
        (POST + b"Content-Length: 2\r\n\r\n{}G", b""),
        (POST + b"Content-Length: 2\r\n\r\n{", b"}G"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\nG", b""),
        (GET + GET + b"G", b""),
    ],
)
async def test_one_byte_of_a_further_head_has_the_time_of_a_head(
    serve: Any, thing: Any, wait_until: Any, first: bytes, rest: bytes
) -> None:
    api, reader, _ = await answered(serve, thing, wait_until, first, rest)
    await api.clock.advance(12)
    assert (await answer_of(reader))[0] == 408
    assert await reader.read() == b""


@pytest.mark.parametrize(
    ("first", "rest"),
    [
        (GET, b""),
        (GET[:-1], b"\n"),
        (GET[:-3], b"\n\r\n"),
        (POST + b"Content-Length: 2\r\n\r\n{}", b""),
        (POST + b"Content-Length: 2\r\n\r\n", b"{}"),
        (POST + b"Content-Length: 2\r\n\r\n{", b"}"),
        (POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r", b"\n"),
        (GET * 50, b""),
    ],
)
async def test_a_connection_without_a_byte_of_a_further_head_may_rest(
    serve: Any, thing: Any, wait_until: Any, first: bytes, rest: bytes
) -> None:
    api, reader, writer = await answered(serve, thing, wait_until, first, rest)
    await api.clock.advance(60)
    writer.write(GET)
    assert (await answer_of(reader))[0] == 200


async def test_a_head_may_not_grow_without_end(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing())
    reader, writer = await api.connect()
    line = b"X: %b\r\n" % (b"a" * 8000)
    fitting = HEAD_BYTES // len(line)
    writer.write(GET[:-2] + line * (fitting - 1))
    (connection,) = api.server._web.connections
    await wait_until(lambda: connection._head_size > len(line) * (fitting - 1))
    writer.write(line * 2)
    assert (await answer_of(reader))[0] == 400
    assert await reader.read() == b""


@pytest.mark.parametrize("protocol", [b"websocket", b"h2c", b"tcp", b"anything"])
@pytest.mark.parametrize("body", [b"", b"Content-Length: 2\r\n", b"Transfer-Encoding: chunked\r\n"])
async def test_nothing_behind_an_offer_of_another_protocol_is_a_request(
    serve: Any, thing: Any, protocol: bytes, body: bytes
) -> None:
    asked: list[bytes] = []

    async def note(call: Call) -> Reply:
        asked.append(call.raw_body)
        return Reply(200, {"ok": True})

    api = await serve(thing("POST", handler=note, body=Thing), thing("GET", "/smuggled", handler=note))
    content = {b"": b"", b"Content-Length: 2\r\n": b"{}"}.get(body, b"2\r\n{}\r\n0\r\n\r\n")
    smuggled = b"GET /smuggled HTTP/1.1\r\n" + HEAD + b"\r\n"
    reader, writer = await api.connect()
    writer.write(POST + body + b"Connection: Upgrade\r\nUpgrade: " + protocol + b"\r\n\r\n" + content + smuggled)
    status, head, _ = await answer_of(reader)
    assert (status, b"Connection: close" in head) == (200, True)
    writer.write(smuggled)
    assert await reader.read() == b""
    assert asked == [content if body != b"Transfer-Encoding: chunked\r\n" else b"{}"]


async def test_a_tunnel_is_refused(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    reader, writer = await api.connect()
    writer.write(b"CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n" + GET)
    status, head, _ = await answer_of(reader)
    assert (status // 100, b"Connection: close" in head) == (4, True)


@pytest.mark.parametrize(
    ("head", "detail"),
    [
        (
            b"GET /things?a=" + b"a" * 9_000 + b" HTTP/1.1\r\n" + HEAD,
            "A line of the request's head has at most 8,190 bytes: shorten the address or the header.",
        ),
        (
            b"GET /things HTTP/1.1\r\n" + HEAD + b"X-Long: " + b"a" * 9_000 + b"\r\n",
            "A line of the request's head has at most 8,190 bytes: shorten the address or the header.",
        ),
        (
            b"GET /things HTTP/1.1\r\n" + HEAD + b"".join(b"X-%d: 1\r\n" % n for n in range(101)),
            "A request has at most 100 headers.",
        ),
        (b"nothing of the kind\r\n", "This is not a valid HTTP request."),
    ],
    ids=["a long address", "a long header", "many headers", "no HTTP"],
)
async def test_a_head_beyond_a_limit_is_told_the_limit(serve: Any, thing: Any, head: bytes, detail: str) -> None:
    api = await serve(thing())
    reader, writer = await api.connect()
    writer.write(head + b"\r\n")
    status, _, content = await answer_of(reader)
    body = orjson.loads(content)
    assert (status, body["code"], body["detail"]) == (400, "BAD_REQUEST", detail)
