"""A connection whose client was answered before it had sent all of its body (C31)."""

import asyncio
from typing import Any

from tests.captured import capture_logs

from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.wire.connection import LINGERING_SECONDS
from recado.http.wire.reply import Reply

TOO_LARGE = (
    b"POST /things HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\n"
    b"Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n{"
)


class Thing(ApiModel):
    name: str = "x"


async def test_stopping_does_not_wait_for_the_rest_of_a_body_that_was_refused(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def slow(_: Call) -> Reply:
        entered.set()
        await leave.wait()
        return Reply(200, {"ok": True})

    api = await serve(thing(handler=slow), thing("POST", body=Thing, body_limit=1000))
    running = asyncio.ensure_future(api.client.get("/things"))
    await entered.wait()
    reader, writer = await api.connect()
    writer.write(TOO_LARGE)
    assert (await reader.readline()).split()[1] == b"413"
    await wait_until(lambda: any(c.rest for c in api.server._web.connections))
    stopping = asyncio.ensure_future(api.server.stop())
    async with asyncio.timeout(LINGERING_SECONDS / 2):
        await reader.read()  # to the end: the connection is closed
    assert not stopping.done()
    leave.set()
    async with await running as answer:
        assert answer.status == 200
    await stopping


async def test_a_client_that_leaves_amid_a_refused_body_is_forgotten_at_once(
    serve: Any, thing: Any, wait_until: Any
) -> None:
    api = await serve(thing("POST", body=Thing, body_limit=1000))
    reader, writer = await api.connect()
    writer.write(TOO_LARGE)
    assert (await reader.readline()).split()[1] == b"413"
    await wait_until(lambda: any(c.rest for c in api.server._web.connections))
    (connection,) = api.server._web.connections
    task = connection._task_handler
    with capture_logs() as logs:
        writer.close()
        async with asyncio.timeout(LINGERING_SECONDS / 2):
            await task
    assert logs == []
