"""`recado serve` as a process: its first start, its stop, and the commands that run beside it."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import asyncpg
import pytest
from tests import forked
from tests.captured import capture_logs

import recado.app
from recado.cli import serve
from recado.cli.launched import Launched
from recado.config.settings import Settings, load_settings
from recado.domain.core.errors import Unavailable
from recado.engine.clock import SystemClock
from recado.fronts.launcher import STARTS
from recado.http.server import ANSWER_SECONDS, ServerPart
from recado.storage.dispatch.epochs import current_epoch
from recado.storage.dispatch.ownership import Owned, Owner, Ownership
from recado.storage.embedded.embedded import EmbeddedPostgres

Recado = Callable[..., "subprocess.CompletedProcess[str]"]


class Service:
    """A running `recado serve`; `lines` is what it printed when it was ready."""

    def __init__(self, folder: str, log: Path, *options: str, **settings: str) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
        self.log = log
        self._log = log.open("wb")
        reading, writing = os.pipe()
        self._output = os.fdopen(reading)
        with os.fdopen(writing, "wb") as printed:
            self.process = forked.spawn(
                ["serve", "--data-dir", folder, "--listen", "127.0.0.1:0", *options],
                cwd=log.parent,
                env={**inherited, "RECADO_WORKERS": "1", **settings},
                stdout=printed,
                stderr=self._log,
            )
        lines = 1 if settings.get("RECADO_LOG_FORMAT") == "json" else 3
        self.lines = [self._output.readline().rstrip() for _ in range(lines)]
        self.address = self.lines[0].rpartition(" ")[2]

    def get(self, path: str, token: str | None = None, body: Any = None) -> Any:
        """The answer; with a `body`, of a POST."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Tell it to stop; return its exit status and what else it had printed."""
        self.process.send_signal(number)
        with self._output as output, self._log:
            rest = output.read()
            return self.process.wait(timeout=60), rest


@pytest.fixture
def start(folder: str, tmp_path: Path) -> Iterator[Callable[..., Service]]:
    running: list[Service] = []

    def begin(*options: str, **settings: str) -> Service:
        running.append(Service(folder, tmp_path / f"service-{len(running)}.log", *options, **settings))
        return running[-1]

    yield begin
    for service in running:
        if service.process.poll() is None:
            service.stop(signal.SIGKILL)


def test_a_first_start_tells_its_addresses_and_keys_once_and_stops_when_told(
    recado: Recado, folder: str, start: Callable[[], Service]
) -> None:
    first = start()
    assert re.fullmatch(r"Recado serves http://127\.0\.0\.1:\d+", first.lines[0])
    assert first.lines[1:3] == [f"Documentation {first.address}/docs", f"Console       {first.address}/console"]
    assert first.get("/readyz")["status"] == "ready"

    # Commands work beside the running service, which takes their keys at once.
    made = json.loads(recado("keys", "create", "--data-dir", folder, "--json").stdout)
    assert first.get("/numbers", made["token"])["total"] == 1

    # One process has nothing to reload, and goes on.
    first.process.send_signal(signal.SIGHUP)
    assert first.get("/numbers", made["token"])["total"] == 1
    status, printed = first.stop()
    assert status == 0
    assert first.log.read_text().count("reload_nothing_to_do") == 1
    secrets = Path(folder) / "first-start.txt"  # a pipe is no terminal
    assert printed.endswith(f"Its keys and its sign-in are in {secrets}: read it, then remove it.\n")
    assert "svc_" not in printed
    assert secrets.stat().st_mode & 0o777 == 0o600
    told = secrets.read_text()
    [token] = re.findall(r"test key +(svc_test_\w{43})$", told, re.MULTILINE)
    [(email, password)] = re.findall(r"sign-in +(\S+) with the password (\w{20})$", told, re.MULTILINE)

    second = start()
    assert second.get("/numbers", token)["total"] == 1
    session = second.get("/v2/sessions", body={"email": email, "password": password})
    assert session["account"]["role"] == "owner"
    assert second.get("/v2/accounts", session["tokens"]["live"])["total"] == 1
    names_it = f"The keys and the sign-in of the first start are in {secrets}: read it, then remove it.\n"
    assert second.stop(signal.SIGINT) == (0, names_it)
    secrets.unlink()


