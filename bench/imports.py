"""An import of contacts over the API, beside a plain `copy` of what it made into a table with the same indexes."""

import asyncio
import io
import random
import time
from dataclasses import dataclass
from typing import Any

import aiohttp

from bench.harness import Figure, Process, Say, running, scratch
from bench.recado_process import READY, Api, recado

ROWS = 200_000
BLOCK = 1_000
LEAST = 20_000  # rows a second
POLL = 0.05  # seconds
LIMIT = aiohttp.ClientTimeout(total=300)
_FIRST = ("Ana", "João", "Maria", "José", "Luíza", "Pedro")
_LAST = ("Silva", "Souza", "Oliveira", "Santos", "Lima")


@dataclass(frozen=True, slots=True)
class Import:
    """Rows a second, and the microseconds of processor time that Recado and PostgreSQL took for each."""

    pace: float
    recado: float
    postgres: float


async def run(say: Say) -> list[Figure]:
    """The file once, when all of it is new, and once more, when nothing of it is."""
    async with scratch() as folder, running(recado(folder), READY) as service, Api(service) as api:
        file = table(ROWS)
        say(f"import: {ROWS:,} new contacts")
        new = await _import(service, api.token, file, "created")
        say("import: the same ones again")
        known = await _import(service, api.token, file, "unchanged")
        say("import: copying what it made")
        bound = await _copy(service)
    return [
        _figure(f"import of {ROWS:,} contacts, all new", new, bound),
        _figure("– the same file again", known, bound),
    ]


def table(rows: int) -> bytes:
    """A file as customers have it: phone, name, address, an id of their own, tags and an attribute."""
    chance = random.Random(1)
    numbers = chance.sample(range(10**8), rows)
    people = [f"{chance.choice(_FIRST)} {chance.choice(_LAST)}" for _ in numbers]
    lines = [
        f"+55119{n:08},{person},c{n}@example.com,{n * 7},a|b,São Paulo"
        for n, person in zip(numbers, people, strict=True)
    ]
    return ("phone,name,email,externalId,tags,attributes.city\n" + "\n".join(lines)).encode()


async def _import(service: Process, token: str, file: bytes, outcome: str) -> Import:
    """One import, from the first byte of the request to the last commit."""
    headers = {"Authorization": f"Bearer {token}"}
    before = service.cpu()
    async with aiohttp.ClientSession(headers=headers, timeout=LIMIT) as session:
        began = time.perf_counter()
        csv = {"Content-Type": "text/csv"}
        url = f"{service.url}/contacts/import"
        async with session.post(url, data=io.BytesIO(file), headers=csv) as answer:
            result: Any = await answer.json()
        while result["status"] == "processing":
            await asyncio.sleep(POLL)
            async with session.get(f"{service.url}/contacts/imports/{result['id']}") as answer:
                result = await answer.json()
        seconds = time.perf_counter() - began
    if result[outcome] != result["total"]:
        raise RuntimeError(f"the import went wrong: {result}")
    total = int(result["total"])
    used = [1e6 * (now - then) / total for now, then in zip(service.cpu(), before, strict=True)]
    return Import(total / seconds, *used)


async def _copy(service: Process) -> float:
    """Rows a second of the contacts that were made, copied block by block on one connection."""
    database = await service.database()
    try:
        made = io.BytesIO()
        await database.copy_from_query("select * from contacts", output=made)
        lines = made.getvalue().splitlines(keepends=True)
        await database.execute("create table copied (like contacts including all)")
        began = time.perf_counter()
        for start in range(0, len(lines), BLOCK):
            await database.copy_to_table("copied", source=io.BytesIO(b"".join(lines[start : start + BLOCK])))
        return len(lines) / (time.perf_counter() - began)
    finally:
        await database.close()


def _figure(path: str, ours: Import, bound: float) -> Figure:
    return Figure(
        path,
        f"{ours.pace:,.0f} rows/s, {ours.recado:.0f} + {ours.postgres:.0f} µs each",
        f"{bound:,.0f} rows/s",
        ours.pace / bound,
        f"≥ {LEAST:,} rows/s",
        ours.pace >= LEAST,
    )
