"""Large bodies of fast clients, which go past the parser into blocks that are used again (C31)."""

import errno
import hashlib
import os
from collections.abc import Callable
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, answer_of

from recado.http.api.call import Call
from recado.http.wire import connection
from recado.http.wire.direct_body import BLOCK, DirectBody
from recado.http.wire.reply import Reply
from recado.storage.core.gathered import GatheredBytes

SIZE = 8 * BLOCK + 12_345
CONTENT = os.urandom(SIZE)
BEGIN = b"POST /file HTTP/1.1\r\n%bContent-Type: text/csv\r\nContent-Length: %d\r\n\r\n" % (HEAD, SIZE)
NEXT = b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n"


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[DirectBody]:
    """Those that were read so."""
    made: list[DirectBody] = []

    def make(*arguments: Any) -> DirectBody:
        made.append(DirectBody(*arguments))
        return made[-1]

    monkeypatch.setattr(connection, "DirectBody", make)
    return made


@pytest.fixture
def taken() -> list[tuple[bytes, int, bytes]]:
    return []


@pytest.fixture
async def api(serve: Any, thing: Any, taken: list[tuple[bytes, int, bytes]]) -> Any:
    async def take(call: Call) -> Reply:
        assert call.spool is not None
        taken.append((call.spool.file.read(), call.spool.size, call.spool.digest))
        return Reply(200, {})

    return await serve(thing(), thing("POST", "/file", spooled={"text/csv": None}, handler=take, body_limit=2 * SIZE))


async def test_the_same_bytes_arrive_and_what_follows_them_is_another_request(
    api: Any, direct: list[DirectBody], taken: list[tuple[bytes, int, bytes]]
) -> None:
    reader, writer = await api.connect()
    for _ in range(2):
        writer.write(BEGIN + CONTENT + NEXT)
        assert (await answer_of(reader))[0] == 200
        assert (await answer_of(reader))[2] == b'{"ok":true}'
    assert taken == [(CONTENT, SIZE, hashlib.sha256(CONTENT).digest())] * 2
    assert len(direct) == 2
    assert {body._made for body in direct} <= {1, 2}


async def test_it_may_take_long_to_fill_a_block_but_not_be_silent_for_long(
    api: Any, direct: list[DirectBody], wait_until: Callable[..., Any]
) -> None:
    reader, writer = await api.connect()
    writer.write(BEGIN + CONTENT[: 2 * BLOCK])

    def left() -> int:
        return direct[0]._left if direct and direct[0]._waiter is not None else 0

    await wait_until(lambda: left() == SIZE - 2 * BLOCK)
    await api.clock.advance(29)
    writer.write(b" ")
    await wait_until(lambda: left() == SIZE - 2 * BLOCK - 1)
    await api.clock.advance(29)
    assert direct[0]._error is None
    await api.clock.advance(2)  # in all it may take 64
    status, head, body = await answer_of(reader)
    assert (status, b"Connection: close" in head, b'"code":"BAD_REQUEST"' in body) == (408, True, True)
    assert await reader.read() == b""


async def test_a_client_whose_body_finds_no_room_is_told_so_and_goes_on(
    api: Any, direct: list[DirectBody], monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(self: GatheredBytes, piece: bytes) -> None:
        if direct:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(GatheredBytes, "write", write)
    reader, writer = await api.connect()
    writer.write(BEGIN + CONTENT + NEXT)
    assert (await answer_of(reader))[0] == 503
    assert (await answer_of(reader))[2] == b'{"ok":true}'
    assert len(direct) == 1


async def test_nothing_is_left_of_a_body_whose_client_leaves(
    api: Any, direct: list[DirectBody], taken: list[Any], wait_until: Callable[..., Any]
) -> None:
    _, writer = await api.connect()
    writer.write(BEGIN + CONTENT[: 4 * BLOCK])
    await wait_until(lambda: bool(direct))
    writer.transport.abort()
    await wait_until(lambda: not api.server._web.connections)
    await wait_until(lambda: direct[0]._unwanted)
    assert direct[0]._left
    assert not taken