def test_an_address_in_use_is_one_line(recado: Recado, folder: str, start: Callable[[], Service]) -> None:
    running = start()
    owner = owner_epoch(folder)

    done = recado("serve", "--data-dir", folder, "--listen", running.address.removeprefix("http://"))

    assert done.returncode == 1
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("recado: ")]
    address = running.address.removeprefix("http://")
    assert lines == [f"recado: {address} is in use: stop what listens there, or choose another with --listen"]
    assert running.get("/readyz")["status"] == "ready"
    assert owner_epoch(folder) == owner  # the numbers are still its own


@pytest.mark.long
def test_nothing_is_made_where_the_address_is_in_use(recado: Recado, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        done = recado("serve", "--data-dir", str(folder), "--listen", address)

    assert (done.returncode, done.stdout) == (1, "")
    assert f"recado: {address} is in use: stop what listens there" in done.stderr
    assert not folder.exists()


def test_a_second_service_on_one_folder_says_who_runs_and_ends_unless_it_is_to_take_over(
    recado: Recado, folder: str, start: Callable[..., Service]
) -> None:
    running = start()
    owner = owner_epoch(folder)

    done = recado("serve", "--data-dir", folder, "--listen", "127.0.0.1:0")

    assert done.returncode == 1
    assert done.stdout == ""
    [line] = [line for line in done.stderr.splitlines() if line.startswith("recado: ")]
    told = re.escape(f"recado: process {running.process.pid} on {socket.gethostname()} (since ")
    assert re.match(
        told
        + r"\S+Z\) serves this database: stop it first, or, only if it hangs, take its place with .* --take-over'$",
        line,
    )
    assert running.get("/readyz")["status"] == "ready"
    assert owner_epoch(folder) == owner

    next_one = start("--take-over")

    assert running.process.wait(timeout=60) == 1
    running.stop()  # closes what it printed to
    assert f"process {next_one.process.pid} on {socket.gethostname()}" in running.log.read_text()
    assert "has taken the numbers over" in running.log.read_text()
    # It says where it is when asked, and goes on; and where it was when it crashed.
    next_one.process.send_signal(signal.SIGUSR1)
    assert next_one.get("/readyz")["status"] == "ready"
    assert f" in owner, pid {next_one.process.pid}\n" in next_one.log.read_text()
    assert "Fatal Python error" not in next_one.log.read_text()
    status, _ = next_one.stop(signal.SIGSEGV)
    assert status == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in next_one.log.read_text()
    assert f" in owner, pid {next_one.process.pid}\n" in next_one.log.read_text().rpartition("Fatal Python error")[2]
    after_a_kill = start()
    assert after_a_kill.get("/readyz")["status"] == "ready"


@pytest.mark.long
def test_a_service_that_lost_the_numbers_says_so_once_and_waits_for_no_request_that_does_not_end(
    start: Callable[..., Service],
) -> None:
    running = start(RECADO_LOG_FORMAT="json")
    url = urllib.parse.urlsplit(json.loads(running.lines[0])["address"])

    async def answered() -> tuple[bytes, float]:
        """The answer to a body that never ends, and when it came."""
        reader, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.write(UNENDING)
        taking_over = asyncio.create_task(asyncio.to_thread(start, "--take-over"))
        answer = await reader.read()
        came_at = SystemClock().now().timestamp()
        await taking_over
        writer.close()
        return answer, came_at

    answer, came_at = asyncio.run(answered())

    assert running.process.wait(timeout=60) == 1
    running.stop()  # closes what it printed to
    assert answer.split()[1] == b"503"
    entries = [json.loads(line) for line in running.log.read_text().splitlines()]
    [lost] = [entry for entry in entries if entry["message"] == "ownership_lost"]
    assert came_at - datetime.fromisoformat(lost["timestamp"]).timestamp() < ANSWER_SECONDS


UNENDING = b"POST /v2/sessions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{"


@pytest.mark.long
def test_rows_that_a_frozen_service_holds_do_not_keep_its_successor_from_starting(
    folder: str, start: Callable[..., Service]
) -> None:
    frozen = start()

    async def taken_over() -> Service:
        server = EmbeddedPostgres(Path(folder), clock=SystemClock())
        arguments = await server.start()
        looking = await asyncpg.connect(**arguments, server_settings={"application_name": "another program"})
        try:
            names = {row[0] for row in await looking.fetch(NAMES_OF_RECADO)}
            frozen.process.send_signal(signal.SIGSTOP)
            [name] = names  # of all its sessions
            # As one of its sessions that stands in a transaction.
            holding = await asyncpg.connect(
                **arguments,
                server_settings={"application_name": name, "idle_in_transaction_session_timeout": "60s"},
            )
            await holding.execute("begin")
            await holding.execute("select from shards where shard = 7 for update")
            next_one = await asyncio.to_thread(start, "--take-over")
            assert holding.is_closed()
            assert await looking.fetchval("select 1") == 1
            assert {row[0] for row in await looking.fetch(NAMES_OF_RECADO)}.isdisjoint(names)
            return next_one
        finally:
            await looking.close()
            await server.stop()

    next_one = asyncio.run(taken_over())

    assert next_one.get("/readyz")["status"] == "ready"
    frozen.process.send_signal(signal.SIGCONT)
    assert frozen.process.wait(timeout=60) == 1
    frozen.stop()  # closes what it printed to
    assert "has taken the numbers over" in frozen.log.read_text()
    assert next_one.get("/readyz")["status"] == "ready"


NAMES_OF_RECADO = """
    select application_name from pg_stat_activity
    where datname = current_database() and application_name like 'recado%'
"""


async def test_who_could_not_be_ended_is_named_where_the_next_one_cannot_start() -> None:
    ownership = Ownership({}, clock=SystemClock(), elapsed=SystemClock.elapsed, host="web-2", pid=42)
    with pytest.raises(Unavailable), recado.app._blaming(ownership):
        raise Unavailable("The database is not available: try again shortly.")
    ownership.not_ended = Owner("web-1", 4711, datetime(2026, 1, 1, tzinfo=UTC))
    with (
        pytest.raises(Owned, match=r"^process 4711 on web-1 \(.*\) still has sessions .* end that process"),
        recado.app._blaming(ownership),
    ):
        raise Unavailable("The database is not available: try again shortly.")


@pytest.mark.long
def test_every_line_is_json_where_the_log_is(
    recado: Recado, folder: str, start: Callable[..., Service], tmp_path: Path
) -> None:
    settings = {"LOG_FORMAT": "json", "LISTN": "misspelled"}
    running = Service(folder, tmp_path / "json.log", **{f"RECADO_{name}": value for name, value in settings.items()})
    try:
        address = json.loads(running.lines[0])["address"]
        done = recado("serve", "--data-dir", folder, "--listen", address.removeprefix("http://"), **settings)
    finally:
        running.stop()

    assert done.returncode == 1
    entries = [json.loads(line) for line in (*running.lines[:1], *(done.stdout + done.stderr).splitlines())]
    entries += [json.loads(line) for line in (tmp_path / "json.log").read_text().splitlines()]
    reasons = [entry["reason"] for entry in entries if entry["message"] == "not_started"]
    assert reasons == [
        f"{address.removeprefix('http://')} is in use: stop what listens there, or choose another with --listen"
    ]
    assert [entry for entry in entries if not entry["timestamp"].endswith("Z")] == []
    unknown = [(entry["name"], entry["meant"]) for entry in entries if entry["message"] == "setting_unknown"]
    assert ("RECADO_LISTN", "RECADO_LISTEN") in unknown


def test_an_address_of_another_machine_is_one_line(recado: Recado, folder: str) -> None:
    done = recado("serve", "--data-dir", folder, "--listen", "192.0.2.1:8080")

    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith("recado: ")]
    assert lines == [
        "recado: 192.0.2.1:8080 is not an address of this machine: choose one with --listen, such as 127.0.0.1:8080"
    ]


