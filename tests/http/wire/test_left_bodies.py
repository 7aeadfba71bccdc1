"""Requests that are broken off: nothing of them stays, not even until the collector's next look (C31)."""

import asyncio
import gc
import tracemalloc
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from tests.http.wire.test_server import HEAD, Thing

from recado.domain.core.errors import Problem
from recado.http.api.call import Call
from recado.http.api.route import Access
from recado.http.wire.reply import Reply

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
        await wait_until(lambda: api.server._dispatcher._spooler.open == 0)  # files are closed in threads
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


@pytest.fixture
def uncollected() -> Iterator[list[Any]]:
    """What only the collector would find: asked for by `gc.collect()`."""
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def refuse(_: Call) -> None:
    problem = Problem("NOT_FOUND", "Nobody is here.")
    raise problem  # its frame holds it, and it holds its frame


async def refuse_late(call: Call) -> Reply:
    refuse(call)
    return Reply(200)


async def get(client: aiohttp.ClientSession, path: str, headers: dict[str, str]) -> int:
    async with client.get(path, headers=headers) as answer:
        await answer.read()
        return answer.status


@pytest.mark.parametrize(
    ("path", "token", "beyond"),
    [("/gone", "good", 404), ("/calls", "good", 429), ("/nowhere", "good", 429), ("/gone", "bad", 429)],
    ids=["by the handler", "callbacks to nobody", "no such path", "failed credentials"],
)
async def test_a_refusal_is_forgotten_without_the_collector(
    serve: Any, thing: Any, uncollected: list[Any], path: str, token: str, beyond: int
) -> None:
    api = await serve(
        thing("GET", "/calls", access=Access.CALLBACK, scope=None, rate_class="", before_body=refuse),
        thing("GET", "/gone", handler=refuse_late),
    )
    headers = {"Authorization": f"Bearer {token}"}
    statuses = [await get(api.client, path, headers) for _ in range(220)]
    assert statuses[-1] == beyond
    gc.collect()
    assert [each for each in uncollected if isinstance(each, Problem | Call)] == []


async def fail(_: Call) -> Reply:
    error = RuntimeError("a defect")
    raise error  # its frame holds it, and it holds its frame


async def test_a_defect_is_forgotten_without_the_collector(serve: Any, thing: Any, uncollected: list[Any]) -> None:
    api = await serve(thing("GET", "/things", handler=fail))
    assert {await get(api.client, "/things", {}) for _ in range(TIMES)} == {500}
    gc.collect()
    assert [each for each in uncollected if isinstance(each, RuntimeError | Call)] == []
