"""Hostile requests: whatever an attacker frames, a cell gets no request but those that the entry has taken for one."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest
from tests.entry.conftest import Two

from recado.entry import passed_body

INNER = "GET /smuggled HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.1\r\n\r\n"
LENGTH, CHUNK = f"Content-Length: {len(INNER)}\r\n", f"{len(INNER):x}\r\n{INNER}\r\n0\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n"
POST, GET = "POST /x HTTP/1.1\r\nHost: x\r\n", "GET /x HTTP/1.1\r\nHost: x\r\n"
REFUSED = {
    "a length and chunks": f"{POST}{LENGTH}{CHUNKED}\r\n0\r\n\r\n{INNER}",
    "chunks, and then none": f"{POST}{CHUNKED}Transfer-Encoding: identity\r\n\r\n0\r\n\r\n{INNER}",
    "chunks that are not the last": f"{POST}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{INNER}",
    "packed chunks": f"{POST}Transfer-Encoding: gzip, chunked\r\n\r\n{CHUNK}",
    "something like chunks": f"{POST}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{INNER}",
    "a tab of another kind": f"{POST}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n{INNER}",
    "a space before the colon": f"{POST}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{INNER}",
    "a folded line": f"{POST}Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{INNER}",
    "two lengths": f"{POST}Content-Length: 0\r\n{LENGTH}\r\n{INNER}",
    "a list of lengths": f"{POST}Content-Length: 0, {len(INNER)}\r\n\r\n{INNER}",
    "a length with a sign": f"{POST}Content-Length: +{len(INNER)}\r\n\r\n{INNER}",
    "a size that is none": f"{POST}{CHUNKED}\r\n0x0\r\n\r\n{INNER}",
    "an extension with an open quote": f'{POST}{CHUNKED}\r\n0;a="\r\n\r\n{INNER}',
    "an extension that ends with a line feed": f"{POST}{CHUNKED}\r\n2;\nxx\r\n{CHUNK}",
    "a length as a trailer": f"{POST}{CHUNKED}\r\n0\r\nContent-Length: 9\r\n\r\n{INNER}",
    "line feeds alone": f"{GET}\r\n".replace("\r", "") + INNER,
    "a carriage return alone": f"{GET}X-A: a\rX-B: b\r\n\r\n",
    "a zero": f"{GET}X-A: a\0b\r\n\r\n",
    "a header without a name": f"{GET}: b\r\n\r\n",
    "two hosts": f"{GET}Host: y\r\n\r\n",
    "a space in the target": f"GET /x HTTP/1.1 HTTP/1.1\r\nHost: x\r\n\r\n{INNER}",
    "a head without an end": f"{GET}X-A: {'a' * 200_000}\r\n\r\n",
}
NOWHERE = {
    "led on": f"CONNECT /x HTTP/1.1\r\nHost: x\r\n\r\n{INNER}",
    "led on elsewhere": f"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: x\r\n\r\n{INNER}",
    "led on, with a length": "CONNECT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 400\r\n\r\n",
}
PASSED = {
    "an empty coding": f"{POST}Transfer-Encoding:\r\n{LENGTH}\r\n{INNER}",
    "a length of this connection": f"{POST}Connection: content-length\r\n{LENGTH}\r\n{INNER}",
    "chunks of this connection": f"{POST}Connection: transfer-encoding\r\n{CHUNKED}\r\n{CHUNK}",
    "chunks of HTTP/1.0": f"{POST}Connection: keep-alive\r\n{CHUNKED}\r\n{CHUNK}".replace("HTTP/1.1", "HTTP/1.0", 1),
    "another protocol": f"{POST}Connection: upgrade\r\nUpgrade: websocket\r\n{LENGTH}\r\n{INNER}",
    "another protocol in chunks": f"{POST}Connection: upgrade\r\nUpgrade: websocket\r\n{CHUNKED}\r\n{CHUNK}",
    "another protocol without a body": f"{GET}Connection: upgrade\r\nUpgrade: websocket\r\n\r\n{INNER}",
    "HTTP/2": f"{GET}Connection: Upgrade\r\nUpgrade: h2c\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "an expectation": f"{POST}Expect: 100-continue\r\n{LENGTH}\r\n{INNER}",
    "a body of a GET": f"{GET}{LENGTH}\r\n{INNER}",
    "chunks of a GET": f"{GET}{CHUNKED}\r\n{CHUNK}",
    "a part of a body": f"{POST}Content-Length: 400\r\n\r\n{INNER}",
    "a part of chunks": f"{POST}{CHUNKED}\r\n400\r\n{INNER}",
    "a line break in a target": "GET /x%0d%0aX-A:%20b HTTP/1.1\r\nHost: x\r\n\r\n",
    "another host": "GET http://a@b.example:99/x HTTP/1.1\r\nHost: x\r\n\r\n",
}


@dataclass
class HastyCell:
    """Answers each request when its head is there, and keeps the connection; `came`: by connection, what came."""

    came: list[bytearray] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came = bytearray()
        self.came.append(came)
        answered = 0
        while piece := await reader.read(65_536):
            came += piece
            heads = len(_targets(bytes(came)))
            writer.write(b"HTTP/1.1 401 No\r\nContent-Length: 2\r\n\r\nno" * (heads - answered))
            answered = heads
        writer.close()

    @property
    def targets(self) -> list[bytes]:
        """Of all that it took for requests."""
        return [target for came in self.came for target in _targets(bytes(came))]


def _targets(came: bytes) -> list[bytes]:
    found = []
    while b"\r\n\r\n" in came:
        head, _, came = came.partition(b"\r\n\r\n")
        found.append(head.split()[1])
        if b"\r\nTransfer-Encoding: chunked" in head:
            came = came.partition(b"\r\n0\r\n\r\n")[2]
        elif length := re.search(rb"\r\nContent-Length: (\d+)", head):
            came = came[int(length[1]) :]
    return found


@pytest.fixture
async def hasty(two: Two) -> AsyncIterator[HastyCell]:
    cell = HastyCell()
    await two.a.stop()
    server = await asyncio.start_server(cell.serve, "127.0.0.1", two.a.port)
    yield cell
    server.close()


async def answered(two: Two, raw: str) -> bytes:
    """The status of the answer to these bytes, after which the attacker leaves."""
    reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
    try:
        writer.write(raw.encode("latin-1"))
        return (await reader.readuntil(b"\r\n")).split()[1]
    finally:
        writer.transport.abort()


async def test_what_is_framed_in_two_ways_reaches_no_cell_and_of_what_is_passed_on_nothing_is_read_as_a_request(
    two: Two, hasty: HastyCell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed_body, "HELD_SECONDS", 0.05)
    _, token = await two.a.organization()
    authorized = f"Host: x\r\nAuthorization: Bearer {token}\r\n"
    expected: list[bytes] = []
    async with asyncio.timeout(120):
        for cases, status in ((REFUSED, b"400"), (NOWHERE, b"404"), (PASSED, b"401")):
            for name, raw in cases.items():
                assert await answered(two, raw.replace("Host: x\r\n", authorized, 1)) in {status, b"100"}, name
                victim = f"GET /victim HTTP/1.1\r\n{authorized}Connection: close\r\n\r\n"
                assert await answered(two, victim) == b"401", name
                expected += [b"/x", b"/victim"] if cases is PASSED else [b"/victim"]
                taken = [target.partition(b"%")[0] for target in hasty.targets]
                assert sorted(taken) == sorted(expected), name
