"""Where the embedded cluster lives, and whose it is: short sockets, root, moved and copied folders."""

import errno
import os
import pwd
import shutil
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.captured import capture_logs
from tests.required import as_root, only_where
from tests.storage.embedded.test_embedded import OtherProcess, make_server, query

from recado.storage.embedded import service_folder as service_folder_module
from recado.storage.embedded.cluster import Cluster
from recado.storage.embedded.embedded import EmbeddedPostgres
from recado.storage.embedded.postgres_binaries import bundled_binaries
from recado.storage.embedded.service_folder import (
    DATA_FOLDER,
    LOCATION,
    Home,
    NoHome,
    holds_database,
    locate,
    service_folder,
)


def test_a_long_path_moves_the_socket_to_a_short_folder_that_every_process_finds(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * 100)
    folder.mkdir()
    home = Home(folder, "me", os.geteuid(), os.getegid(), bundled_binaries())
    found = Cluster(home).socket_folder
    try:
        assert len(os.fsencode(found / ".s.PGSQL.5432")) <= 100
        assert stat.S_IMODE(found.stat().st_mode) == 0o700
        assert Cluster(home).socket_folder == found
    finally:
        found.rmdir()


def test_characters_that_the_servers_list_of_folders_cannot_take_move_the_socket_too(tmp_path: Path) -> None:
    folder = tmp_path / "a, b"
    folder.mkdir()
    found = Cluster(Home(folder, "me", os.geteuid(), os.getegid(), bundled_binaries())).socket_folder
    found.rmdir()
    assert "," not in str(found)


@pytest.mark.long
@as_root
async def test_root_changes_no_permission_of_the_data_folder_and_its_server_is_no_root(
    own_server: EmbeddedPostgres, data_dir: Path
) -> None:
    assert stat.S_IMODE(data_dir.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(data_dir.stat().st_mode) == 0o700
    assert own_server.pid is not None
    assert Path(f"/proc/{own_server.pid}").stat().st_uid == locate(data_dir).uid != 0
    assert service_folder(data_dir) == locate(data_dir).folder


@pytest.mark.long
@as_root
def test_two_first_starts_at_once_run_their_servers_as_the_same_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`useradd` refuses while another one holds the file of users."""
    found, adding, second = pwd.getpwnam, threading.Event(), threading.Event()
    known = {"nobody": found("nobody"), "recado-pg": found(pwd.getpwuid(0).pw_name)}
    there = {"nobody"}

    def getpwnam(name: str) -> pwd.struct_passwd:
        if name not in there:
            raise KeyError(name)
        return known[name]

    def add() -> bool:
        if adding.is_set():
            second.set()
            return False
        adding.set()
        second.wait(0.5)
        there.add("recado-pg")
        return True

    monkeypatch.setattr(service_folder_module.pwd, "getpwnam", getpwnam)
    monkeypatch.setattr(service_folder_module, "_add_service_user", add)
    with ThreadPoolExecutor(2) as both:
        homes = list(both.map(lambda name: locate(tmp_path / name, tmp_path / "root"), ("one", "two")))
    assert [home.user for home in homes] == [known["recado-pg"].pw_name] * 2


@as_root
def test_a_folder_without_a_cluster_is_given_to_the_user_that_its_server_runs_as(data_dir: Path) -> None:
    home = locate(data_dir)
    os.chown(home.folder, 0, 65534)  # it was made for another user, and then the start broke off
    assert locate(data_dir) == home
    assert home.folder.stat().st_gid == home.gid


@pytest.mark.long
@as_root
def test_nothing_is_left_of_a_first_start_that_found_the_disk_of_the_data_folder_full(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = Path.write_text

    def full(path: Path, text: str) -> int:
        if path.name == LOCATION:
            written(path, text[: len(text) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return written(path, text)

    root = tmp_path / "root"
    with monkeypatch.context() as there:
        there.setattr(Path, "write_text", full)
        with pytest.raises(OSError, match="No space left"):
            locate(data_dir, root)

    assert list(root.glob(f"*/{DATA_FOLDER}")) == []
    assert service_folder(data_dir) is None
    assert not holds_database(data_dir)
    with capture_logs() as told:
        home = locate(data_dir, root)
    assert told == []
    assert service_folder(data_dir) == home.folder
    assert holds_database(data_dir)


@pytest.mark.long
@as_root
async def test_a_moved_data_folder_keeps_its_database_and_a_copy_is_refused(data_dir: Path) -> None:
    server = make_server(data_dir)
    await server.start()
    await query(server, "create table t as select 1 as a")
    await server.stop()
    moved, copy = data_dir.with_name("moved"), data_dir.with_name("copy")
    data_dir.rename(moved)
    server = make_server(moved)
    assert await query(server, "select a from t") == 1
    await server.stop()
    shutil.copytree(moved, copy)
    with pytest.raises(NoHome, match=r"copy is a copy of .*moved and would share its database"):
        await make_server(copy).start()
    moved.rename(data_dir)


@as_root
async def test_a_database_that_is_gone_is_not_silently_replaced_by_an_empty_one(data_dir: Path) -> None:
    folder = locate(data_dir).folder
    folder.rmdir() if not any(folder.iterdir()) else shutil.rmtree(folder)
    with pytest.raises(NoHome, match="is gone"):
        await make_server(data_dir).start()
    (data_dir / LOCATION).unlink()


@as_root
async def test_root_leaves_the_database_of_a_plain_user_alone(data_dir: Path) -> None:
    (data_dir / "postgres").mkdir(parents=True)
    with pytest.raises(NoHome, match="run as the owner"):
        await make_server(data_dir).start()


@pytest.mark.long
@as_root
@only_where(
    all(folder.stat().st_mode & 0o001 for folder in bundled_binaries().parents),
    "a plain user cannot reach the binaries of this environment",
)
async def test_a_plain_user_keeps_the_cluster_in_the_data_folder() -> None:
    nobody = 65534
    # Every folder above must let the user through, which the folders of a test run do not.
    home = Path("/tmp") / f"recado-test-{os.getpid()}"
    home.mkdir()
    try:
        os.chown(home, nobody, nobody)
        home.chmod(0o700)
        other = OtherProcess(home / "data", str(nobody))
        pid = await other.server_pid()
        assert Path(f"/proc/{pid}").stat().st_uid == nobody
        assert (home / "data" / "postgres" / "cluster" / "PG_VERSION").exists()
        await other.leave()
        assert not Path(f"/proc/{pid}").exists() or not Path(f"/proc/{pid}/cmdline").read_bytes()
    finally:
        shutil.rmtree(home)
