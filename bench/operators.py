"""What operators cost: what they see of ten thousand numbers, and whether senders notice that somebody looks (C34)."""

import asyncio
import secrets
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp

from bench.end_to_end import CONNECTIONS, NO_RECEIPTS, NO_WALLET, sending
from bench.harness import Figure, Process, Say, running, scratch, wrk
from bench.memory import USUAL_PACE
from bench.recado_process import READY, Api, recado
from bench.rows import Connection, Rows

NUMBERS = 10_000
LOOKS = 15
FRESH = 1.5  # seconds after which a look is none that was made before
MOST_TO_LIST, MOST_TO_SCRAPE, MOST_OF_A_TICK = 150, 50, 20  # ms
TICKS = 20
SECONDS = 5
TURNS = 6
VIEWERS = 100  # as many as the administrator may have (C34.1)
LEAST = 0.97


async def run(say: Say) -> list[Figure]:
    """Two services: one with many numbers at rest, one that sends as fast as it can."""
    return [*await many_numbers(say), *await looked_at(say)]


async def many_numbers(say: Say) -> list[Figure]:
    """All of them have sent a message, and are in memory."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        say(f"operators: making {NUMBERS:,} numbers")
        database = await service.database()
        rows, sender = Rows(database), await api.sender("first", USUAL_PACE)
        numbers = await rows.numbers(sender, NUMBERS)
        await rows.queued(sender, NUMBERS, sender_ids=numbers)
        await _drained(database)
        await database.close()
        say("operators: the list of numbers")
        listed = await _took(service, "/v2/ops/numbers", api.token)
        say("operators: the metrics")
        scraped = await _took(service, "/metrics")
        say("operators: the stream")
        idle = await _used(service)
        async with viewers(service, api.token, 1):
            tick = (await _used(service) - idle) / TICKS * 1_000
    beside = f"{NUMBERS:,} numbers"
    return [
        _at_most(f"GET /v2/ops/numbers of {beside}", listed, MOST_TO_LIST),
        _at_most(f"GET /metrics, {beside}", scraped, MOST_TO_SCRAPE),
        _at_most(f"a tick of the stream, {beside}: processor time", tick, MOST_OF_A_TICK),
    ]


async def looked_at(say: Say) -> list[Figure]:
    """The same load with and without those who look, in turns that change their order."""
    admin = secrets.token_urlsafe(24)
    async with (
        scratch() as folder,
        sending(folder / "looked-at", **NO_WALLET, RECADO_ADMIN_TOKEN=admin) as (service, api, bodies, _),
    ):
        database = await service.database()
        await _turn(service, api, bodies, database)  # its caches and connections are there then
        one = await _pairs(say, service, api, bodies, database, api.token, 1)
        many = await _pairs(say, service, api, bodies, database, admin, VIEWERS)
        await database.close()
    return [
        _compared("end to end, scraped each second and with one viewer: sent", *one),
        _compared(f"– with {VIEWERS} viewers of all organizations", *many),
    ]


Turn = tuple[float, float]
"""Messages a second, and microseconds of the program's processors for each."""


async def _pairs(
    say: Say, service: Process, api: Api, bodies: Path, database: Connection, token: str, count: int
) -> tuple[list[Turn], list[Turn]]:
    """Turns with so many viewers and with a scrape a second, and as many without."""
    looked: list[Turn] = []
    alone: list[Turn] = []
    for number in range(TURNS):
        say(f"operators: {count} at the stream, turn {number + 1} of {TURNS}")
        for turns in (looked, alone) if number % 2 else (alone, looked):
            async with AsyncExitStack() as lookers:
                if turns is looked:
                    await lookers.enter_async_context(viewers(service, token, count))
                    await lookers.enter_async_context(_scraped(service))
                turns.append(await _turn(service, api, bodies, database))
    return looked, alone


async def _turn(service: Process, api: Api, bodies: Path, database: Connection) -> Turn:
    before, begun = service.cpu(), time.monotonic()
    load = await wrk(service.url, api.token, bodies, seconds=SECONDS, connections=CONNECTIONS, suffix=NO_RECEIPTS)
    await _drained(database)
    took, after = time.monotonic() - begun, service.cpu()
    count = load["requests"]
    return count / took, (sum(after) - sum(before)) / count * 1_000_000


