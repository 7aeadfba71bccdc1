"""Bodies in chunks that are mostly framing: every chunk costs the same, however little is in it (C31)."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, Thing, answer_of

from recado.http.api.call import Call
from recado.http.wire.body_pace import FRAMING_AT_ONCE
from recado.http.wire.connection import HEAD_BYTES, Connection
from recado.http.wire.reply import Reply

HEAD_OF_CHUNKS = (
    b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)
END = b"0\r\n\r\n"


def in_chunks(body: bytes, size: int) -> bytes:
    pieces = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


def json_of(size: int) -> bytes:
    return b'{"name": "x"' + b" " * (size - 13) + b"}"


async def answer_to(api: Any, *pieces: bytes) -> bytes:
    reader, writer = await api.connect()
    try:
        for piece in pieces:
            writer.write(piece)
        return bytes(await reader.readline())
    finally:
        writer.transport.abort()


@pytest.mark.parametrize(
    ("body", "chunk"), [(1_000, 1), (200_000, 16), (1_000_000, 100_000)], ids=["small", "chunks of 16", "large chunks"]
)
async def test_usual_chunks_are_taken(serve: Any, thing: Any, body: int, chunk: int) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=4_000_000))
    status = await answer_to(api, HEAD_OF_CHUNKS, in_chunks(json_of(body), chunk), END)
    assert status.split()[1] == b"200"


@pytest.mark.parametrize(
    "framing",
    [
        b"1\r\n \r\n" * FRAMING_AT_ONCE,
        b"1;" + b"a" * (2 * FRAMING_AT_ONCE),
        b"1\r\n \r\n" * 100 + b"1;" + b"a" * (2 * FRAMING_AT_ONCE),
    ],
    ids=["chunks of a byte", "an endless extension", "both"],
)
@pytest.mark.parametrize("path", [b"/things", b"/nowhere"])
async def test_more_framing_than_body_ends_the_connection(
    serve: Any, thing: Any, wait_until: Any, framing: bytes, path: bytes
) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=4_000_000))
    reader, writer = await api.connect()
    writer.write(HEAD_OF_CHUNKS.replace(b"/things", path) + framing)
    with suppress(ConnectionError):  # what still comes is not read: the answer may be lost
        status = (await reader.readline()).split()[1]
        assert status in ((b"400",) if path == b"/things" else (b"400", b"404"))  # 404: the path was looked at before
    await wait_until(lambda: api.server.connections == 0)
    writer.transport.abort()


FIRST = b"POST /first HTTP/1.1\r\n" + HEAD + b"Content-Length: 0\r\n\r\n"
ENDLESS_HEAD = b"GET /things HTTP/1.1\r\n" + b"X-Many: %b\r\n" % (b"y" * 8_000) * (HEAD_BYTES // 8_000 + 6)


@pytest.mark.parametrize("before", [1, 3])
@pytest.mark.parametrize("under_way", [False, True], ids=["in one segment", "behind one under way"])
@pytest.mark.parametrize(
    "bad", [HEAD_OF_CHUNKS + b"1\r\n \r\n" * FRAMING_AT_ONCE, ENDLESS_HEAD], ids=["tiny chunks", "an endless head"]
)
async def test_what_is_refused_takes_no_answer_from_a_request_before_it(
    serve: Any, thing: Any, wait_until: Any, bad: bytes, under_way: bool, before: int
) -> None:
    entered, leave, carried_out = asyncio.Event(), asyncio.Event(), 0

    async def make(_: Call) -> Reply:
        nonlocal carried_out
        carried_out += 1
        entered.set()
        await leave.wait()
        return Reply(201, {"made": True})

    api = await serve(thing("POST", "/first", handler=make), thing("POST", body=Thing, body_limit=4_000_000))
    reader, writer = await api.connect()
    writer.write(FIRST * before + (b"" if under_way else bad))
    await entered.wait()
    if under_way:
        writer.write(bad)
    (connection,) = api.server._web.connections
    await wait_until(lambda: connection._close)
    leave.set()
    for _ in range(before):
        status, _, body = await answer_of(reader)
        assert (status, body) == (201, b'{"made":true}')
    with suppress(ConnectionError):  # what still comes is not read: this answer may be lost
        assert (await reader.readline()).split()[1] == b"400"
    assert carried_out == before


async def test_a_request_that_is_refused_while_it_waits_for_its_turn_is_not_carried_out(
    serve: Any, thing: Any, wait_until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    carried_out: list[bool] = []

    async def make(_: Call) -> Reply:
        carried_out.append(True)
        return Reply(201, {})

    api = await serve(thing("POST", "/first"), thing("POST", handler=make))
    reader, writer = await api.connect()
    writer.write(FIRST)
    assert (await answer_of(reader))[0] == 200
    (connection,) = api.server._web.connections
    turn = asyncio.get_running_loop().create_future()
    connection.turns.wait = lambda _: turn
    refuse = Connection._refuse_in_turn

    def refuse_as_its_turn_comes(self: Connection, error: Any) -> None:
        refuse(self, error)
        turn.set_result(None)

    monkeypatch.setattr(Connection, "_refuse_in_turn", refuse_as_its_turn_comes)
    writer.write(HEAD_OF_CHUNKS + b"1\r\n \r\n" * FRAMING_AT_ONCE)
    with suppress(ConnectionError):  # what still comes is not read: the answer may be lost
        assert (await reader.readline()).split()[1] == b"400"
    await wait_until(lambda: api.server.connections == 0)
    assert carried_out == []
