"""Bodies that come slowly: a small one costs no connection to a cell before it is whole, and a large one flows."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson
import pytest
from tests.entry.conftest import Two, bearer, between
from tests.entry.test_entry import refusing
from tests.waiting import until

from recado.entry import cell_finder, passed_body
from recado.entry import parts as entry_parts_file

CHUNKED = "Transfer-Encoding: chunked"


class Slow:
    """A request whose body comes when it is told to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, content: bytes) -> None:
        self._writer.write(content)

    async def status(self) -> int:
        async with asyncio.timeout(60):
            return int((await self._reader.readuntil(b"\r\n\r\n")).split()[1])

    async def answer(self) -> Any:
        assert await self.status() == 200
        async with asyncio.timeout(60):
            return orjson.loads(await self._reader.read())


@asynccontextmanager
async def slow(two: Two, token: str, line: str, method: str = "POST") -> AsyncIterator[Slow]:
    """`line`: of the head, which says how the body is framed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
    head = f"{method} /slow HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n{line}\r\n\r\n"
    writer.write(head.encode())
    try:
        yield Slow(reader, writer)
    finally:
        writer.transport.abort()


@pytest.fixture
def others_are_answered(two: Two, client: aiohttp.ClientSession) -> Callable[[str], Any]:
    """Asks for something else: what was sent before is under way then."""

    async def ask(token: str) -> None:
        async with client.get(f"{two.url}/other", headers=bearer(token)) as answer:
            assert answer.status == 200

    return ask


@pytest.mark.parametrize("method", ["POST", "PUT"])
async def test_a_small_body_that_comes_slowly_reaches_its_cell_when_it_is_whole(
    two: Two, others_are_answered: Callable[[str], Any], method: str
) -> None:
    _, token = await two.a.organization()
    cases = {
        "Content-Length: 6": (b"abc", b"def"),
        "Content-Length: 6\r\nExpect: 100-continue": (b"abc", b"def"),
        CHUNKED: (b"3\r\nabc\r\n", b"3\r\ndef\r\n0\r\n\r\n"),
    }
    for line, (begin, end) in cases.items():
        two.a.targets.clear()
        async with slow(two, token, line, method) as request:
            if "Expect" in line:
                assert await request.status() == 100
            request.send(begin)
            await others_are_answered(token)
            assert two.a.targets == ["/other"]
            request.send(end)
            said = await request.answer()
            assert (said["size"], said["headers"]["Content-Length"]) == (6, "6")
            assert not said["headers"].keys() & {"Transfer-Encoding", "Expect"}


@pytest.mark.parametrize("line", ["Content-Length: 200000", CHUNKED])
async def test_a_large_body_flows_when_its_first_part_is_there(two: Two, line: str) -> None:
    _, token = await two.a.organization()
    part = b"x" * 100_000
    sent = part if line != CHUNKED else b"%x\r\n%s\r\n" % (len(part), part)
    async with slow(two, token, line) as request:
        request.send(sent)
        await until(lambda: two.a.targets == ["/slow"], "the cell is asked")
        request.send(sent + (b"0\r\n\r\n" if line == CHUNKED else b""))
        assert (await request.answer())["size"] == 200_000


async def test_a_body_that_takes_too_long_flows_as_it_comes(two: Two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passed_body, "HELD_SECONDS", 0.05)
    _, token = await two.a.organization()
    async with slow(two, token, "Content-Length: 6") as request:
        request.send(b"ab")
        await until(lambda: two.a.targets == ["/slow"], "the cell is asked")
        request.send(b"cd")
        request.send(b"ef")
        said = await request.answer()
        assert (said["size"], said["headers"]["Content-Length"]) == (6, "6")


async def test_who_fills_his_part_of_what_is_held_has_the_rest_passed_on_as_it_comes(
    cell_urls: dict[str, str], client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entry_parts_file, "HELD_HERE", 4_000)  # a quarter of it, and an eighth of that for small ones
    async with between(dict(cell_urls)) as two:
        _, token = await two.a.organization()
        async with slow(two, token, "Content-Length: 2000") as request:
            request.send(b"x" * 1_000)
            async with client.get(f"{two.url}/other", headers=bearer(token)) as answer:
                assert answer.status == 200
            async with slow(two, token, "Content-Length: 2000") as further:
                further.send(b"x" * 1_000)
                await until(lambda: two.a.targets == ["/other", "/slow"], "the further one is passed on")
                further.send(b"x" * 1_000)
                assert (await further.answer())["size"] == 2_000
        # He has left, and so has what was held of it.
        two.a.targets.clear()
        async with slow(two, token, "Content-Length: 2000") as request:
            request.send(b"x" * 1_000)
            async with client.get(f"{two.url}/other", headers=bearer(token)) as answer:
                assert answer.status == 200
            assert two.a.targets == ["/other"]


async def test_who_moves_while_a_body_is_held_is_asked_for_anew(
    two: Two, others_are_answered: Callable[[str], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_finder, "KEPT", 0.0)
    organization_id, token = await two.a.organization()
    async with slow(two, token, "Content-Length: 6") as request:
        request.send(b"abc")
        await others_are_answered(token)
        await two.move(organization_id)
        two.a.answers = refusing
        request.send(b"def")
        assert (await request.answer())["size"] == 6
    assert (two.a.targets, two.b.targets) == (["/other"], ["/slow"])


async def test_a_small_body_that_the_left_cell_has_goes_on_to_the_one_that_serves_it(
    two: Two, client: aiohttp.ClientSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cell_finder, "CERTAIN", 0.0)
    organization_id, token = await two.a.organization()
    async with client.get(f"{two.url}/numbers", headers=bearer(token)) as answer:
        assert answer.headers["X-From"] == "a"
    await two.move(organization_id)
    two.a.answers = refusing
    async with client.post(f"{two.url}/messages", headers=bearer(token), data=b"x" * 100) as answer:
        assert (answer.status, answer.headers["X-From"]) == (200, "b")
        assert (await answer.json())["size"] == 100


async def test_an_answer_before_the_end_of_a_body_that_flows_leaves_the_connection_to_its_client(
    two: Two, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passed_body, "HELD_SECONDS", 0.05)
    _, token = await two.a.organization()
    two.a.answers = refusing
    reader, writer = await asyncio.open_connection("127.0.0.1", two.port)
    head = f"Host: x\r\nAuthorization: Bearer {token}\r\n"
    writer.write(f"POST /slow HTTP/1.1\r\n{head}Content-Length: 6\r\n\r\nabc".encode())
    async with asyncio.timeout(60):
        assert (await reader.readuntil(b"\r\n")).split()[1] == b"401"
        writer.write(f"defGET /next HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode())
        assert b"HTTP/1.1 401 " in await reader.read()
    writer.close()
    assert two.a.targets == ["/slow", "/next"]
