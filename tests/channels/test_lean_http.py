"""What a send's connections do beyond one call; what becomes of a call is tested through the adapters.

The provider is a real server on this machine.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from yarl import URL

from recado.channels.http import connection_pool
from recado.channels.http.answer import Answer, Lost, NotSent
from recado.channels.http.http_connection import LONGEST_READ
from recado.channels.http.lean_http import LeanHttp
from recado.engine.clock import VirtualClock

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
HERE = "127.0.0.1"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
TAKEN = Answer(200, None, b"{}", True)


class Provider:
    """Counts connections and requests; answers each request with `answer` while `answers` is set."""

    def __init__(self) -> None:
        self.port = 0
        self.answer = ANSWER
        self.answers = asyncio.Event()
        self.answers.set()
        self.connections = self.requests = self.ended = 0
        self.changed = asyncio.Condition()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.descriptor: int = writer.get_extra_info("socket").fileno()
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]))
                self.requests += 1
                await self._tell()
                await self.answers.wait()
                writer.write(self.answer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()
            self.ended += 1
            await self._tell()

    async def _tell(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    async def until(self, **counts: int) -> None:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(lambda: all(getattr(self, name) >= least for name, least in counts.items()))


@pytest.fixture
async def provider() -> AsyncIterator[Provider]:
    made = Provider()
    server = await asyncio.start_server(made.talk, HERE, 0)
    made.port = server.sockets[0].getsockname()[1]
    yield made
    made.answers.set()
    server.close()


@pytest.fixture
async def http(provider: Provider) -> AsyncIterator[LeanHttp]:
    made = LeanHttp(URL(f"http://{HERE}:{provider.port}"), clock=VirtualClock(START), timeout=2.0)
    await made.start()
    yield made
    await made.stop()


async def post(http: LeanHttp) -> Answer | NotSent | Lost:
    return await http.post(http.head("/send", {"Accept": "application/json"}), b"{}")


async def test_calls_one_after_another_share_a_connection_and_those_at_once_have_their_own(
    provider: Provider, http: LeanHttp
) -> None:
    assert [await post(http) for _ in range(3)] == [TAKEN] * 3
    assert provider.connections == 1
    provider.answers.clear()
    at_once = [asyncio.create_task(post(http)) for _ in range(4)]
    await provider.until(requests=7)
    provider.answers.set()
    assert await asyncio.gather(*at_once) == [TAKEN] * 4
    assert provider.connections == 4


async def test_a_kept_connection_that_the_provider_has_just_closed_is_not_written_to(
    provider: Provider, http: LeanHttp
) -> None:
    assert await post(http) == TAKEN
    with socket.socket(fileno=os.dup(provider.descriptor)) as its_end:
        its_end.shutdown(socket.SHUT_WR)  # before the loop has another pass, which would tell us
    assert await post(http) == TAKEN
    assert provider.connections == 2


async def test_a_call_that_is_given_up_closes_its_connection(provider: Provider, http: LeanHttp) -> None:
    provider.answers.clear()
    call = asyncio.create_task(post(http))
    await provider.until(requests=1)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    provider.answers.set()
    assert await post(http) == TAKEN
    assert provider.connections == 2


async def test_what_was_idle_for_long_is_closed_though_nobody_calls(
    provider: Provider, http: LeanHttp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_pool, "IDLE_LIMIT", 0.0)
    assert await post(http) == TAKEN
    await provider.until(ended=1)


async def test_stopping_lets_calls_under_way_end_and_begins_none(provider: Provider, http: LeanHttp) -> None:
    provider.answers.clear()
    call = asyncio.create_task(post(http))
    await provider.until(requests=1)
    await http.stop()
    assert await post(http) == NotSent()
    provider.answers.set()
    assert await call == TAKEN
    await provider.until(ended=1)


@pytest.mark.parametrize("length", [LONGEST_READ, LONGEST_READ + 1])
async def test_an_answer_is_whole_up_to_a_limit(provider: Provider, http: LeanHttp, length: int) -> None:
    provider.answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (length, b"x" * length)
    outcome = await post(http)
    assert outcome == Answer(200, None, b"x" * LONGEST_READ, length <= LONGEST_READ)


async def test_a_name_that_is_none_is_not_sent_to() -> None:
    client = LeanHttp(URL(f"http://{'a' * 64}.example.com"), clock=VirtualClock(START))
    await client.start()
    assert await client.post(client.head("/", {}), b"") == NotSent()
    await client.stop()


async def test_a_name_that_nobody_knows_is_not_sent_to() -> None:
    http = LeanHttp(URL("http://no.such.name.invalid:80"), clock=VirtualClock(START), timeout=2.0)
    await http.start()
    assert await asyncio.gather(*(post(http) for _ in range(3))) == [NotSent()] * 3
    await http.stop()


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "\0"])
def test_a_value_that_would_break_out_of_its_line_is_refused(value: str) -> None:
    http = LeanHttp(URL("http://provider.example:80"), clock=VirtualClock(START))
    with pytest.raises(ValueError, match="control character"):
        http.head("/send", {"Authorization": value})


async def test_a_client_that_was_not_started_sends_nothing() -> None:
    http = LeanHttp(URL("http://provider.example:80"), clock=VirtualClock(START))
    assert await post(http) == NotSent()
