"""What a connection makes of an endpoint's bytes, however they are cut into pieces."""

import asyncio
import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from recado.channels.http.answer import Answer
from recado.channels.http.guarded_http import KEPT
from recado.channels.http.http_connection import LONGEST_READ, ConnectionBroke, HttpConnection


class Wire(asyncio.Transport):
    """A transport that only notes whether it was ended."""

    def __init__(self) -> None:
        super().__init__()
        self.ended = False

    def write(self, data: Any) -> None:
        """Into the void."""

    def is_closing(self) -> bool:
        return self.ended

    def abort(self) -> None:
        self.ended = True


def outcome(pieces: list[bytes], *, ends: bool) -> tuple[Answer | str | None, HttpConnection, int]:
    """What one request comes to: its answer, why it broke, or None while it waits; and the most that was buffered."""

    async def talk() -> tuple[Answer | str | None, HttpConnection, int]:
        connection, wire, most = HttpConnection("192.0.2.1", KEPT), Wire(), 0
        connection.connection_made(wire)
        asked = connection.exchange(b"POST / HTTP/1.1\r\n\r\n")
        for piece in pieces:
            if wire.ended:
                break
            connection.data_received(piece)
            most = max(most, len(connection._buffer))
        if ends and not wire.ended:
            connection.connection_lost(None)
        if not asked.done():
            asked.cancel()
            return None, connection, most
        try:
            return asked.result(), connection, most
        except ConnectionBroke as broke:
            return str(broke), connection, most

    with asyncio.Runner() as runner:
        return runner.run(talk())


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place % (len(data) + 1) for place in at)})
    return [data[start:end] for start, end in itertools.pairwise(places)]


def framed(body: bytes, framing: str, sizes: list[int]) -> bytes:
    if framing == "length":
        return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
    if framing == "close":
        return b"Connection: close\r\n\r\n" + body
    chunks, start = b"", 0
    for size in [*sizes, len(body)]:
        part = body[start : start + size]
        start += len(part)
        chunks += b"%x;ext=1\r\n%s\r\n" % (len(part), part) if part else b""
    return b"Transfer-Encoding: chunked\r\n\r\n%s0\r\n\r\n" % chunks


@given(
    st.integers(200, 599).filter(lambda status: status not in (204, 304)),
    st.binary(max_size=3_000),
    st.sampled_from(["length", "close", "chunked"]),
    st.lists(st.integers(1, 700), max_size=6),
    st.integers(0, 3),
    st.lists(st.integers(0, 4_000), max_size=8),
)
def test_an_answer_is_read_whole_however_it_is_cut(
    status: int, body: bytes, framing: str, sizes: list[int], interim: int, at: list[int]
) -> None:
    head = (
        b"HTTP/1.1 100 Continue\r\nX: y\r\n\r\n" * interim + b"HTTP/1.1 %d Some Reason\r\nRetry-After: 7\r\n" % status
    )
    found, connection, _ = outcome(cut(head + framed(body, framing, sizes), at), ends=framing == "close")
    assert found == Answer(status, "7", body[:KEPT], len(body) <= KEPT)
    assert connection.reusable == (framing != "close")


_WORDS = st.sampled_from(
    [b"HTTP/1.1 200 OK", b"HTTP/1.1 200 OK\r\nContent-Length: ", b"HTTP/1.1 102 \r\n\r\n", b"\r\n", b"\r\n\r\n", b"5",
     b"HTTP/1.1 503 \r\nTransfer-Encoding: chunked\r\n\r\n", b"gzip, chunked", b"ffffffffffffffff", b"-1", b"0",
     b";", b":", b"\x00\xff", b"99999999999", b"x" * 40_000]
)  # fmt: skip


@given(st.lists(_WORDS | st.binary(max_size=20), max_size=30), st.booleans())
def test_whatever_comes_is_an_answer_a_break_or_a_wait_and_fills_no_memory(pieces: list[bytes], ends: bool) -> None:
    found, connection, most = outcome(pieces, ends=ends)
    assert most <= LONGEST_READ + 40_000
    if isinstance(found, Answer):
        assert found.status >= 200
        assert len(found.body) <= KEPT
    elif isinstance(found, str):
        assert not connection.reusable
    else:
        assert not ends


def test_of_a_chunk_that_has_no_end_the_beginning_is_kept() -> None:
    head = b"HTTP/1.1 500 Oops\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n20000\r\n"
    for content, ends in ((b"x" * (LONGEST_READ + 1), False), (b"xyz", True)):
        answer, connection, _ = outcome([head, content[:2], content[2:]], ends=ends)
        assert isinstance(answer, Answer)
        assert (answer.status, answer.body) == (500, (b"abc" + content)[:KEPT])
        assert not connection.reusable
