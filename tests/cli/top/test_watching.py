"""`recado top` in a terminal, where the stream tells of one number and the list of two (C34.1)."""

import asyncio
import signal
from collections.abc import AsyncIterator

import orjson
import pytest
from aiohttp import web
from tests.cli.top.states import number
from tests.terminal import SEEN_WITHIN, Terminal

FIRST, SECOND = number(1), number(2)
SUMS = dict.fromkeys(("sentLastSecond", "sentLastMinute", "due", "scheduled", "inFlight"), 0) | {"numbers": 2}


def event(kind: str, *items: object) -> bytes:
    told = {"items": items, "gone": [], "whole": True}
    return f"event: {kind}\ndata: {orjson.dumps(told).decode()}\n\n".encode()


@pytest.fixture
async def service() -> AsyncIterator[str]:
    over = asyncio.Event()

    async def stream(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(event("numbers", FIRST) + event("throughput", SUMS))
        await over.wait()
        return answer

    async def numbers(_: web.Request) -> web.Response:
        return web.json_response({"items": [FIRST, SECOND]})

    async def pause(_: web.Request) -> web.Response:
        problem = {"code": "SCOPE_REQUIRED", "detail": "This operation needs the scope ops:write."}
        return web.json_response(problem, status=403)

    application = web.Application()
    application.router.add_get("/v2/ops/stream", stream)
    application.router.add_get("/v2/ops/numbers", numbers)
    application.router.add_post("/v2/ops/numbers/{id}/pause", pause)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0]
    yield f"http://{host}:{port}"
    over.set()
    await runner.cleanup()


async def test_it_finds_what_the_stream_does_not_tell_of_and_leaves_the_terminal_as_it_was(service: str) -> None:
    async with Terminal() as terminal:
        process = await terminal.run("top", "--url", service, RECADO_API_KEY="key")
        await terminal.shows("1–2 of 2 numbers", "live: 1 of 2")
        terminal.type("/0002\r")
        await terminal.shows("1–1 of 1 number", SECOND["displayPhone"])
        terminal.type("py")
        await terminal.shows("pause: refused with 403 SCOPE_REQUIRED: This operation needs the scope ops:write")
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), SEEN_WITHIN) == 128 + signal.SIGTERM
        assert terminal.now == terminal.before
