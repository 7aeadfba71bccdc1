"""What a first start made can be found, whatever ends the process, and is told once it is committed."""

import asyncio
import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import recado.app
from recado import first_start
from recado.cli import serve
from recado.cli.errors import explain
from recado.config.errors import SettingsError
from recado.config.settings import load_settings
from recado.engine.clock import SystemClock
from recado.first_start import SECRETS_FILE
from recado.installation import Installation
from recado.storage.access.organizations import NewOrganization, all_organizations
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing

Filling = Callable[[], Installation]


class Killed(BaseException):
    """Stands for the end of the process."""


@pytest.fixture
def started(database: Database, tmp_path: Path) -> Filling:
    """Makes the installations of one start after the other, on one data folder and database."""

    def start() -> Installation:
        installation = Installation(load_settings(data_dir=tmp_path), clock=SystemClock(), random_bytes=os.urandom)
        installation._database = database
        installation._key_ring = KeyRing({"k1": bytes(32)})
        return installation

    return start


async def test_what_was_committed_and_not_told_is_in_a_file_that_the_next_start_names(
    started: Filling, tmp_path: Path
) -> None:
    first = started()
    made = await first._fill_when_empty()  # and here its process ends
    assert made is not None

    second = started()
    assert await second._fill_when_empty() is None

    file = tmp_path / SECRETS_FILE
    [line] = second.left_untold
    assert str(file) in line
    assert file.stat().st_mode & 0o777 == 0o600
    kept = file.read_text()
    assert [token in kept for _, token in made.keys.values()] == [True, True]
    assert first.owner_password is not None
    assert first.owner_password in kept
    file.unlink()
    third = started()
    await third._fill_when_empty()
    assert third.left_untold == []


async def test_what_was_kept_and_not_committed_is_replaced(
    started: Filling, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep = first_start.keep

    def keep_and_end(data_dir: Path, made: NewOrganization, owner_password: str | None) -> None:
        keep(data_dir, made, owner_password)
        raise Killed

    with monkeypatch.context() as ended:
        ended.setattr(first_start, "keep", keep_and_end)
        with pytest.raises(Killed):
            await started()._fill_when_empty()
    assert await all_organizations(database) == []
    of_nothing = (tmp_path / SECRETS_FILE).read_text()
    assert first_start.left(tmp_path, []) == first_start.left(tmp_path, ["org_another"]) == []

    made = await started()._fill_when_empty()

    assert made is not None
    kept = (tmp_path / SECRETS_FILE).read_text()
    assert made.keys["live"][1] in kept
    assert not set(of_nothing.splitlines()) & set(kept.splitlines())


async def test_nothing_is_made_where_its_keys_cannot_be_kept(
    started: Filling, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(SettingsError) as refused:
            await started()._fill_when_empty()

    [line] = explain(refused.value) or []
    assert line.startswith(f"{tmp_path / SECRETS_FILE} cannot be written (No space left on device)")
    assert await all_organizations(database) == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("terminal", [True, False])
async def test_a_start_that_is_told_to_end_tells_what_it_made(
    started: Filling,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    terminal: bool,
) -> None:
    installation = started()
    made = await installation._fill_when_empty()
    assert made is not None

    class Application(recado.app.Application):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            self.made, self.owner_password = made, installation.owner_password

        async def start(self, **_: object) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.get_running_loop().create_future()

    monkeypatch.setattr(recado.app, "Application", Application)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)

    assert await serve._serve(load_settings(data_dir=tmp_path), lambda: None) == 0

    printed, file = capsys.readouterr().out, tmp_path / SECRETS_FILE
    assert [token in printed for _, token in made.keys.values()] == [terminal] * 2
    assert (str(file) in printed) is not terminal
    assert file.exists() is not terminal
