"""Uploads of the benchmarks: many clients that each send one large file, and what they and the server take."""

import asyncio
import http.client
import os
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from bench.harness import Figure, Process, cpu_of, forget_peak, rss

UPLOAD = 100_000_000  # bytes
BLOCK = 1024 * 1024
MOST_MEMORY = 64_000_000
PDF = b"%PDF-1.7\n"
PDF_TYPE = "application/pdf"


def a_pdf(size: int) -> bytes:
    """What is taken for one by its first bytes; the others are random."""
    return PDF + os.urandom(size - len(PDF))


@dataclass(frozen=True, slots=True)
class Together:
    """Uploads at once. `pace`: MB a second; `server`, `clients`: ms of processor time for a MB."""

    pace: float
    server: float
    clients: float


async def upload_all(server: Process, callers: Sequence[tuple[str, str]], content: bytes, files: int = 1) -> Together:
    """`files`: that each caller uploads, one after the other."""
    return await together(server.pid, [partial(upload, server, *each, content) for each in callers], content, files)


async def together(pid: int, clients: Sequence[Callable[[], object]], content: bytes, files: int) -> Together:
    """Each client brings the content so many times, in a thread of its own. `pid`: of who takes it."""

    def all_of(client: Callable[[], object]) -> None:
        for _ in range(files):
            client()

    size = len(clients) * files * len(content) / 1e6
    theirs, ours, began = cpu_of(pid), time.process_time(), time.perf_counter()
    await at_once([partial(all_of, each) for each in clients])
    took = time.perf_counter() - began
    return Together(size / took, (cpu_of(pid) - theirs) / size * 1000, (time.process_time() - ours) / size * 1000)


async def at_once(works: Sequence[Callable[[], object]]) -> None:
    """Do all of them, each in a thread of its own: a pool of usual size would let only some of them begin."""
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(len(works)) as threads:
        await asyncio.gather(*(loop.run_in_executor(threads, each) for each in works))


async def ready_callers(service: Process, first: tuple[str, str], count: int) -> list[tuple[str, str]]:
    """The first caller and those of so many organizations less one; each has uploaded something small."""
    callers = [first, *[await new_caller(service, turn) for turn in range(1, count)]]
    content = a_pdf(BLOCK)
    await at_once([partial(upload, service, *each, content) for each in callers])
    return callers


def median_of(rounds: Sequence[Together], name: str) -> float:
    return statistics.median(getattr(each, name) for each in rounds)


def processor(path: str, ours: Sequence[Together], bare: Sequence[Together]) -> Figure:
    figure, bound = median_of(ours, "server"), median_of(bare, "server")
    return Figure(path, f"{figure:.2f} ms", f"{bound:.2f} ms", figure / bound)


async def new_caller(service: Process, turn: int) -> tuple[str, str]:
    """The key of another organization, and its number of the sandbox."""
    made = await service.command("org", "create", "--name", f"media {turn}", "--json")
    return made["keys"]["test"]["token"], made["numberId"]


def upload(service: Process, token: str, number: str, content: bytes) -> float:
    """Seconds that it took."""
    connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=120)
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream", "x-filename": "file.pdf",
        "x-content-type": PDF_TYPE,
    }  # fmt: skip
    connection.connect()
    began = time.perf_counter()
    connection.request("POST", f"/numbers/{number}/media/binary", body=content, headers=headers)
    answer = connection.getresponse()
    told = answer.read()
    took = time.perf_counter() - began
    connection.close()
    if answer.status != 201:
        raise RuntimeError(f"an upload was refused: {told.decode()[:300]}")
    return took


def settled(process: Process) -> int:
    """Resident memory now, from where its peak counts."""
    forget_peak(process.pid)
    return rss(process.pid)


def memory(used: int, path: str = "– memory meanwhile") -> Figure:
    return Figure(path, f"{used / 1e6:.0f} MB", target=f"< {MOST_MEMORY / 1e6:g} MB", met=used < MOST_MEMORY)
