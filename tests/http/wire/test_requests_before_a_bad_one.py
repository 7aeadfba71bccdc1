"""Several requests sent ahead, of which the last is none: all whole ones before it have their answers first (C31)."""

import asyncio
import random
from itertools import pairwise
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, Thing

from recado.http.api.call import Call
from recado.http.wire.body_pace import FRAMING_AT_ONCE
from recado.http.wire.connection import HEAD_BYTES, Connection
from recado.http.wire.reply import Reply

GET = b"GET /things HTTP/1.1\r\n" + HEAD
POST = b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
GOOD = {
    "no body": GET + b"\r\n",
    "a length": POST + b"Content-Length: 13\r\n\r\n" + b'{"name": "y"}',
    "an empty body": POST.replace(b"/things", b"/empty") + b"Content-Length: 0\r\n\r\n",
    "chunks": CHUNKED + b'6\r\n{"name\r\n7;x=y\r\n": "y"}\r\n0\r\n\r\n',
}
BAD = {
    "no method": b"\x01\x02 nothing\r\n\r\n",
    "no version": b"GET /things HTTP/x\r\n" + HEAD + b"\r\n",
    "a bad header": GET + b"X Y: z\r\n\r\n",
    "no host": b"GET /things HTTP/1.1\r\nX: y\r\n\r\n",
    "a long header": GET + b"X: %b\r\n\r\n" % (b"y" * 9_000),
    "many headers": GET + b"X: y\r\n" * 101 + b"\r\n",
    "a bad length": POST + b"Content-Length: 1x\r\n\r\n{}",
    "two framings": POST + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    "another coding": CHUNKED.replace(b"chunked", b"gzip, chunked") + b"2\r\n{}\r\n0\r\n\r\n",
    "a bad chunk": CHUNKED + b"zz\r\n{}\r\n0\r\n\r\n",
    "a bad second chunk": CHUNKED + b"2\r\n{}\r\nzz\r\n\r\n0\r\n\r\n",
    "a chunk without end": CHUNKED + b"2\r\n{}{}\r\n0\r\n\r\n",
    "an endless head": GET + b"X-Many: %b\r\n" % (b"y" * 7_900) * (HEAD_BYTES // 7_900 + 6),
    "tiny chunks": CHUNKED + b"1\r\n \r\n" * (FRAMING_AT_ONCE // 2),
}


class Sent:
    """A server that notes what it carried out, and how many bytes came."""

    def __init__(self, serve: Any, thing: Any, wait_until: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self._serve, self._thing, self._wait_until = serve, thing, wait_until
        self.carried_out = self.taken = 0
        take = Connection.data_received

        def count(connection: Connection, data: bytes) -> None:
            self.taken += len(data)
            take(connection, data)

        monkeypatch.setattr(Connection, "data_received", count)

    async def _handle(self, _: Call) -> Reply:
        self.carried_out += 1
        return Reply(200, {})

    async def answers_to(self, pieces: list[bytes]) -> list[int]:
        """The statuses of all answers until the connection ends."""
        body = {"body": Thing, "body_limit": 4_000_000}
        things = (
            self._thing("POST", handler=self._handle, **body),
            self._thing("POST", "/empty", handler=self._handle),
        )
        api = await self._serve(self._thing(handler=self._handle), *things)
        reader, writer = await api.connect()
        came = asyncio.ensure_future(everything(reader))
        sent = 0
        for piece in pieces:
            writer.write(piece)
            sent += len(piece)
            await self._wait_until(lambda sent=sent: self.taken >= sent or came.done())
        async with asyncio.timeout(60):
            content = await came
        return [int(part[1:4]) for part in content.split(b"HTTP/1.1")[1:]]


async def everything(reader: asyncio.StreamReader) -> bytes:
    content = b""
    try:
        while piece := await reader.read(65_536):
            content += piece
    except ConnectionError:  # what still comes is not read
        pass
    return content


@pytest.fixture
def sent(serve: Any, thing: Any, wait_until: Any, monkeypatch: pytest.MonkeyPatch) -> Sent:
    return Sent(serve, thing, wait_until, monkeypatch)


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("good", [[], *([each] * 2 for each in GOOD), list(GOOD)], ids=", ".join)
async def test_in_one_segment(sent: Sent, good: list[str], bad: str) -> None:
    answers = await sent.answers_to([b"".join(GOOD[each] for each in good) + BAD[bad]])
    assert (answers, sent.carried_out) == ([200] * len(good) + [400], len(good))


@pytest.mark.parametrize("bad", BAD)
async def test_behind_more_than_may_wait(sent: Sent, bad: str) -> None:
    answers = await sent.answers_to([GOOD["no body"] * 70 + BAD[bad]])
    assert (answers, sent.carried_out) == ([200] * 70 + [400], 70)


@pytest.mark.parametrize("seed", range(60))
async def test_in_segments_that_begin_anywhere(sent: Sent, seed: int) -> None:
    dice = random.Random(seed)
    good = dice.choices(list(GOOD), k=dice.randrange(6))
    bad = dice.choice(list(BAD))
    content = b"".join(GOOD[each] for each in good) + BAD[bad]
    near = min(len(content), len(content) - len(BAD[bad]) + 600)  # in the requests, or about where the bad one begins
    borders = [0, *sorted(dice.sample(range(1, near), dice.randrange(1, 5))), len(content)]
    pieces = [content[start:end] for start, end in pairwise(borders)]
    answers = await sent.answers_to(pieces)
    assert (answers, sent.carried_out) == ([200] * len(good) + [400], len(good)), (good, bad, borders)


async def test_what_is_held_back_stays_within_bounds(serve: Any, thing: Any, wait_until: Any) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {})

    api = await serve(thing(handler=slow))
    reader, writer = await api.connect()
    writer.write(GOOD["no body"] * 1_000 + BAD["a bad header"])
    await entered.wait()
    (connection,) = api.server._web.connections
    await wait_until(lambda: connection._buffer_paused)
    assert len(connection._messages) <= 32
    leave.set()
    async with asyncio.timeout(60):
        content = await everything(reader)
    assert (content.count(b"HTTP/1.1 200"), content.count(b"HTTP/1.1 400")) == (1_000, 1)
