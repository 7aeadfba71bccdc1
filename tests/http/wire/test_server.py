"""The server on its socket: slow clients, odd clients, and the end (C31)."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.captured import capture_logs

from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.server import ANSWER_SECONDS
from recado.http.wire import connection
from recado.http.wire.reply import Reply, StreamReply

HEAD = b"Host: x\r\nAuthorization: Bearer good\r\n"


class Thing(ApiModel):
    name: str = "x"


async def answer_of(reader: asyncio.StreamReader) -> tuple[int, bytes, bytes]:
    """Status, head and body of the next answer."""
    async with asyncio.timeout(60):
        head = await reader.readuntil(b"\r\n\r\n")
    length = next((int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0)
    return int(head.split()[1]), head, await reader.readexactly(length)


async def test_a_head_that_does_not_come_ends_the_connection_after_ten_seconds(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    api = await serve(thing())
    reader, writer = await api.connect()
    writer.write(b"GET /things HTTP/1.1\r\nHost:")
    await wait_until(lambda: any(c.heard for c in api.server._web.connections))
    await api.clock.advance(10.5)
    writer.write(b" x\r\nX-Slow: 1\r\n")  # a byte now and then gains no time
    assert api.server.connections == 1
    await api.clock.advance(1)
    status, head, _ = await answer_of(reader)
    assert (status, b"Connection: close" in head) == (408, True)
    assert await reader.read() == b""


async def test_a_connection_that_never_asks_is_closed(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing())
    reader, _ = await api.connect()
    await wait_until(lambda: api.server.connections == 1)
    await api.clock.advance(12)
    assert await reader.read() == b""


async def test_between_requests_a_connection_may_rest(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing("POST", body=Thing))
    reader, writer = await api.connect()
    body = b'{"name": "y"}'
    request = b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nContent-Length: 13\r\n\r\n"
    for _ in range(2):
        writer.write(request)
        await writer.drain()
        await wait_until(lambda: any(c.busy for c in api.server._web.connections))
        writer.write(body)
        status, _, _ = await answer_of(reader)
        assert status == 200
        await api.clock.advance(60)
    # The next head is timed again, from its first byte.
    writer.write(b"POST /th")
    await wait_until(lambda: all(c.begun for c in api.server._web.connections))
    await api.clock.advance(9)
    assert api.server.connections == 1
    await api.clock.advance(3)
    assert (await answer_of(reader))[0] == 408


async def test_a_handler_that_takes_long_is_not_a_slow_client(serve: Any, thing: Any, wait_until: Any) -> None:
    leave = asyncio.Event()
    entered = asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {"ok": True})

    api = await serve(thing("POST", handler=slow))
    reader, writer = await api.connect()
    writer.write(b"POST /things HTTP/1.1\r\n" + HEAD + b"\r\nPOST /things HTT")
    await entered.wait()
    await api.clock.advance(29)
    leave.set()
    assert (await answer_of(reader))[0] == 200


async def test_a_body_that_stops_arriving_is_answered_with_408(serve: Any, thing: Any, wait_until: Any) -> None:
    api = await serve(thing("POST", body=Thing))
    reader, writer = await api.connect()
    writer.write(b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
    await wait_until(lambda: any(c.busy for c in api.server._web.connections))
    await api.clock.advance(29)
    writer.write(b" ")
    await wait_until(lambda: len([t for t in api.clock._timers if t[2].callback is not None]) >= 2)
    await api.clock.advance(29)
    await api.clock.settle()
    await api.clock.advance(32)
    status, head, body = await answer_of(reader)
    assert (status, b"Connection: close" in head) == (408, True)
    assert b'"code":"BAD_REQUEST"' in body
    assert await reader.read() == b""


async def test_a_client_that_leaves_its_answer_unread_is_cut_off(serve: Any, thing: Any, wait_until: Any) -> None:
    async def large(_: Call) -> Reply:
        return Reply(200, b" " * 50_000_000)

    api = await serve(thing(handler=large))
    _, writer = await api.connect()
    writer.transport.pause_reading()
    writer.write(b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n")
    await wait_until(lambda: any(c.writing_paused for c in api.server._web.connections))
    await api.clock.advance(59)
    assert api.server.connections == 1
    await api.clock.advance(3)
    await wait_until(lambda: api.server.connections == 0)


@pytest.mark.parametrize(
    "rubbish",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET /things HTTP/9.9\r\n\r\n",
        b"GET /things HTTP/1.1\r\nbad header\r\n\r\n",
        b"GET /things HTTP/1.1\r\nX: " + b"a" * 9000 + b"\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n",
        b"GET /things HTTP/1.1\r\n" + b"".join(b"X-%d: 1\r\n" % n for n in range(200)) + b"\r\n",
        b"POST /things HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"POST /things HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /things HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_not_http_is_answered_with_a_problem_and_not_logged(
    serve: Any, thing: Any, rubbish: bytes, caplog: Any
) -> None:
    api = await serve(thing(), thing("POST"))
    reader, writer = await api.connect()
    with capture_logs() as logs:
        writer.write(rubbish)
        status, head, body = await answer_of(reader)
    assert status == 400
    assert b"Content-Type: application/problem+json" in head
    assert b'"code":"BAD_REQUEST"' in body
    assert await reader.read() == b""
    assert logs == []
    assert caplog.records == []


async def test_odd_targets_are_no_routes(serve: Any, thing: Any) -> None:
    api = await serve(thing(), thing("GET", "/things/{id}"))
    reader, writer = await api.connect()
    for target, status in (
        (b"//things", 404), (b"/things/%00", 404), (b"/things/%ff", 404), (b"/things/%C3%A4", 200),
        (b"/things?%ff=1", 200), (b"/things#x", 404), (b"/things/a%2Fb", 200), (b"/things/../things", 404),
    ):  # fmt: skip
        writer.write(b"GET " + target + b" HTTP/1.1\r\n" + HEAD + b"\r\n")
        got, _, body = await answer_of(reader)
        assert got == status, (target, body)


async def test_the_absolute_form_of_a_target_is_understood(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    reader, writer = await api.connect()
    writer.write(b"GET http://x/things?a=1 HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert (await answer_of(reader))[0] == 200


async def test_pipelined_requests_are_answered_in_order(serve: Any, thing: Any) -> None:
    async def handle(call: Call) -> Reply:
        return Reply(200, {"id": call.path["id"]})

    api = await serve(thing("GET", "/things/{id}", handler=handle))
    reader, writer = await api.connect()
    writer.write(b"".join(b"GET /things/%d HTTP/1.1\r\n" % n + HEAD + b"\r\n" for n in range(100)))
    for n in range(100):
        assert (await answer_of(reader))[2] == b'{"id":"%d"}' % n


async def test_an_old_client_keeps_its_connection_only_when_it_asks(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    reader, writer = await api.connect()
    writer.write(b"GET /things HTTP/1.0\r\nConnection: keep-alive\r\n" + HEAD + b"\r\n")
    status, head, _ = await answer_of(reader)
    assert (status, b"Connection: keep-alive" in head) == (200, True)
    writer.write(b"GET /things HTTP/1.0\r\n" + HEAD + b"\r\n")
    status, head, _ = await answer_of(reader)
    assert (status, b"Connection: close" in head) == (200, True)
    assert await reader.read() == b""


async def test_a_client_that_leaves_does_not_disturb_the_server(serve: Any, thing: Any, wait_until: Any) -> None:
    entered, leave, left = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        left.set()
        return Reply(200, {"ok": True})

    api = await serve(thing(handler=slow), thing("POST", body=Thing))
    _, writer = await api.connect()
    writer.write(b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n")
    await entered.wait()
    writer.transport.abort()
    leave.set()
    await left.wait()  # the work is finished all the same
    _, writer = await api.connect()
    writer.write(b"POST /things HTTP/1.1\r\n" + HEAD + b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{")
    with capture_logs() as logs:
        await wait_until(lambda: any(c.busy for c in api.server._web.connections))
        writer.transport.abort()
        await wait_until(lambda: api.server.connections == 0)
    assert logs == []
    async with api.client.post("/things", json={}) as answer:
        assert answer.status == 200


async def test_stopping_lets_running_requests_finish_and_takes_no_new_ones(serve: Any, thing: Any) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {"ok": True})

    api = await serve(thing(handler=slow), thing("POST"))
    idle_reader, idle_writer = await api.connect()
    idle_writer.write(b"POST /things HTTP/1.1\r\n" + HEAD + b"\r\n")
    assert (await answer_of(idle_reader))[0] == 200
    port = api.server.port
    running = asyncio.ensure_future(api.client.get("/things"))
    await entered.wait()
    stopping = asyncio.ensure_future(api.server.stop())
    assert await idle_reader.read() == b"", "an idle connection is closed at once"
    with pytest.raises(aiohttp.ClientConnectionError):
        await api.client.get(f"http://127.0.0.1:{port}/things")
    assert not stopping.done()
    leave.set()
    async with await running as answer:
        assert (answer.status, await answer.json()) == (200, {"ok": True})
        assert answer.headers["Connection"] == "close"
    await stopping
    await api.server.stop()
    assert api.server.connections == 0


@pytest.mark.parametrize("in_time", [True, False])
async def test_stopping_waits_for_a_request_whose_client_has_left_and_leaves_nothing_of_it(
    serve: Any, thing: Any, wait_until: Any, monkeypatch: pytest.MonkeyPatch, in_time: bool
) -> None:
    entered, leave, ended = asyncio.Event(), asyncio.Event(), list[str]()

    async def slow(_: Call) -> Reply:
        entered.set()
        try:
            await leave.wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise
        ended.append("done")
        return Reply(200)

    monkeypatch.setattr(connection, "_ENDING_SECONDS", 0.01)
    api = await serve(thing(handler=slow))
    if not in_time:  # nor when its seconds are over
        monkeypatch.setattr(api.server, "_answer_seconds", -0.9)  # and one more
        monkeypatch.setattr(api.server._dispatcher, "hurry", lambda _: None)
    _, writer = await api.connect()
    writer.write(b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n")
    await entered.wait()
    writer.transport.abort()
    await wait_until(lambda: api.server.limits.open == 0)
    stopping = asyncio.ensure_future(api.server.stop())
    if in_time:
        await asyncio.wait({stopping}, timeout=0.2)
        assert not stopping.done()
        leave.set()
    await stopping
    await wait_until(lambda: ended == ["done" if in_time else "cancelled"])


@pytest.mark.parametrize("in_time", [True, False])
async def test_stopping_lets_large_pages_end_and_gives_no_end_to_those_that_do_not(
    serve: Any, thing: Any, wait_until: Any, in_time: bool
) -> None:
    leave, closed = asyncio.Event(), []

    async def page() -> Any:
        try:
            yield b'{"items":['
            await leave.wait()
            yield b"]}"
        finally:
            closed.append(True)

    async def handle(_: Call) -> Reply:
        return StreamReply(200, page(), content_type="application/json")

    api = await serve(thing(handler=handle))
    async with api.client.get("/things") as answer:
        assert await answer.content.readany() == b'{"items":['
        await api.clock.advance(120)  # it may be read for as long as it takes
        connections = api.server._web.connections
        stopping = asyncio.ensure_future(api.server.stop())
        await wait_until(lambda: all(c.ending for c in connections))
        await api.clock.advance(ANSWER_SECONDS - 1)
        assert not closed
        if in_time:
            leave.set()
            assert await answer.content.read() == b"]}"
        else:
            await api.clock.advance(1)
            with pytest.raises(aiohttp.ClientPayloadError):
                await answer.content.read()
    await stopping
    assert closed == [True]


async def test_a_server_starts_again_and_start_twice_is_start_once(serve: Any, thing: Any) -> None:
    api = await serve(thing())
    port = api.server.port
    await api.server.start()
    assert api.server.port == port
    with pytest.raises(OSError, match="address already in use"):
        await serve(thing(), port=port)


async def test_a_socket_file_serves_too(serve: Any, thing: Any, tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    await serve(thing(), socket_path=path)
    async with (
        aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as client,
        client.get("http://x/things", headers={"Authorization": "Bearer good"}) as answer,
    ):
        assert answer.status == 200


async def test_a_large_page_whose_first_piece_does_not_come_before_the_stop_has_no_end_and_no_other_answer(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    async def page() -> Any:
        await asyncio.get_running_loop().create_future()
        yield b"never"

    async def handle(_: Call) -> Reply:
        return StreamReply(200, page(), content_type="application/json")

    api = await serve(thing(handler=handle))
    reader, writer = await api.connect()
    writer.write(b"GET /things HTTP/1.1\r\n" + HEAD + b"\r\n")
    await wait_until(lambda: any(c.busy for c in api.server._web.connections))
    connections = api.server._web.connections
    stopping = asyncio.ensure_future(api.server.stop())
    await wait_until(lambda: all(c.ending for c in connections))
    await api.clock.advance(ANSWER_SECONDS)
    head, _, body = (await reader.read()).partition(b"\r\n\r\n")
    await stopping
    assert (head.split()[1], body) == (b"200", b"")
