"""Recado as its users run it: the commands in processes of their own, and a client that speaks HTTP to them."""

import asyncio
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import aiohttp
from tests import forked
from tests.clusters import give_cluster
from tests.waiting import until

from recado.storage.embedded.cluster import Cluster
from recado.storage.embedded.service_folder import locate, service_folder

START_LIMIT = 120.0  # seconds; a loaded machine takes several
STOP_LIMIT = 60.0
COMMAND_LIMIT = 120.0
CALL_LIMIT = 60.0  # the service answers within 30


class Program:
    """One command as a process: its standard output and its log go to files that several lives continue."""

    starts_with: ClassVar[Sequence[str]] = ()
    """The command of which the arguments are the rest; none: `recado` itself."""

    def __init__(self, folder: Path, name: str, *arguments: str, **settings: str) -> None:
        """`settings` without the prefix: LOG_LEVEL="debug"."""
        self._folder = folder
        self._arguments = arguments
        self.settings = settings
        self._process: subprocess.Popen[bytes] | forked.Forked | None = None
        self.output = folder / f"{name}.out"
        self.log = folder / f"{name}.log"

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The id of the running process."""
        assert self._process is not None, "the process is not running"
        return self._process.pid

    def spawn(self) -> None:
        with self.output.open("ab") as output, self.log.open("ab") as log:
            if not self.starts_with:
                self._process = forked.spawn(
                    self._arguments, cwd=self._folder, env=_environment(self.settings), stdout=output, stderr=log
                )
                return
            self._process = subprocess.Popen(
                [*self.starts_with, *self._arguments],
                cwd=self._folder,
                env=_environment(self.settings),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=log,
                start_new_session=True,
            )

    def end(self, number: signal.Signals, limit: float = STOP_LIMIT) -> int | None:
        """Send the signal and wait for the end; the exit status, None when the process was not there."""
        process, self._process = self._process, None
        if process is None:
            return None
        process.send_signal(number)
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise AssertionError(
                f"the process did not end within {limit:g} s of {number.name}: {self.tail()}"
            ) from None

    def tail(self) -> str:
        """The last lines of the log, for a failing test."""
        return self.log.read_text(errors="replace")[-3_000:] if self.log.exists() else ""

    def command(self, *arguments: str) -> Any:
        """Run another command on the same data folder; what it prints, as JSON."""
        done = self.attempt(*arguments)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def attempt(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run another command on the same data folder, which may fail."""
        return forked.run(arguments, cwd=self._folder, env=_environment(self.settings), timeout=COMMAND_LIMIT)


class Service(Program):
    """`recado serve` on a data folder and a port of its own, with its embedded PostgreSQL."""

    def __init__(self, folder: Path, *options: str, durable: bool = False, **settings: str) -> None:
        """`options`: of the command. `durable`: it makes its database itself, which waits for the disk."""
        self._given_cluster = not durable and "DATABASE_URL" not in settings
        self.data_dir = Path(settings.get("DATA_DIR", folder / "data"))
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        listen = f"127.0.0.1:{self.port}"
        settings = {"DATA_DIR": str(self.data_dir), "LISTEN": listen, "LOG_FORMAT": "json", "WORKERS": "1", **settings}
        super().__init__(folder, "serve", "serve", *options, **settings)

    async def start(self) -> None:
        """Start, and come back when it is ready to serve."""
        if self._given_cluster:
            await asyncio.to_thread(give_cluster, self.data_dir)
        self.spawn()
        async with aiohttp.ClientSession() as session:
            await until(lambda: self._ready(session), "the service is ready", limit=START_LIMIT)

    async def _ready(self, session: aiohttp.ClientSession) -> bool:
        assert self.running, f"the service ended: {self.tail()}"
        try:
            async with session.get(f"{self.url}/readyz") as answer:
                return answer.status == 200
        except (aiohttp.ClientError, OSError):
            return False

    def key(self, env: str, *, org: str | None = None) -> str:
        """The token of a new key without request limits."""
        chosen = () if org is None else ("--org", org)
        made = self.command("keys", "create", "--env", env, "--scopes", "all", "--unlimited", "--json", *chosen)
        return str(made["token"])

    # Its PostgreSQL -------------------------------------------------------------------------------------------------

    def cluster(self) -> Cluster:
        """The embedded PostgreSQL of the data folder, running or not."""
        return Cluster(locate(self.data_dir))

    async def end_postgres(self, number: signal.Signals) -> None:
        """Send the signal to the postmaster, and come back when it is gone."""
        pid = self.cluster().pid()
        assert pid is not None, "PostgreSQL is not running"
        os.kill(pid, number)
        await until(lambda: not Path(f"/proc/{pid}").exists() or _is_zombie(pid), "PostgreSQL has ended")

    async def wipe(self) -> None:
        """End everything that still runs, and remove what PostgreSQL kept outside of the data folder."""
        self.end(signal.SIGKILL)
        if self.cluster().pid() is not None:
            await self.end_postgres(signal.SIGQUIT)
        folder = service_folder(self.data_dir)
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


