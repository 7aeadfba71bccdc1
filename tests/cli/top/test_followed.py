"""The stream that `recado top` follows: it comes back where it was, and says since when it hears nothing (C34.1)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web
from tests.waiting import until

from recado.cli.api_calls import CallRefused, caller
from recado.cli.errors import CommandError
from recado.cli.top import followed
from recado.cli.top.followed import FollowedStream

Act = Callable[[web.Request, web.StreamResponse], Any]


@dataclass
class Scripted:
    """A stream. `acts`: what each request gets, the last one over and over; `asked`: the ids that were shown."""

    url: str = ""
    acts: list[Any] = field(default_factory=list)
    asked: list[str | None] = field(default_factory=list)

    async def stream(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.headers.get("Last-Event-ID"))
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        if isinstance(act, int):
            return web.json_response({"code": "NO", "detail": "not now"}, status=act, headers={"Retry-After": "0"})
        answer = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await answer.prepare(request)
        await answer.write(act)
        return answer


async def page(_: web.Request) -> web.Response:
    return web.Response(text="<p>Welcome</p>", content_type="text/html")


@pytest.fixture
async def service(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scripted]:
    monkeypatch.setattr(followed, "_FIRST_PAUSE", 0.01)
    monkeypatch.setattr(followed, "_LONGEST_PAUSE", 0.02)
    scripted, application = Scripted(), web.Application()
    application.router.add_get("/v2/ops/stream", scripted.stream)
    application.router.add_get("/", page)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scripted.url = f"{site.name}/v2/ops/stream"
    yield scripted
    await runner.cleanup()


async def test_it_comes_back_with_the_last_id_and_tells_what_came(service: Scripted) -> None:
    service.acts = [b"event: numbers\ndata: [1]\nid: f-1\n\nevent: numbers\ndata: [2]", 503, b"data: [3]\nid: f-2\n\n"]
    heard: list[tuple[str, Any]] = []
    async with caller("key") as session:
        stream = FollowedStream(session, service.url, lambda kind, data: heard.append((kind, data)))
        task = asyncio.create_task(stream.follow())
        await until(lambda: len(service.asked) >= 4, "it came back", every=0.01)
        task.cancel()
        await asyncio.wait([task])
    assert service.asked[:4] == [None, "f-1", "f-1", "f-2"]
    assert [each for each in heard if each[0]][:2] == [("numbers", [1]), ("message", [3])]


async def test_a_key_that_is_refused_ends_it_and_so_does_a_service_that_is_not_there(service: Scripted) -> None:
    async with caller("key") as session:
        for acts, refused in (([403], "refused with 403 NO: not now"), ([b"data: 1\n\n", 401], "refused with 401")):
            service.acts = list(acts)
            with pytest.raises(CallRefused, match=refused):
                await FollowedStream(session, service.url, lambda *_: None).follow()
        service.acts = [503]
        with pytest.raises(CallRefused, match="503"):  # it has never said anything
            await FollowedStream(session, service.url, lambda *_: None).follow()
        with pytest.raises(CommandError, match=r"nothing answers at 127\.0\.0\.1:1"):
            await FollowedStream(session, "http://127.0.0.1:1/v2/ops/stream", lambda *_: None).follow()


async def test_a_page_that_is_no_stream_is_told(service: Scripted) -> None:
    async with caller("key") as session:
        with pytest.raises(CommandError, match="is --url the address of Recado"):
            await FollowedStream(session, service.url.replace("/v2/ops/stream", "/"), lambda *_: None).follow()


@pytest.mark.parametrize(
    ("missing", "later", "silent"),
    [(None, 19.0, None), (None, 21.0, 21.0), ("gone", 4.0, None), ("gone", 6.0, 6.0)],
)
async def test_it_is_out_of_date_after_a_while_without_a_word(
    missing: str | None, later: float, silent: float | None
) -> None:
    clock = 100.0
    async with caller("key") as session:
        stream = FollowedStream(session, "http://127.0.0.1:1", lambda *_: None, now=lambda: clock)
        assert stream.silent() is None
        stream.heard_at, stream.missing = clock, missing
        clock += later
        assert stream.silent() == silent
