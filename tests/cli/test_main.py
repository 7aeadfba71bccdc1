"""The commands as such: help with an example, one line for each error, and an exit status that tells."""

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import typer.main

from recado import __version__
from recado.cli.common import print_table
from recado.cli.errors import explain
from recado.cli.program import app, main
from recado.domain.core.errors import Unavailable
from recado.fronts.supervision import FrontsFailed

ROOT = Path(__file__).parents[2]
Recado = Callable[..., "subprocess.CompletedProcess[str]"]


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All commands and groups below one, itself included, by the words that name them."""
    yield path
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = list(commands(typer.main.get_command(app)))
GROUPS = [command for command in COMMANDS if any(each[:-1] == command for each in COMMANDS if each)]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_with_an_example(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    assert main([*command, "--help"]) == 0

    shown = capsys.readouterr().out
    assert f"Usage: {' '.join(('recado', *command))}" in shown
    assert "Example: " in shown


@pytest.mark.parametrize("command", GROUPS, ids=" ".join)
def test_a_group_without_a_command_shows_its_help(capsys: pytest.CaptureFixture[str], command: tuple[str, ...]) -> None:
    assert main(command) == 2

    printed = capsys.readouterr()
    assert "Commands" in printed.out + printed.err
    assert "recado: " not in printed.err


def test_the_readme_names_every_command() -> None:
    table = (ROOT / "README.md").read_text("utf-8").partition("## Commands")[2].partition("\n## ")[0]
    rows = [re.findall(r"`([a-z ]+)`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")]
    told = set()
    for first, *others in rows:
        *group, _ = words = first.split()[1:]
        told |= {tuple(words), *((*group, other) for other in others)}
    assert told == set(COMMANDS) - set(GROUPS)


def test_the_version_is_told(recado: Recado) -> None:
    assert recado("--version").stdout == recado("version").stdout
    assert recado("version").stdout.startswith(f"recado {__version__} (Python 3.")
    assert json.loads(recado("version", "--json").stdout)["version"] == __version__


def test_an_interruption_while_a_command_is_imported_ends_quietly(tmp_path: Path) -> None:
    (tmp_path / "typer").mkdir()
    (tmp_path / "typer" / "__init__.py").write_text("raise KeyboardInterrupt")  # Ctrl-C, at its earliest
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "recado", "version"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_files_of_the_folder_where_it_is_called_are_not_taken_for_the_librarys(tmp_path: Path) -> None:
    for name in ("json", "asyncio", "typer"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('not the library')")
    done = subprocess.run(
        [sys.executable, "-m", "recado", "version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"recado {__version__} (Python 3.")


def test_an_unknown_command_is_one_line_with_the_way_to_the_help(recado: Recado) -> None:
    done = recado("sevre")

    assert done.returncode == 2
    assert done.stderr.startswith("recado: No such command 'sevre'.")
    assert done.stderr.endswith("Try 'recado --help'.\n")
    assert done.stderr.count("\n") == 1


def test_every_wrong_setting_has_its_line(recado: Recado, tmp_path: Path) -> None:
    done = recado("org", "list", "--data-dir", str(tmp_path / "data"), LISTEN="nowhere", LOG_LEVEL="loud")

    assert done.returncode == 1
    assert [line.split()[1] for line in done.stderr.splitlines()] == ["RECADO_LISTEN", "RECADO_LOG_LEVEL"]
    assert not (tmp_path / "data").exists()


def test_an_external_database_without_keys_is_refused_before_it_is_asked(recado: Recado) -> None:
    done = recado("org", "list", DATABASE_URL="postgresql://127.0.0.1:1/recado")

    assert done.returncode == 1
    assert [line.split()[1] for line in done.stderr.splitlines()] == [
        "RECADO_ENCRYPTION_KEYS",
        "RECADO_INDEX_KEY",
        "RECADO_CURSOR_KEY",
    ]


def test_a_folder_that_cannot_be_made_is_named(recado: Recado, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    done = recado("keys", "create", "--data-dir", str(tmp_path / "file" / "data"))

    assert done.returncode == 1
    assert done.stderr.startswith(f"recado: {tmp_path / 'file' / 'data' / 'keys.json'} cannot be used")


def test_the_doctor_names_what_to_mend_and_fails(recado: Recado) -> None:
    done = recado(
        "doctor",
        "--json",
        DATABASE_URL="postgresql://127.0.0.1:1/recado",
        ADAPTER_CHATAPP="bridge",
        BRIDGE_CHATAPP_URL="http://127.0.0.1:1",
        BRIDGE_CHATAPP_TOKEN="t",
        BRIDGE_CHATAPP_SECRET="s",
        LISTN="slip",
    )

    report = json.loads(done.stdout)
    assert done.returncode == 1
    assert report["healthy"] is False
    failures = {check["subject"] for check in report["checks"] if check["verdict"] == "failure"}
    # Of the settings: what other runs left on this machine is told, too.
    told = [check for check in report["checks"] if check["subject"] == "settings"]
    warnings = [check["text"] for check in told if check["verdict"] == "warning"]
    assert failures == {"keys", "database", "providers"}
    assert warnings == ["RECADO_LISTN is not a setting: did you mean RECADO_LISTEN?"]


def test_doctor_names_misspelled_settings_before_those_that_are_missing(recado: Recado) -> None:
    done = recado("doctor", "--json", ADAPTER_CHATAPP="bridge", BRIDGE_CHATAP_URL="http://127.0.0.1:1")

    checks = [(check["verdict"], check["text"]) for check in json.loads(done.stdout)["checks"]]
    assert done.returncode == 1
    assert checks[0] == (
        "warning",
        "RECADO_BRIDGE_CHATAP_URL is not a setting: did you mean RECADO_BRIDGE_CHATAPP_URL?",
    )
    assert {verdict for verdict, _ in checks[1:]} == {"failure"}


def test_a_load_test_needs_a_token_and_an_address(recado: Recado) -> None:
    assert recado("loadtest").stderr.startswith("recado: --token is missing: 'recado keys create")
    assert recado("loadtest", "localhost:8080", "--token", "t").stderr.startswith(
        "recado: 'localhost:8080' is no address"
    )
    unreachable = recado("loadtest", "http://127.0.0.1:1", "--token", "t")
    assert unreachable.returncode == 1
    assert unreachable.stderr == "recado: nothing answers at 127.0.0.1:1: 'recado serve' starts the service\n"


def test_a_load_test_takes_no_live_key_by_accident(recado: Recado) -> None:
    done = recado("loadtest", "http://127.0.0.1:1", "--token", "svc_live_x")
    assert done.returncode == 1
    assert done.stderr.startswith("recado: this is a live key: its messages reach real people")
    told = recado("loadtest", "http://127.0.0.1:1", "--token", "svc_live_x", "--live-really-send").stderr
    assert "nothing answers at 127.0.0.1:1" in told


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        (None, ""),
        (ConnectionRefusedError(111, "Connect call failed ('10.1.2.3', 5432)"),
         " (connection refused: nothing listens at its address)"),
        (socket.gaierror(-2, "Name or service not known"), " (its host name is not known)"),
        (TimeoutError(), " (no answer in time)"),
        (OSError(113, "No route to host"), " (no route to host)"),
        (asyncpg.CannotConnectNowError("the database system is starting up"), " (CannotConnectNowError, 57P03)"),
    ],
)  # fmt: skip
def test_a_database_that_does_not_answer_is_told_with_its_cause(cause: Exception | None, told: str) -> None:
    error = Unavailable()
    error.__cause__ = cause
    assert explain(error) == [f"the database does not answer{told}: start it, or correct RECADO_DATABASE_URL"]


def test_fronts_that_do_not_come_up_are_told_in_a_line() -> None:
    assert explain(FrontsFailed("a process did not come up")) == ["a process did not come up"]


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (asyncpg.LockNotAvailableError("canceling statement due to lock timeout"), "is locked by somebody else"),
        (asyncpg.QueryCanceledError("canceling statement due to statement timeout"), "took too long"),
        (asyncpg.UndefinedTableError('relation "messages" does not exist'), "'recado migrate' makes them"),
        (asyncpg.InsufficientPrivilegeError("permission denied for table messages"), "grant it"),
        (asyncpg.DeadlockDetectedError("deadlock detected"), "give the same command again"),
        (asyncpg.DiskFullError("could not extend file"), "its disk is full"),
        (asyncpg.AdminShutdownError("terminating connection"), "connection to a database was lost"),
        (ConnectionResetError(104, "Connection reset by peer"), "connection to a database was lost"),
    ],
)  # fmt: skip
def test_a_database_that_refuses_is_no_defect(error: Exception, told: str) -> None:
    (line,) = explain(error) or ()
    assert told in line


def test_a_file_that_is_not_there_is_no_database_that_was_lost() -> None:
    assert explain(FileNotFoundError(2, "No such file or directory", "x")) is None


def test_a_full_disk_is_no_defect() -> None:
    assert explain(OSError(28, "No space left on device")) == ["the disk is full: make room, and try again"]


def test_a_table_shows_whole_values_however_narrow_the_place(capsys: pytest.CaptureFixture[str]) -> None:
    long = ["key_" + "0" * 21, "a name of " + "many words " * 20, "x" * 300]
    print_table(("id", "name", "much"), [long], empty="")
    assert capsys.readouterr().out.splitlines()[1].split("  ")[0] == long[0]
    print_table(("id", "name", "much"), [long], empty="")
    assert long[2] in capsys.readouterr().out


def test_a_defect_is_told_apart_from_a_mistake() -> None:
    assert explain(ZeroDivisionError()) is None
