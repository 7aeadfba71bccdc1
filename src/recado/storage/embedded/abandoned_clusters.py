"""Clusters of root's that no data folder points to: what runs that were killed left in `/var/lib/recado`.

They are told and never removed: a data folder may have moved, or lie on a volume that is not mounted now.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from recado.storage.embedded.cluster import accepts_connections, has_clients, server_pid, socket_folder_of
from recado.storage.embedded.cluster_lock import FileLock
from recado.storage.embedded.service_folder import CHANGE_LOCK, DATA_FOLDER, SERVICE_ROOT, USERS_LOCK, service_folder

_CLUSTERS = ("cluster", "cluster.new")  # the second of an initdb that was killed
_BLOCK = 512  # bytes, of st_blocks


@dataclass(frozen=True, slots=True)
class Abandoned:
    """A cluster that nobody points to. `data_dir`: whose it was; `size`: bytes on the disk; `pid`: of its server."""

    folder: Path
    data_dir: Path
    size: int
    pid: int | None


def abandoned_clusters(service_root: Path = SERVICE_ROOT) -> list[Abandoned]:
    """All of them, by name; none for a plain user, who may not look into root's folders."""
    try:
        folders = sorted(service_root.iterdir())
    except OSError:
        return []
    return [found for folder in folders if (found := abandoned(folder)) is not None]


def abandoned(folder: Path) -> Abandoned | None:
    """The cluster in a folder when its data folder is gone or has another one, and nobody uses it; else None.

    In doubt None: when anything about it cannot be read.
    """
    try:
        if folder.is_symlink() or not any((folder / name).is_dir() for name in _CLUSTERS):
            return None  # one that is just being made has no cluster before its data folder points to it
        data_dir = Path((folder / DATA_FOLDER).read_text().strip())
        if _points_to(data_dir, folder) or _locked(folder):
            return None
        pid = server_pid(folder / "cluster")
        if pid is None and accepts_connections(socket_folder_of(folder)):
            return None  # its server runs in another container
        if pid is not None and has_clients(pid):
            return None
        return Abandoned(folder, data_dir, _size(folder), pid)
    except OSError:
        return None


def _points_to(data_dir: Path, folder: Path) -> bool:
    try:
        named = service_folder(data_dir)
    except NotADirectoryError:
        return False
    return named is not None and (named == folder or (named.exists() and named.samefile(folder)))


def _locked(folder: Path) -> bool:
    """Whether a process uses the server, or starts or stops it."""
    change, users = FileLock(folder / CHANGE_LOCK), FileLock(folder / USERS_LOCK)
    try:
        # Anyone who starts or stops it waits for the first lock, and so never finds the second one taken by us.
        return not (change.try_take() and users.try_take())
    finally:
        users.release()
        change.release()


def _size(folder: Path) -> int:
    """What its files take on the disk; those that go meanwhile take nothing."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(parent) / name).lstat().st_blocks * _BLOCK
            except FileNotFoundError:
                continue
    return total