class Refused(Exception):
    """The service answered with another status than success."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body


class Api:
    """One caller with one key. `call` answers the body, or raises `Refused`."""

    def __init__(self, url: str, token: str) -> None:
        self.url = self._url = url
        self._headers = {"Authorization": f"Bearer {token}"}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers=self._headers,
            connector=aiohttp.TCPConnector(limit=100),
            timeout=aiohttp.ClientTimeout(total=CALL_LIMIT),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        token: str | None = None,
        timeout: float = CALL_LIMIT,
        **query: str | int,
    ) -> Any:
        """`key`: of idempotency. `token`: the credential of another caller."""
        assert self._session is not None
        async with self._session.request(
            method,
            self._url + path,
            json=body,
            params=query,
            headers={
                **({} if key is None else {"Idempotency-Key": key}),
                **({} if token is None else {"Authorization": f"Bearer {token}"}),
            },
            timeout=aiohttp.ClientTimeout(total=timeout),
        ) as answer:
            content = await answer.json(content_type=None) if answer.status != 204 else None
            if answer.status >= 300:
                raise Refused(answer.status, content)
            return content

    async def pages(self, path: str, **query: str | int) -> AsyncIterator[Any]:
        """Every item of a list with cursors."""
        page = await self.call("GET", path, limit=200, **query)
        while True:
            for item in page["items"]:
                yield item
            if not page.get("nextCursor"):
                return
            page = await self.call("GET", path, limit=200, cursor=page["nextCursor"], **query)

    async def number(
        self,
        name: str,
        *,
        per_second: int = 80,
        per_day: int = 100_000,
        access_token: str | None = None,
        business: str | None = None,
        **simulated: str,
    ) -> Any:
        """A connected number, by default of a business account of its own.

        `simulated`: what the sandbox is told of it (test only).
        """
        new: dict[str, Any] = {
            "phoneNumberId": name,
            "businessAccountId": business or f"business of {name}",
            "displayPhone": f"+1555{abs(hash(name)) % 10_000_000:07}",
            "rateLimit": {"perSecond": per_second, "perDay": per_day},
        }
        if access_token is not None:
            new["accessToken"] = access_token
        number_id = (await self.call("POST", "/numbers", new))["id"]

        async def verified() -> bool:
            return bool((await self.call("GET", f"/numbers/{number_id}"))["status"] == "available")

        await until(verified, "the number is verified", every=0.1)
        number = await self.call("POST", f"/numbers/{number_id}/connect")
        if simulated:
            number = await self.call("POST", f"/v2/sandbox/numbers/{number_id}", simulated)
        return number


@asynccontextmanager
async def running(service: Service) -> AsyncIterator[Service]:
    """The service while the block runs; nothing of it is left behind."""
    try:
        await service.start()
        yield service
    finally:
        await service.wipe()


@contextmanager
def serving(service: Service) -> Iterator[Service]:
    """The same for the tests of a folder, outside of their loop."""
    try:
        asyncio.run(service.start())
        yield service
    finally:
        asyncio.run(service.wipe())


def free_port() -> int:
    """A port of 127.0.0.1 for a program that will start, or start again.

    Wherever the kernel's own range leaves room, it is below: nobody who asks for any port gets it meanwhile.
    """
    lowest_given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = secrets.choice(range(10_000, max(lowest_given, 20_000)))
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _environment(settings: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
    return {**inherited, **{f"RECADO_{name}": value for name, value in settings.items()}}


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
