"""`recado doctor` looks, changes nothing, and names what is wrong: also databases of this machine that nobody uses."""

import asyncio
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Service, free_port, running
from tests.required import as_root

from recado.cli.doctor import command
from recado.cli.doctor import database as checks
from recado.cli.doctor.checks import left_behind
from recado.cli.doctor.finding import Finding, Verdict
from recado.cli.doctor.machine import machine
from recado.cli.doctor.running import Looked, is_ours
from recado.config.settings import Settings
from recado.descriptors import LARGEST_RESERVE
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch.ownership import Owner
from recado.storage.embedded.abandoned_clusters import Abandoned
from recado.storage.embedded.backup import UNFINISHED
from recado.storage.embedded.cluster_lock import FileLock
from recado.storage.embedded.service_folder import DATA_FOLDER, SERVICE_ROOT, USERS_LOCK

Recado = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def left(tmp_path: Path) -> Iterator[Path]:
    """The folder of a database whose data folder is gone."""
    folder = SERVICE_ROOT / f"doctor-{tmp_path.name}-{os.getpid()}"
    (folder / "cluster").mkdir(parents=True)
    (folder / "cluster" / "1").write_bytes(b"x" * 3 * 2**20)
    (folder / DATA_FOLDER).write_text(f"{tmp_path / 'gone'}\n")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def warnings_of(recado: Recado, folder: Path) -> list[str]:
    """What the doctor warns of a folder. It needs no database for that."""
    report = json.loads(recado("doctor", "--json", DATABASE_URL="postgresql://127.0.0.1:1/recado").stdout)
    return [
        check["text"]
        for check in report["checks"]
        if check["subject"] == "database" and check["verdict"] == "warning" and check["text"].startswith(f"{folder} (")
    ]


def run(command: str) -> int:
    return subprocess.run(["/bin/sh", "-c", command], check=False).returncode


@pytest.mark.long
@as_root
def test_a_database_that_nobody_points_to_is_named_with_a_command_that_removes_it_unless_it_is_used(
    recado: Recado, left: Path, tmp_path: Path
) -> None:
    (text,) = warnings_of(recado, left)
    assert text.startswith(f"{left} (3 MiB) was the database of {tmp_path / 'gone'}, which is gone or has another one.")
    assert left.is_dir()
    remove = text.rpartition(": ")[2]

    user = FileLock(left / USERS_LOCK)
    assert user.try_take(shared=True)
    assert warnings_of(recado, left) == []
    assert (run(remove), left.is_dir()) == (1, True)

    user.release()
    assert (run(remove), left.exists()) == (0, False)


