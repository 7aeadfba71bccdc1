"""The time of an answer (C31): whatever a request waits for, its caller hears 503 when it is over."""

import asyncio
from typing import Any

import pytest

from recado.domain.core.errors import Unavailable
from recado.engine.turns import turns
from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.routes.service import service
from recado.http.routes.service.service import service_routes
from recado.http.wire.reply import Reply


class Thing(ApiModel):
    """A body."""

    name: str


class Hangs:
    """A handler that waits for ever; `ended`: how it was let go."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.ended: BaseException | None = None

    async def __call__(self, _: Call) -> Reply:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        except BaseException as error:
            self.ended = error
            raise
        return Reply(200)


@pytest.mark.parametrize(("method", "seconds"), [("GET", 10), ("HEAD", 10), ("POST", 30), ("DELETE", 30)])
async def test_a_request_that_waits_too_long_is_given_up(serve: Any, thing: Any, method: str, seconds: float) -> None:
    handler = Hangs()
    api = await serve(thing("GET" if method == "HEAD" else method, handler=handler))
    asked = asyncio.ensure_future(api.client.request(method, "/things"))
    await handler.entered.wait()
    await api.clock.advance(seconds - 0.1)
    assert handler.ended is None
    await api.clock.advance(0.1)
    async with await asked as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        if method != "HEAD":
            assert (await answer.json(content_type=None))["code"] == "SERVICE_UNAVAILABLE"
    assert isinstance(handler.ended, asyncio.CancelledError)


async def test_long_work_gives_way_to_a_request_until_it_is_answered(serve: Any, thing: Any) -> None:
    handler = Hangs()
    api = await serve(thing("GET", handler=handler))
    asked = asyncio.ensure_future(api.client.get("/things"))
    await handler.entered.wait()
    assert turns.served == 1
    await api.clock.advance(10)
    async with await asked as answer:
        assert answer.status == 503
    assert turns.served == 0


async def test_each_request_has_its_own_time(serve: Any, thing: Any) -> None:
    handlers = [Hangs(), Hangs()]
    api = await serve(*(thing(path=f"/things{place}", handler=each) for place, each in enumerate(handlers)))
    asked = []
    for place, handler in enumerate(handlers):
        asked.append(asyncio.ensure_future(api.client.get(f"/things{place}")))
        await handler.entered.wait()
        await api.clock.advance(4)
    await api.clock.advance(2)
    async with await asked[0] as answer:
        assert answer.status == 503
    assert handlers[1].ended is None
    await api.clock.advance(4)
    async with await asked[1] as answer:
        assert answer.status == 503


async def test_the_next_request_of_a_connection_is_served_after_one_that_was_given_up(serve: Any, thing: Any) -> None:
    handler = Hangs()
    api = await serve(thing(path="/hangs", handler=handler), thing())
    asked = asyncio.ensure_future(api.client.get("/hangs"))
    await handler.entered.wait()
    await api.clock.advance(10)
    async with await asked as answer:
        assert answer.status == 503
    for _ in range(3):
        async with api.client.get("/things") as answer:
            assert answer.status == 200
        await api.clock.advance(20)


async def test_the_time_begins_when_the_body_is_there(serve: Any, thing: Any, wait_until: Any) -> None:
    handler = Hangs()
    api = await serve(thing("POST", handler=handler, body=Thing))
    reader, writer = await api.connect()
    body = b'{"name": "a"}'
    writer.write(
        b"POST /things HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    for byte in body[:2]:
        writer.write(bytes([byte]))
        await writer.drain()
        await wait_until(lambda: api.server.connections == 1)
        await api.clock.advance(20)
    writer.write(body[2:])
    await handler.entered.wait()
    await api.clock.advance(29)
    assert handler.ended is None
    await api.clock.advance(1)
    assert b" 503 " in await reader.readline()


async def test_a_handlers_own_cancellations_are_its_own(serve: Any, thing: Any) -> None:
    async def give_up(_: Call) -> Reply:
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            raise Unavailable("Enough.") from None
        return Reply(200)

    api = await serve(thing(handler=give_up))
    async with api.client.get("/things") as answer:
        assert (await answer.json(content_type=None))["detail"] == "Enough."


async def test_readiness_does_not_wait_for_a_silent_database(serve: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "READY_WITHIN", 0.01)

    async def silent() -> dict[str, bool]:
        await asyncio.Event().wait()
        return {}

    api = await serve(*service_routes((), ready=silent, base_url="https://api.example.com", version="1"))
    async with api.client.get("/readyz") as answer:
        assert answer.status == 503
        assert (await answer.json(content_type=None))["meta"] == {"checks": {"database": False}}