def owner_epoch(folder: str) -> int:
    """Which service owns the numbers, by the database."""

    async def read() -> int:
        server = EmbeddedPostgres(Path(folder), clock=SystemClock())
        connection = await asyncpg.connect(**await server.start())
        try:
            return await current_epoch(connection)
        finally:
            await connection.close()
            await server.stop()

    return asyncio.run(read())


class Doomed:
    """An application that gives up as soon as it has started. `flushes`: whether everything is written at its end."""

    made = None
    left_untold: tuple[str, ...] = ()
    address = "http://127.0.0.1:0"
    flushes = True

    def __init__(self, _settings: object, **_: object) -> None:
        self.stopped = False

    async def start(self, *, assembled: Callable[[], None]) -> None:
        pass

    async def wait(self) -> None:
        raise RuntimeError("the root gave up")

    async def stop(self) -> bool:
        self.stopped = True
        return self.flushes


class Told(Doomed):
    """An application that runs until a signal comes, which it sends itself."""

    async def wait(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    ("application", "flushes", "status"), [(Doomed, True, 1), (Doomed, False, 1), (Told, True, 0), (Told, False, 3)]
)
def test_the_exit_status_tells_how_the_service_ended(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    application: type[Doomed],
    flushes: bool,
    status: int,
) -> None:
    monkeypatch.setattr(recado.app, "Application", application)
    monkeypatch.setattr(application, "flushes", flushes)
    begun: list[None] = []

    assert asyncio.run(serve._serve(load_settings(data_dir=tmp_path), lambda: begun.append(None), False)) == status

    assert begun == [None]
    assert "Recado serves http://127.0.0.1:0" in capsys.readouterr().out


