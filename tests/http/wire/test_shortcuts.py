"""Shortcuts: links that lead on before anything else is made of the request, and what goes the usual way (0051)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from recado.domain.core.errors import Unavailable
from recado.http.api.call import Call
from recado.http.api.route import Access
from recado.http.api.shortcuts import LOOK_SECONDS
from recado.http.wire.reply import Reply

HERE = "https://example.com/here"


class Links:
    """A route with a shortcut. `handled`: what went the usual way; `asked`: look-ups, by code."""

    def __init__(self) -> None:
        self.handled: list[str] = []
        self.agents: list[str | None] = []
        self.asked: dict[str, asyncio.Future[str | None]] = {}

    def route(self, thing: Any, **options: Any) -> Any:
        return thing(
            "GET", "/l/{code}", handler=self.handle, shortcut=self.lead, access=Access.PUBLIC, scope=None,
            rate_class="public", **options,
        )  # fmt: skip

    async def handle(self, call: Call) -> Reply:
        self.handled.append(call.path["code"])
        return Reply(404) if call.path["code"].startswith("none") else Reply(302, headers={"Location": HERE})

    def lead(self, code: str, agent: str | None) -> str | Awaitable[str | None] | None:
        self.agents.append(agent)
        if code == "busy":
            raise Unavailable
        if code.startswith("later"):
            self.asked[code] = asyncio.get_running_loop().create_future()
            return self.asked[code]
        return None if code.startswith("none") else f"{HERE}/{code}"


@pytest.fixture
def links() -> Links:
    return Links()


async def opened(api: Any, path: str, method: str = "GET", **more: Any) -> tuple[int, str | None]:
    async with api.client.request(method, path, allow_redirects=False, **more) as answer:
        return answer.status, answer.headers.get("Location")


async def test_an_answer_at_once_looks_as_any_other(serve: Any, thing: Any, links: Links) -> None:
    api = await serve(links.route(thing))
    async with api.client.get("/l/a?x=/y", allow_redirects=False) as answer:
        assert (answer.status, answer.headers["Location"], await answer.read()) == (302, f"{HERE}/a", b"")
    assert links.handled == []
    async with api.client.head("/l/a", allow_redirects=False) as usual:
        assert links.handled == ["a"]
        assert list(usual.headers) == list(answer.headers)
        own = ("Location", "X-Request-ID")
        assert [usual.headers[name] for name in usual.headers if name not in own] == [
            answer.headers[name] for name in answer.headers if name not in own
        ]
        assert usual.headers["X-Request-Id"] != answer.headers["X-Request-Id"]


async def test_an_address_cannot_end_its_line(
    serve: Any, thing: Any, links: Links, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "lead", lambda *_: "https://example.com/\r\nSet-Cookie: a=b")
    api = await serve(links.route(thing))
    assert await opened(api, "/l/a") == (302, "https://example.com/??Set-Cookie: a=b")


async def test_what_is_not_known_yet_is_answered_when_it_is(
    serve: Any, thing: Any, links: Links, wait_until: Any
) -> None:
    api = await serve(links.route(thing), thing())
    found, nothing = (asyncio.ensure_future(opened(api, f"/l/{code}")) for code in ("later1", "later2"))
    await wait_until(lambda: len(links.asked) == 2)
    async with api.client.get("/things") as answer:
        assert answer.status == 200
    links.asked["later1"].set_result(f"{HERE}/late")
    links.asked["later2"].set_result(None)
    assert [await found, await nothing] == [(302, f"{HERE}/late"), (302, HERE)]
    assert links.handled == ["later2"]


async def test_a_look_up_that_fails_or_takes_too_long_is_left_to_the_usual_way(
    serve: Any, thing: Any, links: Links, wait_until: Any
) -> None:
    api = await serve(links.route(thing))
    assert await opened(api, "/l/busy") == (302, HERE)
    failing = asyncio.ensure_future(opened(api, "/l/later1"))
    await wait_until(lambda: "later1" in links.asked)
    links.asked["later1"].set_exception(Unavailable())
    assert await failing == (302, HERE)
    slow = asyncio.ensure_future(opened(api, "/l/later2"))
    await wait_until(lambda: "later2" in links.asked)
    await api.clock.advance(LOOK_SECONDS)
    assert await slow == (302, HERE)
    assert links.handled == ["busy", "later1", "later2"]
    assert await opened(api, "/l/a") == (302, f"{HERE}/a")  # on a connection that one of them was answered on


@pytest.mark.parametrize(
    "how",
    [
        {"method": "HEAD"},
        {"data": b"x"},
        {"headers": {"Connection": "close"}},
        {"headers": {"Connection": "Upgrade", "Upgrade": "websocket"}},
        {"path": "/l/none"},
    ],
    ids=str,
)
async def test_what_is_not_plain_goes_the_usual_way(serve: Any, thing: Any, links: Links, how: Any) -> None:
    api = await serve(links.route(thing))
    await opened(api, **{"path": "/l/a", **how})
    assert len(links.handled) == 1


async def test_http_1_0_goes_the_usual_way(serve: Any, thing: Any, links: Links) -> None:
    api = await serve(links.route(thing))
    reader, writer = await api.connect()
    writer.write(b"GET /l/a HTTP/1.0\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 302 ")
    assert links.handled == ["a"]


async def test_who_opens_what_leads_nowhere_gets_no_shortcut_either(serve: Any, thing: Any, links: Links) -> None:
    api = await serve(links.route(thing))
    for _ in range(3):
        assert await opened(api, "/l/none") == (404, None)
    assert (await opened(api, "/l/a"))[0] == 429
    await api.clock.advance(1.0)
    assert await opened(api, "/l/a") == (302, f"{HERE}/a")


async def test_addresses_that_open_links_take_no_memory(serve: Any, thing: Any, links: Links) -> None:
    api = await serve(links.route(thing))
    await opened(api, "/l/a")
    assert not api.server._dispatcher._limiter._buckets


async def test_requests_that_were_sent_ahead_are_answered_in_their_order(
    serve: Any, thing: Any, links: Links, wait_until: Any
) -> None:
    api = await serve(links.route(thing))
    reader, writer = await api.connect()
    paths = (b"/l/a", b"/l/later", b"/l/none", b"/l/b")
    writer.write(b"".join(b"GET %b HTTP/1.1\r\nHost: x\r\n\r\n" % path for path in paths))
    await wait_until(lambda: "later" in links.asked)
    links.asked["later"].set_result(f"{HERE}/later")
    heads = [await reader.readuntil(b"\r\n\r\n") for _ in paths]
    assert [head.partition(b"Location: ")[2].partition(b"\r\n")[0] for head in heads] == [
        f"{HERE}/a".encode(), f"{HERE}/later".encode(), b"", f"{HERE}/b".encode(),
    ]  # fmt: skip


async def test_bytes_of_a_program_that_are_no_text_are_replaced(serve: Any, thing: Any, links: Links) -> None:
    api = await serve(links.route(thing))
    reader, writer = await api.connect()
    writer.write(b"GET /l/a HTTP/1.1\r\nHost: x\r\nUser-Agent: \xff\r\n\r\nGET /l/a HTTP/1.1\r\nHost: x\r\n\r\n")
    for _ in range(2):
        await reader.readuntil(b"\r\n\r\n")
    assert links.agents == ["\ufffd", None]


async def test_who_leaves_during_a_look_up_keeps_nothing(serve: Any, thing: Any, links: Links, wait_until: Any) -> None:
    api = await serve(links.route(thing))
    _, writer = await api.connect()
    writer.write(b"GET /l/later HTTP/1.1\r\nHost: x\r\n\r\n")
    await wait_until(lambda: "later" in links.asked)
    writer.transport.abort()
    [connection] = api.server._web.connections
    await wait_until(lambda: connection.transport is None)
    links.asked["later"].set_result(None)
    await wait_until(lambda: not api.server.connections)
    assert await opened(api, "/l/a") == (302, f"{HERE}/a")
    assert links.handled == []


async def test_a_stop_lets_look_ups_end_their_connections(
    serve: Callable[..., Awaitable[Any]], thing: Any, links: Links, wait_until: Any
) -> None:
    api = await serve(links.route(thing))
    reader, writer = await api.connect()
    writer.write(b"GET /l/later HTTP/1.1\r\nHost: x\r\n\r\n")
    await wait_until(lambda: "later" in links.asked)
    stopping = asyncio.ensure_future(api.server.stop())
    await wait_until(lambda: all(each.ending for each in api.server._web.connections) if api.server._web else True)
    links.asked["later"].cancelled() or links.asked["later"].set_result(HERE)
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"HTTP/1.1 302 " in head
    assert b"\r\nConnection: close\r\n" in head
    assert await reader.read() == b""
    await stopping


async def test_while_several_ask_a_link_is_opened_when_its_turn_has_come(
    serve: Any, thing: Any, links: Links, wait_until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    api = await serve(links.route(thing))
    turns: dict[str, asyncio.Future[None]] = {}

    def wait(party: str, *, stranger: bool) -> asyncio.Future[None]:
        assert stranger
        turns[party] = asyncio.get_running_loop().create_future()
        return turns[party]

    with monkeypatch.context() as patched:
        patched.setattr(api.server._dispatcher._turns, "wait", wait)
        opening = asyncio.ensure_future(opened(api, "/l/a"))
        await wait_until(lambda: bool(turns))
        assert links.agents == []
        [(party, turn)] = turns.items()
        turn.set_result(None)
        assert await opening == (302, f"{HERE}/a")
    assert party.endswith("127.0.0.1")
    assert links.handled == []
