"""Bodies in chunks that are mostly framing: every chunk costs the same, however little is in it (C31)."""

from contextlib import suppress
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, Thing

from recado.http.body_pace import FRAMING_AT_ONCE

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