def test_databases_that_nobody_points_to_are_one_line_and_programs_are_told_each(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left = [Abandoned(Path("/var/lib/recado") / name, Path("/gone"), 3 * 2**20, None) for name in ("a-1", "b-2")]

    async def examine(_: object) -> list[Finding]:
        return left_behind(left)

    monkeypatch.setattr(command, "examine", examine)
    assert command.doctor() == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("warn  database   2 folders in /var/lib/recado (6 MiB) were databases of data folders")
    assert "'recado doctor --json' names each, with the command that removes it" in line
    assert command.doctor(as_json=True) == 0
    told = [check["text"] for check in json.loads(capsys.readouterr().out)["checks"]]
    assert [text.partition(" (")[0] for text in told] == ["/var/lib/recado/a-1", "/var/lib/recado/b-2"]
    assert left_behind(left[:1])[0].text == told[0]
    assert left_behind([]) == []


@pytest.mark.long
@as_root
def test_a_database_whose_data_folder_points_to_it_is_not_named(recado: Recado, left: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "postgres.location").write_text(f"{left}\n")
    assert warnings_of(recado, left) == []


def findings(recado: Recado, *arguments: str, **settings: str) -> dict[str, list[tuple[str, str]]]:
    """Verdict and text of each finding, by subject."""
    report = json.loads(recado("doctor", "--json", *arguments, **settings).stdout)
    found: dict[str, list[tuple[str, str]]] = {}
    for check in report["checks"]:
        found.setdefault(check["subject"], []).append((check["verdict"], check["text"]))
    return found


def test_nothing_is_made_where_nothing_is(recado: Recado, tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    found = findings(recado, "--data-dir", str(data_dir), LISTEN=f"127.0.0.1:{free_port()}")
    assert ("ok", f"none yet: 'recado serve' makes it in {data_dir}") in found["database"]
    assert found["address"][0][0] == "ok"
    assert {verdict for verdict, _ in found["disk"] + found["limits"]} <= {"ok", "warning"}
    assert not data_dir.exists()


@pytest.mark.parametrize(
    ("hard", "verdict", "told"),
    [
        (resource.RLIM_INFINITY, "ok", "any number of"),
        (2 * LARGEST_RESERVE, "ok", "64512"),
        (2 * LARGEST_RESERVE - 2, "warning", "8000 calls to a provider at a time, 3999 for push and 20000 to webhooks"),
        (4_096, "warning", "896 calls to a provider at a time, 224 for push and 672 to webhooks"),
    ],
)
def test_a_limit_of_open_files_that_costs_calls_is_told_with_what_is_left(
    hard: int, verdict: str, told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1_024, hard))
    found = {each.subject: each for each in machine(Settings(_env_file=None, data_dir=tmp_path))}
    assert found["limits"].verdict == verdict
    assert told in found["limits"].text


@pytest.mark.long
def test_an_interrupted_restore_is_a_failure_in_the_words_of_serve(recado: Recado, tmp_path: Path) -> None:
    (tmp_path / UNFINISHED).touch()
    listen = f"127.0.0.1:{free_port()}"
    found = findings(recado, "--data-dir", str(tmp_path), LISTEN=listen)
    serve = recado("serve", "--data-dir", str(tmp_path), LISTEN=listen)
    assert [verdict for verdict, _ in found["database"]][:1] == ["failure"]
    assert serve.stderr.splitlines()[-1] == f"recado: {found['database'][0][1]}"


def test_another_program_at_the_address_is_named(recado: Recado, tmp_path: Path) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        listen = f"127.0.0.1:{server.server_port}"
        found = findings(recado, "--data-dir", str(tmp_path / "data"), LISTEN=listen)
        server.shutdown()
    text = f"another program listens on {listen}: stop it, or choose another address"
    assert found["address"] == [("failure", text)]


async def test_a_running_service_is_looked_at_and_a_stopped_one_is_not_started(tmp_path: Path) -> None:
    async with running(Service(tmp_path)) as service:
        async with Api(service.url, await asyncio.to_thread(service.key, "test")) as api:
            customer = await Customer.arrive(api, per_second=1)
            for _ in range(20):
                await customer.send(phone("1234"))
            report = await asyncio.to_thread(doctor, service)
        found = {check["subject"]: (check["verdict"], check["text"]) for check in report}
        assert found["service"] == ("ok", f"runs on 127.0.0.1:{service.port}, and takes work")
        assert found["durability"] == (
            "failure", "fsync is off: what was accepted can be lost with the power; switch it on",
        )  # fmt: skip
        assert found["queue"][1].endswith(f" s, at {customer.number_id}") or found["queue"][0] == "ok"
        assert "messages are ready; the oldest has waited for" in found["queue"][1]
        assert found["webhooks"] == ("ok", "none is failing; 0 deliveries are due")
        assert found["owner"][1].startswith(f"process {service.pid} on ")
        assert found["owner"][1].endswith(" serves this database")

        elsewhere = Service(tmp_path)  # the same data folder, and another port
        report = await asyncio.to_thread(doctor, elsewhere)
        found = {check["subject"]: (check["verdict"], check["text"]) for check in report}
        assert found["address"][1].endswith(f"127.0.0.1:{elsewhere.port}, which is free")
        assert found["owner"][1].startswith(f"process {service.pid} on ")
        assert found["owner"][1].endswith(f" serves this database, and not on 127.0.0.1:{elsewhere.port}")

        service.end(signal.SIGTERM)
        stopped = [check["text"] for check in await asyncio.to_thread(doctor, service)]
        assert any(text.endswith("does not run: start the service, and ask again") for text in stopped)
        assert service.cluster().pid() is None


@pytest.mark.long
async def test_a_service_of_another_data_folder_at_the_address_is_not_taken_for_ones_own(tmp_path: Path) -> None:
    async with running(Service(tmp_path)) as service, running(Service(tmp_path / "other")) as other:
        for folder in (tmp_path / "empty", other.data_dir):  # nothing runs there; a service does, on its own port
            report = await asyncio.to_thread(doctor, service, "--data-dir", str(folder))
            found = {check["subject"]: (check["verdict"], check["text"]) for check in report}
            text = (
                f"the service on 127.0.0.1:{service.port} is not of the data folder {folder}: "
                "name its folder with --data-dir, or choose another address for this one"
            )
            assert found["service"] == ("failure", text)
        assert found["owner"][1].startswith(f"process {other.pid} on ")
        assert found["owner"][1].endswith(f" serves this database, and not on 127.0.0.1:{service.port}")


@pytest.mark.parametrize("changed", [{"host": "elsewhere"}, {"pid": None}, {"pid": 2**22 + 1}])
def test_what_nothing_tells_is_not_claimed(changed: dict[str, object]) -> None:
    here = Owner(socket.gethostname(), os.getpid(), None)
    assert is_ours(Looked(owner=here, asked=True), free_port()) is False
    assert is_ours(Looked(owner=replace(here, **changed), asked=True), free_port()) is None  # type: ignore[arg-type]
    assert is_ours(Looked(), free_port()) is None


def doctor(service: Service, *arguments: str) -> list[dict[str, str]]:
    done = service.attempt("doctor", "--json", *arguments)
    return list(json.loads(done.stdout)["checks"])


@pytest.mark.parametrize(("off", "verdict"), [(0.0, Verdict.OK), (0.2, Verdict.FAILURE), (-0.2, Verdict.FAILURE)])
async def test_a_clock_with_which_a_service_would_not_start_is_found(
    database: Database, off: float, verdict: Verdict
) -> None:
    clock: Any = SimpleNamespace(now=lambda: datetime.now(UTC) + timedelta(seconds=off))
    (found,) = [finding async for finding in checks._clock(database, clock)]
    assert (found.subject, found.verdict) == ("clock", verdict)
