"""How fast people are led on by links of messages, how many clicks are recorded, and who sends meanwhile.

Beside it a bare aiohttp application that leads everybody to one address.
"""

import asyncio
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from bench.harness import ROOT, Figure, Process, Say, running, scratch, summary_of
from bench.recado_process import READY, Api, Sender, body, recado
from bench.rows import Connection, Rows

LINKS = 20_000  # each of a message
CONNECTIONS, MANY = 64, 256  # each asks again once it is answered: a few wait longer than the service works
SECONDS = 5
ROUNDS = 3
LEAST = 20_000  # clicks a second
SETTLED = 1.0  # seconds without a change
NUMBERS, PACE = 40, 50  # of a second, each
ASKED_EVERY = 0.02  # seconds
_LINKS = """
insert into tracked_links (code, organization_id, env, channel, message_id, url)
select lpad(place::text, 8, '0'), $1, 'test', 'chatapp', id, 'https://shop.example.com/orders?id=' || place
from unnest($2::text[]) with ordinality as g (id, place)
"""
_CLICKS = "select sum(clicks)::bigint from tracked_links"
_SENT = "select count(*) from messages where sent_at >= now() - make_interval(secs => $1)"


@dataclass(frozen=True, slots=True)
class Clicks:
    """Of each round: led on a second, recorded a second, milliseconds in which 99 of 100 were answered.

    `cpu`: microseconds of each, of the service and of its database.
    """

    led: list[float] = field(default_factory=list)
    recorded: list[float] = field(default_factory=list)
    p99: list[float] = field(default_factory=list)
    cpu: list[tuple[float, float]] = field(default_factory=list)


async def run(say: Say) -> list[Figure]:
    """In turns."""
    bound: list[float] = []
    each, many, one = Clicks(), Clicks(), Clicks()
    async with (
        scratch() as folder,
        running(Process(folder, "bare", "-m", "bench.redirects", "--port", "{port}"), "/") as bare,
        running(recado(folder), READY) as service,
        Api(service) as api,
    ):
        database = await service.database()
        sender = await api.sender("clicks", PACE)
        rows = Rows(database)
        await database.execute(_LINKS, sender.organization_id, await rows.sent(sender, LINKS))
        await database.execute("vacuum analyze tracked_links")
        all_codes, one_code = folder / "codes", folder / "code"
        all_codes.write_text("".join(f"{place:08}\n" for place in range(1, LINKS + 1)))
        one_code.write_text(f"{1:08}\n")
        for number in range(ROUNDS):
            say(f"clicks, round {number + 1} of {ROUNDS}")
            bound.append((await opened(bare, one_code))[0])
            await measured(service, database, all_codes, each)
            await measured(service, database, all_codes, many, MANY)
            await measured(service, database, one_code, one)
        say("clicks, beside messages that leave")
        numbers = await rows.numbers(sender, NUMBERS)
        await rows.queued(sender, NUMBERS * PACE * (4 * SECONDS + 10), sender_ids=numbers)
        while not await database.fetchval(_SENT, 1.0):
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        alone = await neighbour(service, api, database, sender)
        clicking = asyncio.create_task(opened(service, all_codes))
        beside = await neighbour(service, api, database, sender)
        meanwhile, p99 = await clicking
        await database.close()
    probe = statistics.median(bound)
    return [
        *figures(f"clicks on {LINKS:,} links", each, probe),
        *figures(f"clicks on {LINKS:,} links", many, probe, MANY),
        *figures("clicks on one link", one, probe),
        Figure(
            "messages that leave beside clicks", f"{beside[0]:,.0f} /s", f"{alone[0]:,.0f} /s alone",
            beside[0] / alone[0],
        ),
        Figure("– one more accepted: p99", f"{beside[1]:.1f} ms", f"{alone[1]:.1f} ms alone", beside[1] / alone[1]),
        Figure("– the clicks: p99", f"{meanwhile:,.0f} /s, {p99:.1f} ms"),
    ]  # fmt: skip


def figures(name: str, clicks: Clicks, bound: float, connections: int = CONNECTIONS) -> list[Figure]:
    service, database = (statistics.median(each) for each in zip(*clicks.cpu, strict=True))
    led, recorded, p99 = (statistics.median(each) for each in (clicks.led, clicks.recorded, clicks.p99))
    return [
        Figure(
            f"{name}, {connections} connections", f"{led:,.0f} /s, p99 {p99:.1f} ms", f"{bound:,.0f} /s", led / bound,
            f"≥ {LEAST:,} /s", led >= LEAST,
        ),
        Figure("– recorded, until the last of them is", f"{recorded:,.0f} /s", f"{led:,.0f} /s", recorded / led),
        Figure("– CPU of each, the service and its database", f"{service:.0f} + {database:.0f} µs"),
    ]  # fmt: skip


async def measured(
    service: Process, database: Connection, codes: Path, clicks: Clicks, connections: int = CONNECTIONS
) -> None:
    """Another round of these codes."""
    before, used, began = await database.fetchval(_CLICKS), service.cpu(), time.monotonic()
    led, p99 = await opened(service, codes, connections=connections)
    counted, at = await settled(database)
    each = [(now - then) / (led * SECONDS) * 1e6 for then, now in zip(used, service.cpu(), strict=True)]
    clicks.cpu.append((each[0], each[1]))
    clicks.led.append(led)
    clicks.p99.append(p99)
    clicks.recorded.append((counted - before) / (at - began))


async def neighbour(service: Process, api: Api, database: Connection, sender: Sender) -> tuple[float, float]:
    """Messages that left a second, and milliseconds in which 99 of 100 that are asked for one by one are accepted."""
    took = []
    headers = {"Authorization": f"Bearer {api.token}"}
    end = time.monotonic() + SECONDS
    async with aiohttp.ClientSession(headers=headers) as session:
        while (began := time.monotonic()) < end:
            message = {**body(sender.number_id, sender.template_id), "to": "+551190000019003"}
            async with session.post(f"{service.url}/messages", json=message) as answer:
                await answer.read()
                if answer.status != 201:
                    raise RuntimeError(f"POST /messages answered {answer.status}")
            took.append((time.monotonic() - began) * 1_000)
            await asyncio.sleep(ASKED_EVERY)
    sent: int = await database.fetchval(_SENT, float(SECONDS))
    return sent / SECONDS, statistics.quantiles(took, n=100)[98]


async def opened(
    service: Process, codes: Path, path: str = "/l/", connections: int = CONNECTIONS
) -> tuple[float, float]:
    """Answers a second, and the milliseconds in which 99 of 100 came."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "-s", str(ROOT / "bench" / "clicks.lua"), service.url]
    child = await asyncio.create_subprocess_exec(*command, "--", path, str(codes), stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    found = summary_of(service.url + path, child.returncode, output)
    return found["requests"] / found["seconds"], found["p99"]


async def settled(database: Connection, statement: str = _CLICKS) -> tuple[int, float]:
    """What is counted, by default clicks, when no more is recorded, and when the last was (monotonic)."""
    counted, at = -1, time.monotonic()
    while time.monotonic() - at < SETTLED:
        now = await database.fetchval(statement)
        if now != counted:
            counted, at = now, time.monotonic()
        await asyncio.sleep(0.05)
    return counted, at
