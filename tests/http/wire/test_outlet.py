"""Pieces that go past the task of an answer: in their place among the others, and no more than the client takes."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from recado.http.api.call import Call
from recado.http.wire.outlet import Outlet, chunk
from recado.http.wire.reply import Reply, StreamReply

ALL = 2**30  # bytes


class Told:
    """A route whose pieces tests give out, and the outlet of the one who asked last."""

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.outlet = Outlet()
        self.waits = False

    async def answer(self, _: Call) -> Reply:
        return StreamReply(200, self._pieces(), content_type="text/event-stream", outlet=self.outlet)

    async def _pieces(self) -> AsyncGenerator[bytes]:
        yield b"first,"
        while True:
            self.waits = True
            piece = await self.pieces.get()
            self.waits = False
            if piece is None:
                return
            yield piece


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def api(serve: Any, thing: Any, told: Told) -> Any:
    return await serve(thing("GET", "/told", handler=told.answer))


def test_a_chunk_says_its_length_in_hexadecimal() -> None:
    assert chunk(b"x" * 26) == b"1a\r\n" + b"x" * 26 + b"\r\n"


def test_nothing_goes_through_before_the_answer_begins() -> None:
    assert not Outlet().push(chunk(b"early"), ALL)


async def test_pieces_of_both_ways_come_in_the_order_in_which_they_were_given(
    api: Any, told: Told, wait_until: Any
) -> None:
    async with api.client.get("/told") as answer:
        await wait_until(lambda: told.waits)
        assert told.outlet.push(chunk(b"past the task,"), ALL)
        told.waits = False
        told.pieces.put_nowait(b"by the task,")
        await wait_until(lambda: told.waits)
        assert told.outlet.push(chunk(b"past it again"), ALL)
        told.pieces.put_nowait(None)
        assert await answer.read() == b"first,past the task,by the task,past it again"


async def test_nothing_goes_through_where_the_answer_has_no_chunks(api: Any, told: Told, wait_until: Any) -> None:
    reader, writer = await api.connect()
    writer.write(b"GET /told HTTP/1.0\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n")
    await wait_until(lambda: told.waits)
    assert not told.outlet.push(chunk(b"no body of chunks"), ALL)
    told.pieces.put_nowait(None)
    assert (await reader.read()).endswith(b"\r\n\r\nfirst,")


async def test_a_client_that_takes_nothing_holds_no_more_than_it_may_whichever_way_pieces_go(
    api: Any, told: Told, wait_until: Any
) -> None:
    most, piece = 128 * 1024, b"x" * 60_000
    reader, writer = await api.connect()
    writer.transport.pause_reading()
    writer.write(b"GET /told HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n")
    await wait_until(lambda: told.waits)
    (connection,) = api.server._web.connections
    for _ in range(1_000):
        if not told.outlet.push(chunk(piece), most):
            break
        assert connection.transport.get_write_buffer_size() <= most
    else:
        pytest.fail("the client took nothing, and everything was written")
    assert connection.writing_paused
    told.waits = False
    for content in (piece, b"the end"):
        told.pieces.put_nowait(content)
    for _ in range(20):
        await asyncio.sleep(0)
        assert connection.transport.get_write_buffer_size() <= most
    assert told.pieces.qsize() == 1
    writer.transport.resume_reading()
    got = b""
    async with asyncio.timeout(60):
        while b"the end" not in got:
            piece = await reader.read(2**20)
            assert piece, "the answer ended before its end"
            got = got[-len(b"the end") :] + piece
    await wait_until(lambda: told.waits)
    assert told.outlet.push(chunk(b"on we go"), most)
    told.pieces.put_nowait(None)  # a stop would wait for its answer


@pytest.mark.parametrize("version", ["1.0", "1.1"])
async def test_nothing_goes_through_when_the_client_has_left(
    api: Any, told: Told, wait_until: Any, version: str
) -> None:
    _, writer = await api.connect()
    writer.write(f"GET /told HTTP/{version}\r\nHost: x\r\nAuthorization: Bearer good\r\n\r\n".encode())
    assert not told.outlet.left
    await wait_until(lambda: told.waits)
    assert not told.outlet.left
    writer.transport.abort()
    await wait_until(lambda: told.outlet.left)
    assert not told.outlet.push(chunk(b"for nobody"), ALL)
    told.pieces.put_nowait(None)