async def _drained(database: Connection) -> None:
    """Until everything has left."""
    while await database.fetchval("select exists (select from dispatch)"):
        await asyncio.sleep(0.1)


# Those who look ---------------------------------------------------------------------------------------------------


class _Viewer(asyncio.Protocol):
    """Reads the stream and keeps nothing: what viewers do with it is not measured."""

    def __init__(self, request: bytes, closed: "asyncio.Future[None]") -> None:
        self._request = request
        self._closed = closed
        self.told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.told.done():
            self.told.set_result(data.partition(b"\r\n")[0])

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.told.done():
            self.told.set_exception(ConnectionError("the stream ended before it began"))
        elif b" 200 " in self.told.result() and not self._closed.done():
            self._closed.set_result(None)


@asynccontextmanager
async def viewers(service: Process, token: str, count: int) -> AsyncIterator[None]:
    """So many at the stream while the block runs; raises RuntimeError when one is refused, or ends."""
    loop = asyncio.get_running_loop()
    lost: asyncio.Future[None] = loop.create_future()
    head = f"GET /v2/ops/stream HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAuthorization: Bearer {token}\r\n\r\n"
    transports = []
    try:
        for _ in range(count):
            while True:
                transport, viewer = await loop.create_connection(
                    lambda: _Viewer(head.encode(), lost), "127.0.0.1", service.port
                )
                if b" 429 " not in (status := await viewer.told):
                    break
                transport.abort()  # those of the turn before are not all gone yet
                await asyncio.sleep(0.1)
            transports.append(transport)
            if b" 200 " not in status:
                raise RuntimeError(f"the stream answered {status.decode()}")
        yield
        if lost.done():
            raise RuntimeError("a stream ended before its time")
    finally:
        for transport in transports:
            transport.close()


@asynccontextmanager
async def _scraped(service: Process) -> AsyncIterator[None]:
    async def scrape() -> None:
        async with aiohttp.ClientSession() as session:
            while True:
                async with session.get(f"{service.url}/metrics") as answer:
                    answer.raise_for_status()
                    await answer.read()
                await asyncio.sleep(1.0)

    scraping = asyncio.create_task(scrape())
    try:
        yield
        if scraping.done():
            scraping.result()
    finally:
        scraping.cancel()


# Figures ----------------------------------------------------------------------------------------------------------


async def _took(service: Process, path: str, token: str | None = None) -> float:
    """Milliseconds until the answer is whole: the median of looks that find nothing made before."""
    took = []
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(headers=headers) as session:
        for _ in range(LOOKS + 1):
            await asyncio.sleep(FRESH)
            begun = time.monotonic()
            async with session.get(service.url + path) as answer:
                answer.raise_for_status()
                await answer.read()
            took.append((time.monotonic() - begun) * 1_000)
    return statistics.median(took[1:])


async def _used(service: Process) -> float:
    """Seconds that the program takes of its processors within so many ticks."""
    await asyncio.sleep(FRESH)
    before = service.cpu()[0]
    await asyncio.sleep(TICKS)
    return service.cpu()[0] - before


def _at_most(path: str, took: float, most: int) -> Figure:
    return Figure(path, f"{took:.1f} ms", "", None, f"< {most} ms", took < most)


def _compared(path: str, looked: list[Turn], alone: list[Turn]) -> Figure:
    """The median of the turns' ratios: of two turns that follow one another the machine is the same."""
    ratio = statistics.median(one[0] / other[0] for one, other in zip(looked, alone, strict=True))
    return Figure(path, _shown(looked), f"{_shown(alone)} without", ratio, f"ratio ≥ {LEAST:g}", ratio >= LEAST)


def _shown(turns: list[Turn]) -> str:
    pace, costs = (statistics.median(each) for each in zip(*turns, strict=True))
    return f"{pace:,.0f} /s, {costs:.0f} µs each"
