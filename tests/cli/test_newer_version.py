"""A program of a newer version beside a service of this one, on one embedded database (C33, C35)."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.program import Service

from recado.storage.core.upkeep.migrate import read_migrations

NEWER = """
import sys
from pathlib import Path
from recado.storage.core.upkeep import migrate
migrate.read_migrations.__defaults__ = (Path(sys.argv.pop(1)),)
from recado.cli.main import run
run()
"""
"""`recado` with the migrations of a folder, which is its first argument."""


class Newer:
    """The program of the version after this one: it has one more migration."""

    def __init__(self, folder: Path, data_dir: Path) -> None:
        self.migrations = folder / "migrations"
        here = Path(sys.modules[read_migrations.__module__].__file__ or "").parents[2] / "migrations"
        shutil.copytree(here, self.migrations)
        (self.migrations / f"{len(read_migrations()) + 1:04}_newer.sql").write_text("create table newer ();")
        self._start = [sys.executable, "-c", NEWER, str(self.migrations)]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
        self._environment = {**inherited, "RECADO_DATA_DIR": str(data_dir)}

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """A command, to its end."""
        return subprocess.run(
            [*self._start, *arguments], env=self._environment, capture_output=True, text=True, timeout=60, check=False
        )

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """A command that goes on; what it prints can be read."""
        return subprocess.Popen([*self._start, *arguments], env=self._environment, stdout=subprocess.PIPE, text=True)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = Service(tmp_path)
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.mark.long
def test_a_newer_program_changes_no_tables_under_a_service_that_runs_unless_it_takes_its_place(
    service: Service, tmp_path: Path
) -> None:
    newer = Newer(tmp_path, service.data_dir)
    told = (
        rf"recado: process {service.pid} on {re.escape(socket.gethostname())} \(since \S+Z\) serves this database with"
    )
    told += r" an earlier version of Recado, .*: stop it first, or take its place with 'recado serve --take-over'\n"
    for command in (["keys", "list"], ["serve", "--listen", "127.0.0.1:0"]):
        done = newer.run(*command)
        assert (done.returncode, done.stdout) == (1, "")
        assert re.fullmatch(told, "".join(re.findall(r"recado: .*\n", done.stderr)))
    assert service.attempt("keys", "list").returncode == 0  # it goes on, and so do the commands of its version

    next_one = newer.begin("serve", "--take-over", "--listen", "127.0.0.1:0")
    assert next_one.stdout is not None
    with next_one.stdout as printed:
        assert printed.readline().startswith("Recado serves http://")
        next_one.send_signal(signal.SIGKILL)
        next_one.wait()
    assert service.attempt("keys", "list").returncode == 1  # the tables are newer now
    assert newer.run("keys", "list").returncode == 0


def test_a_newer_program_starts_where_the_service_before_was_killed(service: Service, tmp_path: Path) -> None:
    service.end(signal.SIGKILL)
    done = Newer(tmp_path, service.data_dir).run("migrate")
    assert (done.returncode, done.stdout.count("applied")) == (0, 1)
