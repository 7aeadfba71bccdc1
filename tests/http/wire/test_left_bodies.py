"""Requests that are broken off: nothing of them stays, not even until the collector's next look (C31)."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, Thing

from recado.http.route import Access

SENT = 1_000_000
TIMES = 10


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    tracemalloc.start()
    yield
    tracemalloc.stop()
    gc.enable()


@pytest.mark.parametrize("path", ["/calls", "/things", "/file"])
@pytest.mark.parametrize("declared", [b"Content-Length: 3000000", b"Transfer-Encoding: chunked"])
async def test_a_body_broken_off_is_forgotten_without_the_collector(
    serve: Any, thing: Any, wait_until: Any, no_collector: None, path: str, declared: bytes
) -> None:
    api = await serve(
        thing("POST", "/calls", raw_body=True, access=Access.CALLBACK, scope=None, rate_class="", body_limit=4_000_000),
        thing("POST", body=Thing, body_limit=4_000_000),
        thing("POST", "/file", spooled={"application/json": None}),
    )
    head = b"POST %b HTTP/1.1\r\n%bContent-Type: application/json\r\n%b\r\n\r\n" % (path.encode(), HEAD, declared)
    body = b"x" * SENT if b"Length" in declared else b"%x\r\n%b" % (SENT + 1, b"x" * SENT)

    def come() -> bool:
        bodies = [connection._incoming for connection in api.server._web.connections]
        return any(body is not None and body.total_bytes == SENT for body in bodies)

    before = tracemalloc.get_traced_memory()[0]
    for _ in range(TIMES):
        _, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(head + body)
        await wait_until(come)
        writer.transport.abort()
        await wait_until(lambda: api.server.connections == 0)
    assert tracemalloc.get_traced_memory()[0] - before < SENT
    assert api.server.bodies.held == 0


async def test_a_body_that_comes_too_late_is_forgotten_without_the_collector(
    serve: Any, thing: Any, wait_until: Any, no_collector: None
) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=4_000_000))
    head = b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nContent-Length: 3000000\r\n\r\n"

    def come() -> bool:
        bodies = [connection._incoming for connection in api.server._web.connections]
        return any(b is not None and b.total_bytes == SENT and b._waiter is not None for b in bodies)

    before = tracemalloc.get_traced_memory()[0]
    for _ in range(TIMES):
        reader, writer = await asyncio.open_connection("127.0.0.1", api.server.port)
        writer.write(head + b"x" * SENT)
        await wait_until(come)
        await api.clock.advance(31)
        assert (await reader.read()).startswith(b"HTTP/1.1 408 ")
        writer.transport.abort()
        await wait_until(lambda: api.server.connections == 0)
    assert tracemalloc.get_traced_memory()[0] - before < SENT
