"""`recado doctor` names the databases on this machine that nobody uses any more, with what removes them."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from recado.storage.cluster_lock import FileLock
from recado.storage.service_folder import DATA_FOLDER, SERVICE_ROOT, USERS_LOCK

Recado = Callable[..., "subprocess.CompletedProcess[str]"]

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root keeps databases outside their data folders")


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


@as_root
def test_a_database_whose_data_folder_points_to_it_is_not_named(recado: Recado, left: Path, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "postgres.location").write_text(f"{left}\n")
    assert warnings_of(recado, left) == []
