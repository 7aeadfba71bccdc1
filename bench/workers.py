"""What processes beside the owner bring and cost (`recado serve --workers N`): speed, CPU, and the way between them."""

import asyncio
import resource
import statistics
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import orjson

from bench.accept import plain
from bench.end_to_end import NO_RECEIPTS, NO_WALLET, sending, under_load
from bench.harness import Figure, Process, Say, against, cpu_of, running, scratch
from bench.recado_process import Api, body
from bench.webhooks import endpoint
from recado.domain.core.ids import created_at
from recado.fronts import frames
from recado.services.dispatch.crossing import packed, unpacked_rows
from recado.services.dispatch.row import Row

COUNTS = (1, 2, 3, 4)
SECONDS = 10
ROUNDS = 2
LEAST, LEAST_WITH_ALL = 1.0, 1.2  # of two, beside one
PACE, PACED_SECONDS = 200, 5  # messages a second
MOST_LATER = 5.0  # ms, until a message is sent that a front accepted
ROWS, SEAM_ROUNDS = 20_000, 7
MOST_OF_SEAM = 6.0  # µs a row
_SENT = "select id, sent_at from messages where sent_at >= $1"


@dataclass(frozen=True, slots=True)
class Run:
    """Of one load: sent a second, milliseconds until accepted; of each message µs of processor time, bytes of WAL."""

    sent: float
    p50: float
    p99: float
    owner: float
    fronts: float
    database: float
    load: float
    wal: float


@dataclass(frozen=True, slots=True)
class Served:
    """A service with so many workers, and what is sent to it."""

    process: Process
    api: Api
    bodies: Path


async def run(say: Say) -> list[Figure]:
    """One to four workers in turns, each a service of its own. The bound of one worker is the plain service."""
    figures = [*_seam_figures(say)]
    async with scratch() as folder, running(endpoint(folder), "/") as customer:
        async with served(folder / "plain", **NO_WALLET) as all_, running(plain(folder, "--send"), "/ready") as beside:
            bound, runs = [], await _runs(say, "end to end", all_)
            one = all_[COUNTS[0]]
            for _ in range(ROUNDS):
                bound.append((await under_load(beside, one.api.token, one.bodies, SECONDS))[1])
            figures += _figures("end to end", runs, bound, LEAST)
            figures += await _latency_figures(say, all_)
        async with served(folder / "paid", RECADO_SSRF_ALLOW_CIDRS="127.0.0.0/8") as all_:
            for each in all_.values():
                await each.api.call("POST", "/webhooks", {"url": f"{customer.url}/hook", "events": ["message.sent"]})
            runs = await _runs(say, "with a wallet and a subscription", all_)
            figures += _figures("with a wallet and a subscription", runs, bound, LEAST_WITH_ALL)
    return figures


@asynccontextmanager
async def served(folder: Path, **settings: str) -> AsyncIterator[dict[int, Served]]:
    """A service for each count of workers."""
    folder.mkdir()
    async with AsyncExitStack() as stack:
        made = {}
        for count in COUNTS:
            service, api, bodies, _ = await stack.enter_async_context(
                sending(folder / str(count), RECADO_WORKERS=str(count), **settings)
            )
            made[count] = Served(service, api, bodies)
        yield made


async def _runs(say: Say, name: str, all_: dict[int, Served]) -> dict[int, list[Run]]:
    runs: dict[int, list[Run]] = {count: [] for count in all_}
    for number in range(ROUNDS):
        for count, each in all_.items():
            say(f"workers, {name}, round {number + 1} of {ROUNDS}: {count}")
            runs[count].append(await _measured(each))
    return runs


async def _measured(served: Served) -> Run:
    before, load, written = _used(served.process), _used_by_ended(), await _wal(served.process)
    result, sent = await under_load(served.process, served.api.token, served.bodies, SECONDS)
    after = _used(served.process)
    wal = (await _wal(served.process) - written) / result["requests"]
    owner, fronts, database = ((now - then) / result["requests"] * 1e6 for then, now in zip(before, after, strict=True))
    beside = (_used_by_ended() - load) / result["requests"] * 1e6
    return Run(sent, result["p50"], result["p99"], owner, fronts, database, beside, wal)


async def _wal(process: Process) -> int:
    """Bytes of write-ahead log so far."""
    database = await process.database()
    try:
        return int(await database.fetchval("select pg_current_wal_lsn() - '0/0'"))
    finally:
        await database.close()


def _used(process: Process) -> tuple[float, float, float]:
    """CPU seconds so far: of the owner, of its fronts, of PostgreSQL."""
    python, database = process.cpu()
    owner = cpu_of(process.pid)
    return owner, python - owner, database


