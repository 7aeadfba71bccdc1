"""Machines of a cluster on this one: each with a node of Ray, an address of its own (127.0.0.2 …), and an entry."""

import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import aiohttp
from tests.program import free_port
from tests.waiting import until

START_LIMIT = 120.0  # seconds; Ray takes ten on a busy machine
COMMAND_LIMIT = 200.0  # seconds
FOUND_SOON = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
"""As docs/cluster.md has them: a machine that says nothing for 3 s is gone."""
_STORE = 80 * 2**20  # bytes


def family(pid: int) -> list[int]:
    """A process and all below it, parents first."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += [int(child) for child in (task / "children").read_text().split()]
    return found


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


class Machine:
    """A node of Ray and an entry, both with this environment. `head`: where Ray's head is, None for the head itself."""

    def __init__(
        self, folder: Path, name: str, ip: str, environment: Mapping[str, str], head: str | None, cells: int
    ) -> None:
        self.name = name
        self.ip = ip
        self.head = head
        self.port = free_port()
        self.url = f"http://{ip}:{self.port}"
        self.log = folder / f"{name}.entry.log"
        self._ray_log = folder / f"{name}.ray.log"
        self._folder = folder
        self._environment = {
            **environment, "RECADO_DATA_DIR": str(folder / name), "RECADO_LISTEN": f"{ip}:{self.port}",
        }  # fmt: skip
        self._cells = cells
        self._node: subprocess.Popen[bytes] | None = None
        self._entry: subprocess.Popen[bytes] | None = None

    async def start_node(self, port: int, session: Path) -> None:
        """Give it to Ray. `port`: of the head; `session`: where Ray keeps its files."""
        at = f"{self.ip}:{port}" if self.head is None else f"{self.head}:{port}"
        how = (
            ["--head", "--port", str(port), "--temp-dir", str(session), "--include-dashboard", "false"]
            if self.head is None
            else ["--address", at]
        )
        with self._ray_log.open("wb") as log:
            self._node = subprocess.Popen(
                [
                    Path(sys.executable).with_name("ray"), "start", *how, "--node-ip-address", self.ip,
                    "--num-cpus", "1", "--object-store-memory", str(_STORE),
                    "--resources", json.dumps({"recado": self._cells}), "--min-worker-port", "0",
                    "--max-worker-port", "0",
                    "--dashboard-agent-listen-port", str(free_port()), "--block",
                ],
                cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip
        self._environment["RECADO_CLUSTER"] = at
        await until(self._node_started, f"the node {self.name} is there", limit=START_LIMIT, every=0.1)

    def _node_started(self) -> bool:
        assert self._node is not None
        said = self._ray_log.read_text(errors="replace")
        assert self._node.poll() is None, said[-2_000:]
        return "Ray runtime started" in said

    async def node_again(self, port: int, session: Path) -> None:
        """Its node has ended, or does so, as its head does not know it; give the machine to Ray again."""
        node = self._node
        assert node is not None
        await until(lambda: node.poll() is not None, f"the node {self.name} ends", limit=START_LIMIT)
        await self.start_node(port, session)

    def spawn_entry(self) -> None:
        with self.log.open("ab") as log:
            self._entry = subprocess.Popen(
                [sys.executable, "-P", "-m", "recado", "serve", "--cluster"], cwd=self._folder, env=self._environment,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    async def entry_serves(self) -> None:
        await until(lambda: '"serving"' in self.log.read_text(), f"the entry {self.name} serves", limit=START_LIMIT)

    @property
    def entry_runs(self) -> bool:
        return self._entry is not None and self._entry.poll() is None

    def processes(self) -> list[int]:
        roots = [each.pid for each in (self._node, self._entry) if each is not None]
        return [pid for root in roots for pid in family(root)]

    def service_of(self, cell: str) -> int | None:
        """The process of a cell's service, if it is here."""
        wanted = f"/{self.name}/{cell} "
        lines = {pid: command_line(pid) + " " for pid in self.processes()}
        found = [pid for pid, line in lines.items() if "-m recado serve --listen" in line and wanted in line]
        return found[0] if found else None

    def actor_of(self, cell: str) -> int | None:
        """The process of its actor."""
        service = self.service_of(cell)
        if service is None:
            return None
        return int(Path(f"/proc/{service}/stat").read_text().rsplit(")", 1)[1].split()[1])

    def stand_still(self) -> list[int]:
        """Stop everything, as if its power or its network were gone; the processes."""
        stopped: list[int] = []
        while more := [pid for pid in self.processes() if pid not in stopped]:
            for pid in more:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            stopped += more
        return stopped

    def kill(self) -> None:
        """The power is gone."""
        for pid in self.stand_still():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for each in (self._node, self._entry):
            if each is not None:
                each.wait()
        self._node = self._entry = None

    def end_node(self) -> None:
        """Tell its node to end in order; that takes its time."""
        assert self._node is not None
        self._node.send_signal(signal.SIGTERM)

    def command(self, *arguments: str) -> Any:
        """What a command of an operator says here."""
        done = subprocess.run(
            [sys.executable, "-P", "-m", "recado", *arguments, "--json"], cwd=self._folder, env=self._environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMMAND_LIMIT, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-2_000:]
        return json.loads(done.stdout)

    def end_entry(self) -> int | None:
        """In order; its status."""
        entry, self._entry = self._entry, None
        if entry is None:
            return None
        entry.send_signal(signal.SIGTERM)
        return entry.wait(60)


class Machines:
    """A head that runs no cell, and three machines that run two each at most."""

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith(("RECADO_", "RAY_"))}
        environment = {
            **inherited, **FOUND_SOON, "RAY_USAGE_STATS_ENABLED": "0", "RECADO_LOG_FORMAT": "json",
            "RECADO_TRUSTED_PROXIES": "127.0.0.0/8", "RECADO_STORAGE_DIR": str(folder / "media"), "RECADO_WORKERS": "1",
            "RECADO_CONNECTIONS_PER_ADDRESS": "1000", **settings,
        }  # fmt: skip
        self.session = Path(mkdtemp(prefix="ray-"))  # sockets have short names
        self.port = free_port()
        self.head = Machine(folder, "head", "127.0.0.2", environment, None, 0)
        self.all = [
            Machine(folder, name, f"127.0.0.{ip}", environment, self.head.ip, 2)
            for ip, name in enumerate(("one", "two", "three"), 3)
        ]

    async def start(self) -> None:
        for each in (self.head, *self.all):
            await each.start_node(self.port, self.session)
        for each in self.all:
            each.spawn_entry()
        for each in self.all:
            await each.entry_serves()

    async def again(self, machine: Machine) -> None:
        """One that was killed is there again."""
        machine.log.unlink()
        await machine.start_node(self.port, self.session)
        machine.spawn_entry()
        await machine.entry_serves()

    def with_service(self, cell: str) -> Machine | None:
        return next((each for each in self.all if each.service_of(cell) is not None), None)

    async def placed(self, cell: str) -> Machine:
        """Where it runs and answers through every entry there is."""

        async def there() -> Machine | None:
            machine = self.with_service(cell)
            entries = [each for each in self.all if each.entry_runs]
            said = [place_by(each, cell) for each in entries]
            if machine is None or any(url is None or machine.ip not in url for url in said):
                return None
            return machine if await _answers(str(said[0])) else None

        return await until(there, f"the cell {cell} has its place", limit=START_LIMIT, every=0.1)

    def wipe(self) -> None:
        for each in (*self.all, self.head):
            each.kill()
        shutil.rmtree(self.session, ignore_errors=True)


async def _answers(url: str) -> bool:
    try:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except (aiohttp.ClientError, OSError):
        return False


def place_by(machine: Machine, cell: str) -> str | None:
    """Where an entry said last that the cell is."""
    place = None
    for line in machine.log.read_text().splitlines():
        if re.search(r'"cell_(placed|moved|without_place)"', line):
            said = json.loads(line)
            if said["cell"] == cell:
                place = said.get("url")
    return place


def token() -> str:
    return secrets.token_urlsafe(24)
