"""The end of a server while bodies arrive (C31)."""

import asyncio
from typing import Any

import pytest
from tests.http.wire.test_server import HEAD, Thing, answer_of

from recado.http.api.call import Call
from recado.http.server import ANSWER_SECONDS, HURRIED_SECONDS
from recado.http.wire.reply import Reply

JSON = b"Content-Type: application/json\r\n"
BODY = b'{"name": "y"}' + b" " * 50_000
FRAMED = {
    b"Content-Length: %d\r\n" % len(BODY): BODY,
    b"Transfer-Encoding: chunked\r\n": b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
}


class Begun:
    """A server that stops amid a body; `handled`: the paths of the requests that reached a handler."""

    def __init__(self) -> None:
        self.handled: list[str] = []

    async def handle(self, call: Call) -> Reply:
        self.handled.append(call.target)
        return Reply(200, {"ok": True})

    async def stop_amid(
        self, serve: Any, thing: Any, wait_until: Any, path: bytes, head: bytes, part: bytes, *, hurried: bool = False
    ) -> Any:
        self.api = await serve(
            thing("POST", handler=self.handle, body=Thing),
            thing("POST", "/file", handler=self.handle, spooled={"application/json": None}),
        )
        reader, self.writer = await self.api.connect()
        self.writer.write(b"POST %b HTTP/1.1\r\n" % path + HEAD + JSON + head + b"\r\n" + part)
        await wait_until(lambda: any(c.busy for c in self.api.server._web.connections))
        connections = self.api.server._web.connections
        if hurried:
            self.api.server.hurry()
        self.stopping = asyncio.ensure_future(self.api.server.stop())
        await wait_until(lambda: all(c.ending for c in connections))
        return reader


@pytest.mark.parametrize("path", [b"/things", b"/file"])
@pytest.mark.parametrize("head", FRAMED)
async def test_a_body_that_ends_after_the_stop_began_is_answered_and_nothing_behind_it(
    serve: Any, thing: Any, wait_until: Any, path: bytes, head: bytes
) -> None:
    begun, body = Begun(), FRAMED[head]
    reader = await begun.stop_amid(serve, thing, wait_until, path, head, body[:100])
    begun.writer.write(body[100:] + b"POST /things HTTP/1.1\r\n" + HEAD + JSON + b"Content-Length: 2\r\n\r\n{}")
    status, answer, _ = await answer_of(reader)
    assert (status, b"Connection: close" in answer) == (200, True)
    assert await reader.read() == b""
    await begun.stopping
    assert begun.handled == [path.decode()]


@pytest.mark.parametrize("path", [b"/things", b"/file"])
@pytest.mark.parametrize("head", FRAMED)
async def test_a_body_that_does_not_end_in_time_is_answered_with_503(
    serve: Any, thing: Any, wait_until: Any, path: bytes, head: bytes
) -> None:
    begun = Begun()
    reader = await begun.stop_amid(serve, thing, wait_until, path, head, FRAMED[head][:100])
    await begun.api.clock.advance(ANSWER_SECONDS - 1)
    assert not begun.stopping.done()
    await begun.api.clock.advance(1)
    status, answer, _ = await answer_of(reader)
    assert (status, b"Connection: close" in answer) == (503, True)
    await begun.stopping
    assert begun.handled == []


async def test_a_server_that_is_to_hurry_gives_what_is_under_way_a_second(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    begun = Begun()
    reader = await begun.stop_amid(serve, thing, wait_until, b"/things", b"Content-Length: 9\r\n", b"{", hurried=True)
    await begun.api.clock.advance(HURRIED_SECONDS)
    assert (await answer_of(reader))[0] == 503
    await begun.stopping
    assert begun.handled == []
