"""What surrounds a body: chunks of a byte, endless chunk headers, unwanted bodies, answers that nobody reads."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, suppress
from itertools import cycle

import pytest
from tests.abuse.attacker import Attacker, keep_on, status_of
from tests.abuse.neighbour import Neighbour

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

CHUNKED = {"Transfer-Encoding": "chunked", "Connection": "close"}
TINY_CHUNKS = b"1\r\nx\r\n" * 20_000
WRITES = 40
UNWANTED = 16_000_000
SILENT = 900
ADDRESSES = 90  # each asks for less than an address without a credential may
DOCUMENT = "/v2/openapi.json"


@pytest.fixture
def stranger(attacker: Attacker) -> Attacker:
    return attacker.without_credential()


async def pour(stranger: Attacker, head: bytes, pieces: Iterable[bytes]) -> int:
    """Send the pieces until the service answers or ends the connection; the status, 0 for none.

    Raises OSError when there is no connection, or it does not even take the head: then nothing was tried.
    """
    reader, writer = await stranger.connect()
    try:
        writer.transport.set_write_buffer_limits(0)
        writer.write(head)
        await writer.drain()
        answered = asyncio.ensure_future(status_of(reader))
        with suppress(OSError):
            for piece in pieces:
                if answered.done():
                    break
                writer.write(piece)
                await writer.drain()
        with suppress(OSError):
            return await answered
        return 0
    finally:
        writer.transport.abort()


@pytest.mark.parametrize("path", ["/v2/callbacks/chatapp/bridge", pytest.param("/v2/nowhere", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(b"", id="chunks of a byte"),
        pytest.param(b"1;", id="a chunk header without an end", marks=pytest.mark.long),
    ],
)
async def test_framing_without_a_body_keeps_nobody_waiting(
    stranger: Attacker, neighbour: Neighbour, seconds: float, path: str, begin: bytes
) -> None:
    pieces = [begin] + [(b"a" * 100_000) if begin else TINY_CHUNKS] * WRITES
    head = stranger.head("POST", path, None, CHUNKED)
    strangers = cycle([stranger.without_credential(f"127.0.1.{1 + number}") for number in range(ADDRESSES)])
    async with neighbour.held():
        answers = await keep_on(seconds, 8, lambda: pour(next(strangers), head, pieces))
    assert set(answers) <= {0, 400, 404}  # 0: the connection ended amid the sending


@pytest.mark.long
async def test_bodies_that_nobody_wants_keep_nobody_waiting(
    stranger: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    head = stranger.head("POST", "/v2/nowhere", UNWANTED, {"Connection": "close"})
    async with neighbour.held():
        answers = await keep_on(seconds, 8, lambda: pour(stranger, head, [bytes(UNWANTED // 16)] * 16))
    assert set(answers) <= {0, 404, 429}


@pytest.fixture
async def unread(stranger: Attacker) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """Connections that ask, and read nothing: from so many addresses that none of their answers is refused."""
    async with AsyncExitStack() as streams:
        writers = []
        for number in range(SILENT):
            _, writer = await stranger.without_credential(f"127.0.1.{1 + number % ADDRESSES}").connect()
            streams.callback(writer.transport.abort)
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            writers.append(writer)
        yield writers


async def test_answers_that_nobody_reads_keep_nobody_waiting(
    stranger: Attacker, neighbour: Neighbour, unread: list[asyncio.StreamWriter]
) -> None:
    ask = stranger.head("GET", DOCUMENT, None)
    async with neighbour.held():
        for writer in unread:
            writer.write(ask * 4)
        for _ in range(20):
            assert await stranger.ask("GET", "/healthz") == 200
