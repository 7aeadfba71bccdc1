"""Clusters that no data folder points to are found, and none that anybody uses, or whose data folder is only away."""

import shutil
from pathlib import Path

import asyncpg
import pytest
from tests.required import as_root
from tests.storage.embedded.test_embedded import OtherProcess, make_server
from tests.waiting import until

from recado.storage.embedded.abandoned_clusters import Abandoned, abandoned, abandoned_clusters
from recado.storage.embedded.cluster import Cluster
from recado.storage.embedded.cluster_lock import FileLock
from recado.storage.embedded.embedded import EmbeddedPostgres
from recado.storage.embedded.service_folder import CHANGE_LOCK, DATA_FOLDER, LOCATION, USERS_LOCK, locate

KIB = 1024


def cluster_of(data_dir: Path, root: Path, name: str = "data-1", *, inside: str = "cluster") -> Path:
    """A folder in `root` with a cluster of 64 KiB, as made for a data folder."""
    folder = root / name
    (folder / inside / "base").mkdir(parents=True)
    (folder / inside / "base" / "1").write_bytes(b"x" * 64 * KIB)
    (folder / DATA_FOLDER).write_text(f"{data_dir}\n")
    return folder


def point(data_dir: Path, folder: Path) -> None:
    data_dir.mkdir(exist_ok=True)
    (data_dir / LOCATION).write_text(f"{folder}\n")


@pytest.mark.parametrize("inside", ["cluster", "cluster.new"])
def test_a_cluster_whose_data_folder_is_gone_is_named_with_its_size(tmp_path: Path, inside: str) -> None:
    root, data_dir = tmp_path / "root", tmp_path / "gone"
    folder = cluster_of(data_dir, root, inside=inside)
    (found,) = abandoned_clusters(root)
    assert found == Abandoned(folder, data_dir, found.size, None)
    assert 64 * KIB <= found.size < 128 * KIB


def test_a_data_folder_that_became_a_file_is_gone(tmp_path: Path) -> None:
    folder = cluster_of(tmp_path / "data", tmp_path / "root")
    (tmp_path / "data").write_text("")
    assert [each.folder for each in abandoned_clusters(tmp_path / "root")] == [folder]


def test_of_the_clusters_of_a_data_folder_the_one_that_it_points_to_is_its(tmp_path: Path) -> None:
    root, data_dir = tmp_path / "root", tmp_path / "data"
    former, present = cluster_of(data_dir, root, "data-1"), cluster_of(data_dir, root, "data-2")
    point(data_dir, present)
    assert [each.folder for each in abandoned_clusters(root)] == [former]
    (data_dir / LOCATION).unlink()
    assert [each.folder for each in abandoned_clusters(root)] == [former, present]


def test_a_data_folder_may_point_to_its_cluster_by_another_path(tmp_path: Path) -> None:
    root, data_dir = tmp_path / "root", tmp_path / "data"
    folder = cluster_of(data_dir, root)
    (tmp_path / "link").symlink_to(root)
    point(data_dir, tmp_path / "link" / folder.name)
    assert abandoned_clusters(root) == []


@pytest.mark.parametrize(("name", "shared"), [(USERS_LOCK, True), (USERS_LOCK, False), (CHANGE_LOCK, False)])
def test_a_cluster_that_a_process_uses_or_changes_is_not_abandoned(tmp_path: Path, name: str, shared: bool) -> None:
    root = tmp_path / "root"
    lock = FileLock(cluster_of(tmp_path / "gone", root) / name)
    assert lock.try_take(shared=shared)
    assert abandoned_clusters(root) == []
    lock.release()
    assert len(abandoned_clusters(root)) == 1


def test_a_look_at_a_cluster_leaves_its_locks_free(tmp_path: Path) -> None:
    folder = cluster_of(tmp_path / "gone", tmp_path / "root")
    assert abandoned(folder) is not None
    locks = [FileLock(folder / name) for name in (CHANGE_LOCK, USERS_LOCK)]
    assert [lock.try_take() for lock in locks] == [True, True]
    for lock in locks:
        lock.release()


def test_what_is_no_cluster_or_is_not_known_to_be_anybodys_is_left_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    beginning = cluster_of(tmp_path / "gone", root, "beginning")
    shutil.rmtree(beginning / "cluster")  # one that is just being made: nothing points to it yet
    unknown = cluster_of(tmp_path / "gone", root, "unknown")
    (unknown / DATA_FOLDER).unlink()
    (root / "postgres-18" / "bin").mkdir(parents=True)
    (root / "binaries.lock").write_text("")
    (root / "link").symlink_to(cluster_of(tmp_path / "gone", tmp_path / "elsewhere"))
    assert abandoned_clusters(root) == []
    assert abandoned_clusters(tmp_path / "nowhere") == []


@pytest.mark.long
@as_root
async def test_a_server_in_use_is_not_abandoned_also_when_its_data_folder_is_gone(
    own_server: EmbeddedPostgres, data_dir: Path
) -> None:
    folder, away = locate(data_dir).folder, data_dir.with_name("away")
    assert abandoned(folder) is None
    data_dir.rename(away)
    try:
        assert abandoned(folder) is None
    finally:
        away.rename(data_dir)


@pytest.mark.long
@as_root
async def test_a_server_that_a_killed_process_left_is_named_with_its_process_unless_somebody_is_connected(
    data_dir: Path,
) -> None:
    other, away = OtherProcess(data_dir), data_dir.with_name("away")
    pid, cluster = await other.server_pid(), Cluster(locate(data_dir))
    folder = cluster.home.folder
    await other.kill()
    assert abandoned(folder) is None  # the next process of its data folder takes it over

    data_dir.rename(away)
    try:
        connection = await asyncpg.connect(**cluster.connect_arguments)
        assert abandoned(folder) is None
        await connection.close()
        found = await until(lambda: abandoned(folder), "nobody is connected any more")
    finally:
        away.rename(data_dir)
    assert found is not None
    assert (found.folder, found.data_dir, found.pid) == (folder, data_dir, pid)

    server = make_server(data_dir)
    await server.start()
    assert server.pid == pid
    await server.stop()
    assert cluster.pid() is None
