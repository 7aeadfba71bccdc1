"""What the benchmarks share: figures, processes with their embedded PostgreSQL, wrk, and the machine's description."""

import asyncio
import json
import os
import shutil
import signal
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg

from recado.cli.serve import OWNER
from recado.fronts.front import NAME as FRONT
from recado.storage.embedded.cluster import Cluster
from recado.storage.embedded.service_folder import locate, service_folder

ROOT = Path(__file__).parent.parent
START_LIMIT = 60.0  # seconds
STOP_LIMIT = 60.0
POLL = 0.05
PAGE_BYTES = os.sysconf("SC_PAGESIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. `bound`: what was measured beside it; `met`: None where there is no target."""

    path: str
    figure: str
    bound: str = ""
    ratio: float | None = None
    target: str = ""
    met: bool | None = None

    def cells(self) -> list[str]:
        """The line as texts, in the order of the table's columns."""
        ratio = "" if self.ratio is None else f"{self.ratio:.2f}"
        met = {True: "yes", False: "no", None: ""}[self.met]
        return [self.path, self.figure, self.bound, ratio, self.target, met]


def against(path: str, ours: Sequence[float], bound: Sequence[float], unit: str, least: float | None) -> Figure:
    """A figure beside its bound, each the median of its rounds; `least`: the ratio aimed at."""
    figure, beside = statistics.median(ours), statistics.median(bound)
    ratio = figure / beside
    target = "" if least is None else f"ratio ≥ {least:g}"
    return Figure(
        path, f"{figure:,.0f} {unit}", f"{beside:,.0f} {unit}", ratio, target, None if least is None else ratio >= least
    )


Say = Callable[[str], None]
"""Tells anyone who waits what is being measured."""


class Process:
    """One server as a process of its own, on a port and a data folder of its own, with an embedded PostgreSQL."""

    def __init__(self, folder: Path, name: str, *command: str, **settings: str) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.data_dir = folder / name
        self._log = folder / f"{name}.log"
        self._command = [part.format(port=self.port, data_dir=self.data_dir) for part in command]
        kept = {key: value for key, value in os.environ.items() if not key.startswith("RECADO_")}
        self._environment = kept | {"RECADO_DATA_DIR": str(self.data_dir), "RECADO_LOG_LEVEL": "warning", **settings}
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int:
        """The process that sends: where there are several, the launcher that was started has begun it."""
        assert self._process is not None
        started = self._process.pid
        owners = [pid for pid in _pids() if _field(pid, 1) == started and _name(pid) == OWNER]
        return owners[0] if owners else started

    async def start(self, ready: str) -> None:
        """Start, and come back when `GET ready` answers 200."""
        with self._log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable, *self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=log
            )
        give_up = time.monotonic() + START_LIMIT
        async with aiohttp.ClientSession() as session:
            while True:
                try:
                    async with session.get(self.url + ready) as answer:
                        if answer.status == 200:
                            return
                except aiohttp.ClientError:
                    pass
                if self._process.returncode is not None or time.monotonic() > give_up:
                    raise RuntimeError(f"{self._command} does not start:\n{self._log.read_text()[-3000:]}")
                await asyncio.sleep(POLL)

    async def stop(self) -> None:
        """End it, and remove what its PostgreSQL kept outside of the folder."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.send_signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(process.wait(), STOP_LIMIT)
            except TimeoutError:
                process.kill()
                await process.wait()
        remove_cluster(self.data_dir)

    async def command(self, *arguments: str) -> Any:
        """Run a command of Recado on the same data folder; what it prints, as JSON."""
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recado", *arguments, env=self._environment, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await child.communicate()
        return json.loads(output)

    async def database(self) -> "asyncpg.Connection[asyncpg.Record]":
        """A connection to its database."""
        return await asyncpg.connect(**Cluster(locate(self.data_dir)).connect_arguments)

    def cpu(self) -> tuple[float, float]:
        """CPU seconds so far: of the process with its fronts, and of its PostgreSQL with all backends."""
        postmaster = Cluster(locate(self.data_dir)).pid()
        backends = [pid for pid in _pids() if pid == postmaster or _field(pid, 1) == postmaster]
        return sum(map(cpu_of, [self.pid, *self.fronts()])), sum(map(cpu_of, backends))

    def fronts(self) -> list[int]:
        """The processes beside it that take requests (`recado serve --workers`)."""
        owner = self.pid
        return [pid for pid in _pids() if _field(pid, 1) == owner and _name(pid) == FRONT]


def remove_cluster(data_dir: Path) -> None:
    """Remove what a stopped PostgreSQL kept outside of its data folder."""
    outside = service_folder(data_dir)
    if outside is not None:
        shutil.rmtree(outside, ignore_errors=True)


@asynccontextmanager
async def running(process: Process, ready: str) -> AsyncIterator[Process]:
    """The process while the block runs."""
    try:
        await process.start(ready)
        yield process
    finally:
        await process.stop()


@asynccontextmanager
async def scratch() -> AsyncIterator[Path]:
    """A folder that is gone afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="recado-bench-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def wrk(
    url: str, token: str, bodies: Path, *, seconds: int, connections: int, suffix: str = "9003", keys: bool = False
) -> dict[str, float]:
    """Load from a process of its own; `requests`, `seconds`, `refused`, `broken`, `p50` and `p99` in ms."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", str(ROOT / "bench" / "load.lua"), url, "--"]
    command += [token, str(bodies), suffix, "keys" if keys else "", str(time.time_ns() // 1_000_000 % 10**9)]
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await child.communicate()
    return summary_of(url, child.returncode, output)


def summary_of(url: str, status: int | None, output: bytes) -> dict[str, float]:
    """What wrk printed of a load whose every request was answered as it should be."""
    _, found, summary = output.decode().partition("\nJSON ")
    if status != 0 or not found:
        raise RuntimeError(f"wrk failed: {output.decode()[-1000:]}")
    result: dict[str, float] = json.loads(summary)
    if result["refused"] or result["broken"]:
        raise RuntimeError(f"{url} refused {result['refused']} and broke {result['broken']} requests")
    return result


def rss(pid: int | None = None) -> int:
    """Resident memory of a process in bytes."""
    return int(Path(f"/proc/{pid or 'self'}/statm").read_text().split()[1]) * PAGE_BYTES


def peak(pid: int) -> int:
    """The most resident memory in bytes that a process had since `forget_peak`."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def forget_peak(pid: int) -> None:
    """Let the peak of a process be what it has now."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def _field(pid: int, index: int) -> int:
    """A field of /proc/PID/stat after the name: 1 = parent, 11 = user ticks, 12 = system ticks; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[index])
    except (FileNotFoundError, ProcessLookupError):
        return 0


def _name(pid: int) -> str:
    """By which `ps -o comm` calls it; empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far; 0 when it is gone."""
    return (_field(pid, 11) + _field(pid, 12)) / TICKS