class Opened:
    """An installation that is open, and from which nothing can be made."""

    made = owner_password = database = None
    left_untold: tuple[str, ...] = ()

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def start(self, **_: object) -> None:
        pass

    async def stop(self, *, within: float) -> None:
        pass


async def test_a_stop_closes_the_table_of_limits_that_processes_share(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    tables: list[Any] = []

    def no_server(*_: object, part: ServerPart) -> None:
        tables.append(part.shared_buckets)
        raise RuntimeError("no server")

    monkeypatch.setattr(recado.app, "Installation", Opened)
    monkeypatch.setattr(recado.app, "Assembly", lambda *_: SimpleNamespace(system=None))
    monkeypatch.setattr(recado.app, "route_table", lambda *_, **__: ())
    monkeypatch.setattr(recado.app, "http_server", no_server)
    with pytest.raises(RuntimeError, match="no server"):
        await recado.app.Application(load_settings(data_dir=tmp_path, listen="127.0.0.1:0", workers=2)).start()
    assert [each.descriptor for each in tables] == [-1]


@pytest.mark.parametrize(
    ("given", "cores", "allowed", "workers", "because"),
    [
        (3, 1.0, 20, 3, "setting"),
        (None, 2.0, 20, 1, "cores"),
        (None, 4.0, 100, 2, "cores"),
        (None, 8.0, 120, 4, "cores"),
        (None, 8.0, 97, 3, "max_connections of the database"),
        (None, 8.0, 20, 1, "max_connections of the database"),
    ],
)
async def test_a_start_says_of_how_many_processes_the_service_is_and_why(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    given: int | None,
    cores: float,
    allowed: int,
    workers: int,
    because: str,
) -> None:
    async def connections_allowed(_: object) -> int:
        return allowed

    def no_providers(settings: Settings, *_: object) -> None:
        chosen.append(settings.processes)
        raise RuntimeError("no providers")

    chosen: list[int] = []
    monkeypatch.setattr(recado.app, "Installation", Opened)
    monkeypatch.setattr(recado.app, "connections_allowed", connections_allowed)
    monkeypatch.setattr(recado.app, "adapters_of", no_providers)
    settings = load_settings(data_dir=tmp_path, listen="127.0.0.1:0", workers=given)
    with capture_logs() as logs, pytest.raises(RuntimeError, match="no providers"):
        await recado.app.Application(settings, cores=cores).start()
    assert chosen == [workers]
    assert [(each["count"], each["because"]) for each in logs if each["event"] == "workers"] == [(workers, because)]


async def test_the_collector_looks_through_all_that_was_made_before_anybody_is_answered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It holds the event loop for some tenths of a second."""
    done: list[str] = []

    class Server:
        async def take_address(self) -> None:
            done.append("address")
            raise RuntimeError("no address")

        async def stop(self) -> None:
            pass

    def routes(*_: object, **__: object) -> tuple[()]:
        done.append("routes")
        return ()

    monkeypatch.setattr(recado.app, "Installation", Opened)
    monkeypatch.setattr(recado.app, "Assembly", lambda *_: SimpleNamespace(system=None))
    monkeypatch.setattr(recado.app, "route_table", routes)
    monkeypatch.setattr(recado.app, "http_server", lambda *_, **__: Server())
    monkeypatch.setattr(serve, "spare_the_collector", lambda: done.append("collector"))
    with pytest.raises(RuntimeError, match="no address"):
        await serve._serve(load_settings(data_dir=tmp_path, listen="127.0.0.1:0", workers=1), lambda: None)
    assert done == ["routes", "collector", "address"]


@pytest.mark.parametrize(("given", "cores", "fronts"), [(3, 1.0, 2), (None, 4.0, 1), (None, 2.0, 0), (1, 8.0, 0)])
def test_the_processes_of_fronts_begin_before_the_program_is_loaded_and_end_with_a_start_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, given: int | None, cores: float, fronts: int
) -> None:
    done: list[str] = []

    class Processes:
        def __init__(self, program: str, fork: None = None) -> None:
            assert program == "this one"

        def begin_early(self, count: int) -> None:
            done.append(f"begin {count}")

        def keep(self, count: int) -> None:
            done.append(f"keep {count}")

    async def start(*_: object) -> int:
        done.append("start")
        raise RuntimeError("no place")

    def launch(listening: list[socket.socket], command: list[str], **_: object) -> Launched:
        assert command[1:] == ["-P", "-m", "recado", "serve", "--listen=127.0.0.1:0", f"--data-dir={tmp_path}"] + (
            [] if given is None else [f"--workers={given}"]
        )
        control, theirs = socket.socketpair()
        theirs.close()
        done.append("launch")
        return Launched(control.detach(), [each.detach() for each in listening])

    monkeypatch.setattr(serve, "take_name", lambda _: None)
    monkeypatch.setattr(serve, "launch", launch)
    monkeypatch.setattr(serve, "tell_stacks", lambda: None)  # of this process, pytest sees to that
    monkeypatch.setattr(serve, "configure_logging", lambda *_: None)  # and other tests to its log
    monkeypatch.setattr(serve, "program_on_disk", lambda: "this one")
    monkeypatch.setattr(serve, "FrontProcesses", Processes)
    monkeypatch.setattr(serve, "usable_cores", lambda: cores)
    monkeypatch.setattr(serve, "_serve", start)
    with pytest.raises(RuntimeError, match="no place"):
        serve.serve(data_dir=tmp_path, listen="127.0.0.1:0", workers=given, take_over=True)
    assert done == (["launch", f"begin {fronts}", "start", "keep 0"] if fronts else ["start"])


async def test_a_start_ends_the_processes_for_which_the_database_has_no_connections(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def connections_allowed(_: object) -> int:
        return 97

    def no_providers(*_: object) -> None:
        raise RuntimeError("no providers")

    kept: list[int] = []
    monkeypatch.setattr(recado.app, "Installation", Opened)
    monkeypatch.setattr(recado.app, "connections_allowed", connections_allowed)
    monkeypatch.setattr(recado.app, "adapters_of", no_providers)
    processes: Any = SimpleNamespace(keep=kept.append)
    settings = load_settings(data_dir=tmp_path, listen="127.0.0.1:0")
    with pytest.raises(RuntimeError, match="no providers"):
        await recado.app.Application(settings, cores=8.0, processes=processes).start()
    assert kept == [2]


async def test_an_owner_says_again_and_again_that_it_starts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    launcher, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    class Slow(Opened):
        async def start(self, **_: object) -> None:
            said = [await asyncio.get_running_loop().sock_recv(launcher, 64) for _ in range(3)]
            assert said == [STARTS] * 3
            raise RuntimeError("it was heard")

    launcher.setblocking(False)
    monkeypatch.setattr(recado.app, "Installation", Slow)
    monkeypatch.setattr(serve, "SAYS_EVERY", 0.01)
    owner, settings = Launched(control.detach()), load_settings(data_dir=tmp_path, listen="127.0.0.1:0", workers=2)
    try:
        with launcher, pytest.raises(RuntimeError, match="it was heard"):
            await serve._serve(settings, lambda: None, owner=owner)
    finally:
        owner.close()


class Starting:
    """An installation whose start is told to end, with a part that cannot write what it holds."""

    application: recado.app.Application
    made = owner_password = None
    left_untold: tuple[str, ...] = ()

    def __init__(self, *_: object, **__: object) -> None:
        pass

    async def start(self, **_: object) -> None:
        async def stop() -> None:
            raise RuntimeError("the database is away")

        self.application._shutdown.add("part", stop)
        os.kill(os.getpid(), signal.SIGHUP)  # says nothing to a start
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.get_running_loop().create_future()

    async def stop(self, *, within: float) -> None:
        pass


def test_the_exit_status_tells_what_a_start_that_was_told_to_end_could_not_write(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Application(recado.app.Application):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            Starting.application = self

    monkeypatch.setattr(recado.app, "Installation", Starting)
    monkeypatch.setattr(recado.app, "Application", Application)

    assert asyncio.run(serve._serve(load_settings(data_dir=tmp_path, listen="127.0.0.1:0"), lambda: None, False)) == 3
