"""What operators cost: what they see of ten thousand numbers, and whether senders notice that somebody looks (C34)."""

import asyncio
import secrets
import statistics
import time
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp

from bench.end_to_end import CONNECTIONS, NO_RECEIPTS, NO_WALLET, sending
from bench.harness import Figure, Process, Say, running, scratch, wrk
from bench.lookers import looking
from bench.memory import USUAL_PACE
from bench.recado_process import READY, Api, recado
from bench.rows import Connection, Rows

NUMBERS = 10_000
LOOKS = 15
FRESH = 1.5  # seconds after which a look is none that was made before
MOST_TO_LIST, MOST_TO_SCRAPE, MOST_OF_A_TICK = 150, 50, 20  # ms
TICKS = 10
TICK_TURNS = 5
SECONDS = 5
TURNS = 10
VIEWERS = 100  # as many as the administrator may have (C34.1)
LEAST = 0.97


async def run(say: Say) -> list[Figure]:
    """Two services: one with many numbers at rest, one that sends as fast as it can."""
    return [*await many_numbers(say), *await looked_at(say)]


async def many_numbers(say: Say) -> list[Figure]:
    """All of them have sent a message, and are in memory when they are looked at first."""
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
        ticks = []
        for _ in range(TICK_TURNS):  # they leave memory meanwhile, whoever looks
            idle = await _used(service)
            async with looking(service, api.token, 1):
                looked = await _used(service)
            ticks.append([(used - resting) / TICKS * 1_000 for used, resting in zip(looked, idle, strict=True)])
        tick, of_postgres = (statistics.median(each) for each in zip(*ticks, strict=True))
    beside = f"{NUMBERS:,} numbers"
    return [
        _at_most(f"GET /v2/ops/numbers of {beside}", listed, MOST_TO_LIST),
        _at_most(f"GET /metrics, {beside}", scraped, MOST_TO_SCRAPE),
        _at_most(
            f"a tick of the stream, {beside}: processor time",
            tick,
            MOST_OF_A_TICK,
            f"{of_postgres:.1f} ms of PostgreSQL",
        ),
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
        _compared("end to end, scraped each second and with one viewer: processor time", *one),
        _compared(f"– with {VIEWERS} viewers of all organizations", *many),
    ]


Turn = tuple[float, float, float]
"""Messages a second, and what each took of the processors: microseconds of the program, and of its PostgreSQL."""


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
                    await lookers.enter_async_context(looking(service, token, count, scraping=True))
                turns.append(await _turn(service, api, bodies, database))
    return looked, alone


async def _turn(service: Process, api: Api, bodies: Path, database: Connection) -> Turn:
    before, begun = service.cpu(), time.monotonic()
    load = await wrk(service.url, api.token, bodies, seconds=SECONDS, connections=CONNECTIONS, suffix=NO_RECEIPTS)
    await _drained(database)
    took, after = time.monotonic() - begun, service.cpu()
    count = load["requests"]
    program, postgres = ((ended - begun) / count * 1_000_000 for begun, ended in zip(before, after, strict=True))
    return count / took, program, postgres


async def _drained(database: Connection) -> None:
    """Until everything has left."""
    while await database.fetchval("select exists (select from dispatch)"):
        await asyncio.sleep(0.1)


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


async def _used(service: Process) -> list[float]:
    """Seconds that the program, and its PostgreSQL, take of the processors within so many ticks."""
    await asyncio.sleep(FRESH)
    before = service.cpu()
    await asyncio.sleep(TICKS)
    return [ended - begun for begun, ended in zip(before, service.cpu(), strict=True)]


def _at_most(path: str, took: float, most: int, beside: str = "") -> Figure:
    return Figure(path, f"{took:.1f} ms", beside, None, f"< {most} ms", took < most)


def _compared(path: str, looked: list[Turn], alone: list[Turn]) -> Figure:
    """What a message costs without those who look, of what it costs with them: of two turns that follow one another the
    machine is the same, and the median of their ratios is told. The pace says less: wrk and those who look have the
    same processors.
    """
    ratio = statistics.median(sum(other[1:]) / sum(one[1:]) for one, other in zip(looked, alone, strict=True))
    return Figure(path, _shown(looked), f"{_shown(alone)} without", ratio, f"ratio ≥ {LEAST:g}", ratio >= LEAST)


def _shown(turns: list[Turn]) -> str:
    pace, program, postgres = (statistics.median(each) for each in zip(*turns, strict=True))
    return f"{program:.0f} + {postgres:.0f} µs each, {pace:,.0f} /s"
