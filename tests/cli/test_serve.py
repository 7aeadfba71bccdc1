"""`recado serve` as a process: its first start, its stop, and the commands that run beside it."""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

import recado.app
from recado.cli import serve
from recado.config.settings import load_settings
from recado.engine.clock import SystemClock
from recado.storage.dispatch import current_epoch
from recado.storage.embedded import EmbeddedPostgres

Recado = Callable[..., "subprocess.CompletedProcess[str]"]


class Service:
    """A running `recado serve`; `lines` is what it printed when it was ready."""

    def __init__(self, folder: str, log: Path) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
        self._log = log.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "recado", "serve", "--data-dir", folder, "--listen", "127.0.0.1:0"],
            cwd=log.parent,
            env={**inherited, "PYTHONUNBUFFERED": "1", "RECADO_LOG_FORMAT": "json"},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        assert self.process.stdout is not None
        self.lines = [self.process.stdout.readline().rstrip() for _ in range(2)]
        self.address = self.lines[0].rpartition(" ")[2]

    def get(self, path: str, token: str | None = None, body: Any = None) -> Any:
        """The answer; with a `body`, of a POST."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data, headers)
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """Tell it to stop; return its exit status and what else it had printed."""
        self.process.send_signal(number)
        assert self.process.stdout is not None
        with self.process.stdout as output, self._log:
            rest = output.read()
            return self.process.wait(timeout=60), rest


@pytest.fixture
def start(folder: str, tmp_path: Path) -> Iterator[Callable[[], Service]]:
    running: list[Service] = []

    def begin() -> Service:
        running.append(Service(folder, tmp_path / f"service-{len(running)}.log"))
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
    assert first.lines[1] == f"Documentation {first.address}/docs"
    assert first.get("/readyz")["status"] == "ready"

    # Commands work beside the running service, which takes their keys at once.
    made = json.loads(recado("keys", "create", "--data-dir", folder, "--json").stdout)
    assert first.get("/numbers", made["token"])["total"] == 1

    status, printed = first.stop()
    assert status == 0
    [token] = re.findall(r"test key +(svc_test_\w{43})$", printed, re.MULTILINE)
    [(email, password)] = re.findall(r"sign-in +(\S+) with the password (\w{20})$", printed, re.MULTILINE)

    second = start()
    assert second.get("/numbers", token)["total"] == 1
    session = second.get("/v2/sessions", body={"email": email, "password": password})
    assert session["account"]["role"] == "owner"
    assert second.get("/v2/accounts", session["tokens"]["live"])["total"] == 1
    assert second.stop(signal.SIGINT) == (0, "")


def test_an_address_in_use_is_one_line(recado: Recado, folder: str, start: Callable[[], Service]) -> None:
    running = start()
    owner = owner_epoch(folder)

    done = recado("serve", "--data-dir", folder, "--listen", running.address.removeprefix("http://"))

    assert done.returncode == 1
    assert done.stdout == ""
    lines = [line for line in done.stderr.splitlines() if line.startswith("recado: ")]
    assert lines == ["recado: the address is in use: stop what listens there, or choose another with --listen"]
    assert running.get("/readyz")["status"] == "ready"
    assert owner_epoch(folder) == owner  # the numbers are still its own


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
    """An application that gives up as soon as it has started, and takes its time to stop when told to."""

    made = None
    address = "http://127.0.0.1:0"
    stops = True

    def __init__(self, _settings: object) -> None:
        self.stopped = False

    async def start(self) -> None:
        pass

    async def wait(self) -> None:
        raise RuntimeError("the root gave up")

    async def stop(self) -> None:
        if not self.stops:
            await asyncio.get_running_loop().create_future()


@pytest.mark.parametrize("stops", [True, False])
def test_a_service_that_gives_up_or_does_not_stop_exits_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, stops: bool
) -> None:
    monkeypatch.setattr(recado.app, "Application", Doomed)
    monkeypatch.setattr(Doomed, "stops", stops)
    monkeypatch.setattr(serve, "STOP_LIMIT", 0.01)

    status = asyncio.run(serve._serve(load_settings(data_dir=tmp_path)))

    assert status == 1
    assert "Recado serves http://127.0.0.1:0" in capsys.readouterr().out