def _used_by_ended() -> float:
    """CPU seconds of the processes that this one began and that have ended: between two looks, of the load."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _figures(name: str, runs: dict[int, list[Run]], bound: list[float], least: float) -> list[Figure]:
    one, *_ = runs.values()
    alone = [each.sent for each in one]
    figures = []
    for count, several in runs.items():
        path, sent = f"{name}, {_workers(count)}: sent", [each.sent for each in several]
        figures.append(
            against(path, sent, bound, "/s", None)
            if count == 1
            else against(path, sent, alone, "/s", least if count == 2 else None)
        )
        owner, fronts, database, load, p50, p99, wal = (
            statistics.median(getattr(each, part) for each in several)
            for part in ("owner", "fronts", "database", "load", "p50", "p99", "wal")
        )
        figures.append(Figure("– accepted: p50, p99", f"{p50:.0f} ms, {p99:.0f} ms"))
        figures.append(
            Figure(
                "– CPU of each: owner + fronts + PostgreSQL + load",
                f"{owner:.0f} + {fronts:.0f} + {database:.0f} + {load:.0f} µs",
            )
        )
        figures.append(Figure("– WAL of each", f"{wal:,.0f} bytes"))
    return figures


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


async def _latency_figures(say: Say, all_: dict[int, Served]) -> list[Figure]:
    took: dict[int, list[tuple[float, float, float]]] = {count: [] for count in all_}
    for number in range(ROUNDS):
        for count, each in all_.items():
            say(f"workers, {PACE} messages a second, round {number + 1} of {ROUNDS}: {count}")
            took[count].append(await _paced(each))
    figures = []
    alone = statistics.median(until_sent for _, _, until_sent in took[COUNTS[0]])
    for count, several in took.items():
        p50, p99, until_sent = (statistics.median(each) for each in zip(*several, strict=True))
        path = f"{PACE} messages a second, {_workers(count)}: median from acceptance to sent"
        later = until_sent - alone
        figures.append(
            Figure(path, f"{until_sent:.1f} ms")
            if count == 1
            else Figure(
                path, f"{until_sent:.1f} ms", f"{alone:.1f} ms", until_sent / alone, f"< {MOST_LATER:g} ms more",
                later < MOST_LATER,
            )
        )  # fmt: skip
        figures.append(Figure("– accepted: p50, p99", f"{p50:.1f} ms, {p99:.1f} ms"))
    return figures


async def _paced(served: Served) -> tuple[float, float, float]:
    """Milliseconds until messages at an even pace are accepted, p50 and p99, and the median from there until sent."""
    took: list[float] = []
    bodies = [orjson.loads(line) for line in served.bodies.read_bytes().splitlines()]
    begun = datetime.now(UTC)
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {served.api.token}"}) as session,
        asyncio.TaskGroup() as posting,
    ):

        async def post(number: int) -> None:
            message = {**bodies[number % len(bodies)], "to": f"+55119{number:04}{NO_RECEIPTS}"}
            began = time.perf_counter()
            async with session.post(f"{served.process.url}/messages", json=message) as answer:
                await answer.read()
                if answer.status != 201:
                    raise RuntimeError(f"POST /messages answered {answer.status}")
            took.append((time.perf_counter() - began) * 1_000)

        first = time.perf_counter()
        for number in range(PACE * PACED_SECONDS):
            await asyncio.sleep(max(0.0, first + number / PACE - time.perf_counter()))
            posting.create_task(post(number))
    database = await served.process.database()
    try:
        while await database.fetchval("select exists (select from dispatch)"):
            await asyncio.sleep(0.05)
        sent = await database.fetch(_SENT, begun)
    finally:
        await database.close()
    until_sent = statistics.median((each["sent_at"] - created_at(each["id"])).total_seconds() for each in sent) * 1_000
    cuts = statistics.quantiles(took, n=100)
    return cuts[49], cuts[98], until_sent


def _seam_figures(say: Say) -> list[Figure]:
    say("workers: rows that cross")
    many, single = (statistics.median(_seam(rows) for _ in range(SEAM_ROUNDS)) for rows in (10, 1))
    return [
        Figure(
            "a row that crosses to the owner, ten a frame: packed, JSON, unpacked", f"{many:.1f} µs", "", None,
            f"≤ {MOST_OF_SEAM:g} µs", many <= MOST_OF_SEAM,
        ),
        Figure("– one a frame", f"{single:.1f} µs"),
    ]  # fmt: skip


def _seam(rows: int) -> float:
    """µs of Python for a row, in frames of so many."""
    crossing = [_row(number) for number in range(rows)]
    sender = ("org_0VcAmOQGa4NZByAfi26XY", "test", "chatapp", "num_0VcAmOQGa4NZByAfi26XY")
    began = time.process_time()
    for _ in range(ROWS // rows):
        line = b"%s %s\n" % (frames.ROWS.encode(), orjson.dumps([*sender, [packed(row) for row in crossing]]))
        *_, received = orjson.loads(line.partition(b" ")[2])
        unpacked_rows(received)
    return (time.process_time() - began) / (ROWS // rows * rows) * 1e6


def _row(number: int) -> Row:
    now = datetime.now(UTC)
    ident = f"msg_0VcAmOQGa4NZByAf{number:05}"
    message = body("num_0VcAmOQGa4NZByAfi26XY", "tpl_0VcAmOQGa4NZByAfi26XY")
    return Row(
        "org_0VcAmOQGa4NZByAfi26XY", "test", "chatapp", ident, message["numberId"], 2, "single", now, 86_400_000, now,
        0, 0, False, "+551190000019003", 1_234_567_890_123, "template", message["templateId"], None,
        orjson.dumps(message["templateVars"]).decode(), subject_to_consent=False, obeys_quiet_hours=False,
    )  # fmt: skip
