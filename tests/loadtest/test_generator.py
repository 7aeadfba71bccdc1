"""The generator keeps its rate, and tells answers, refusals and lost connections apart."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.waiting import until

from recado.loadtest.generator import Generator

HEAD = b"HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s"


class Peer(asyncio.Protocol):
    """A server that answers every request by `answer(number)`; None closes the connection instead."""

    def __init__(self, answer: Callable[[int], tuple[int, bytes] | None], numbers: "itertools.count[int]") -> None:
        self._answer, self._numbers = answer, numbers

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        answer = self._answer(next(self._numbers))
        if answer is None:
            self._transport.close()
        else:
            self._transport.write(HEAD % (answer[0], len(answer[1]), answer[1]))


Answer = Callable[[int], tuple[int, bytes] | None]
Serve = Callable[[Answer], Awaitable[str]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    servers = []

    async def start(answer: Answer) -> str:
        numbers = itertools.count()
        server = await asyncio.get_running_loop().create_server(lambda: Peer(answer, numbers), "127.0.0.1", 0)
        servers.append(server)
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    yield start
    for server in servers:
        server.close()
        await server.wait_closed()


def accepted(number: int) -> tuple[int, bytes]:
    return 201, b'{"id":"msg_%021d"}' % number


def request(_number: int) -> bytes:
    return b"POST /messages HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"


async def run_until(generator: Generator, enough: Callable[[], object]) -> None:
    """Send until there is enough, however long that takes here, and wait for the last answers."""
    running = asyncio.create_task(generator.run(600.0))
    await until(enough, "there is enough")
    running.cancel()
    await asyncio.wait({running})


async def test_a_rate_is_kept(serve: Serve) -> None:
    generator = Generator(await serve(accepted), request, connections=4, rate=400)

    await generator.run(0.5)

    assert generator.outcomes.requested == 200
    assert len(generator.outcomes.accepted) == generator.outcomes.requested


async def test_flat_out_every_connection_sends_again_at_once(serve: Serve) -> None:
    generator = Generator(await serve(accepted), request, connections=8, rate=None)

    outcomes = generator.outcomes

    await run_until(generator, lambda: outcomes.requested > 500)

    assert len(outcomes.accepted) == len(outcomes.latencies) == outcomes.requested
    assert generator.in_flight == 0


async def test_refusals_are_counted_by_code(serve: Serve) -> None:
    def refuse_every_second(number: int) -> tuple[int, bytes]:
        return accepted(number) if number % 2 else (429, b'{"code":"RATE_LIMITED"}')

    generator = Generator(await serve(refuse_every_second), request, connections=1, rate=100)

    await generator.run(0.2)

    refused = generator.outcomes.refusals["429 RATE_LIMITED"]
    assert refused >= 5
    assert refused + len(generator.outcomes.accepted) == generator.outcomes.requested


async def test_a_lost_connection_is_an_unanswered_request_and_is_replaced(serve: Serve) -> None:
    def close_first(number: int) -> tuple[int, bytes] | None:
        return None if number == 0 else accepted(number)

    generator = Generator(await serve(close_first), request, connections=1, rate=None)

    await run_until(generator, lambda: generator.outcomes.accepted)

    assert generator.outcomes.unanswered == 1
    assert len(generator.outcomes.accepted) == generator.outcomes.requested - 1 > 0


async def test_a_server_that_is_not_there_is_an_error_at_once() -> None:
    generator = Generator("http://127.0.0.1:1", request, connections=1, rate=None)

    with pytest.raises(OSError, match="127"):
        await generator.run(0.1)
