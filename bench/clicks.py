"""How fast people are led on by links of messages, and how many of those clicks are recorded; beside /healthz."""

import asyncio
import statistics
import time
from pathlib import Path

from bench.harness import ROOT, Figure, Process, Say, running, scratch, summary_of
from bench.recado_process import READY, Api, recado
from bench.rows import Connection, Rows

LINKS = 20_000  # each of a message
CONNECTIONS = 64
SECONDS = 5
ROUNDS = 3
LEAST = 20_000  # clicks a second
SETTLED = 1.0  # seconds without a change
_LINKS = """
insert into tracked_links (code, organization_id, env, channel, message_id, url)
select lpad(place::text, 8, '0'), $1, 'test', 'chatapp', id, 'https://shop.example.com/orders?id=' || place
from unnest($2::text[]) with ordinality as g (id, place)
"""
_CLICKS = "select sum(clicks)::bigint from tracked_links"


async def run(say: Say) -> list[Figure]:
    """In turns, on the same server."""
    bound, led, recorded = [], [], []
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        database = await service.database()
        sender = await api.sender("clicks")
        await database.execute(_LINKS, sender.organization_id, await Rows(database).sent(sender, LINKS))
        await database.execute("vacuum analyze tracked_links")
        codes = folder / "codes"
        codes.write_text("".join(f"{place:08}\n" for place in range(1, LINKS + 1)))
        for number in range(ROUNDS):
            say(f"clicks, round {number + 1} of {ROUNDS}")
            bound.append(await opened(service, "/healthz", None))
            before, began = await database.fetchval(_CLICKS), time.monotonic()
            led.append(await opened(service, "/l/", codes))
            counted, at = await settled(database)
            recorded.append((counted - before) / (at - began))
        await database.close()
    pace, probe, written = (statistics.median(each) for each in (led, bound, recorded))
    return [
        Figure(
            f"clicks on links led on, {CONNECTIONS} connections", f"{pace:,.0f} /s", f"{probe:,.0f} /s", pace / probe,
            f"≥ {LEAST:,} /s", pace >= LEAST,
        ),
        Figure("of them recorded, until the last of them is", f"{written:,.0f} /s", f"{pace:,.0f} /s", written / pace),
    ]  # fmt: skip


async def opened(service: Process, path: str, codes: Path | None) -> float:
    """Answers a second."""
    command = ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(ROOT / "bench" / "clicks.lua"), service.url]
    child = await asyncio.create_subprocess_exec(*command, "--", path, str(codes or ""), stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    found = summary_of(service.url + path, child.returncode, output)
    return found["requests"] / found["seconds"]


async def settled(database: Connection) -> tuple[int, float]:
    """The clicks that are recorded when no more come, and when the last of them was (monotonic)."""
    counted, at = -1, time.monotonic()
    while time.monotonic() - at < SETTLED:
        now = await database.fetchval(_CLICKS)
        if now != counted:
            counted, at = now, time.monotonic()
        await asyncio.sleep(0.05)
    return counted, at
