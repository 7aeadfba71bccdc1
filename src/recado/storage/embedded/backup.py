"""Backups of the embedded database: one file that holds a dump, the keys, and what they belong to.

The dump is a consistent picture of one moment, taken by PostgreSQL's own program while everything runs. The file is a
ZIP archive, which is written and read as a stream.
"""

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Final

from recado.domain.core.timestamps import format_timestamp
from recado.storage.core.upkeep.migrate import read_migrations
from recado.storage.embedded.cluster import DATABASE, PORT, ROLE, Cluster
from recado.storage.embedded.cluster_lock import FileLock
from recado.storage.embedded.postgres_binaries import bundled_binaries
from recado.storage.embedded.service_folder import DATA_FOLDER, INSIDE, LOCATION, USERS_LOCK, locate, service_folder

FORMAT: Final = 1
UNFINISHED: Final = "restore.unfinished"
"""In a data folder: its restore has not come to its end, and nothing may run on it."""
_MANIFEST, _KEYS, _DUMP = "manifest.json", "keys.json", "database.dump"
_PIECE: Final = 1024 * 1024  # bytes
_LONGEST_COMPLAINT: Final = 500  # bytes
_END_LIMIT: Final = 30.0  # seconds

Progress = Callable[[int], None]


class BackupError(Exception):
    """A backup cannot be made, read or restored; the text is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup is of. `created_at` as the API writes moments; `migration`: the last one that its program knew."""

    version: str
    created_at: str
    migration: str
    keys: bool


class CancellationToken:
    """Ends a backup or a restore that another thread makes: it fails there with a BackupError."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked = False
        self._program: subprocess.Popen[bytes] | None = None

    def ask(self) -> None:
        """Let it end: the program that it waits for is killed."""
        with self._lock:
            self._asked = True
            if self._program is not None:
                self._program.kill()

    def watch(self, program: "subprocess.Popen[bytes]") -> None:
        """It waits for this program from now on."""
        with self._lock:
            self._program = program
            if self._asked:
                program.kill()

    def check(self) -> None:
        """Raises BackupError when it was asked to end."""
        if self._asked:
            raise BackupError("told to stop")


def write_backup(
    file: Path, data_dir: Path, *, version: str, now: datetime, keys: Path, progress: Progress, halt: CancellationToken
) -> Manifest:
    """Write a backup of the running cluster of `data_dir`; `progress` hears of the bytes of each piece.

    The file is complete or not there, and its owner alone can read it: it holds the keys. Blocks its thread. Raises
    BackupError.
    """
    cluster = Cluster(locate(data_dir))
    manifest = Manifest(version, format_timestamp(now), read_migrations()[-1].name, keys.exists())
    unfinished = file.with_name(f".{file.name}.{secrets.token_hex(4)}.unfinished")  # not that of a second backup
    command = [*_program(cluster, "pg_dump"), "--format", "custom", "--no-owner", "--no-privileges", DATABASE]

    try:
        if file.exists():
            raise BackupError(f"{file} is there already: choose another name")
        with _private(unfinished) as target:
            with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
                archive.writestr(_MANIFEST, json.dumps(_form(manifest), indent=2))
                if manifest.keys:
                    archive.writestr(_KEYS, keys.read_bytes())
                with archive.open(_DUMP, "w", force_zip64=True) as place, _running(command, halt) as dump:
                    while piece := _pipe(dump.stdout).read(_PIECE):
                        place.write(piece)
                        progress(len(piece))
            target.flush()
            os.fsync(target.fileno())
        halt.check()
        os.link(unfinished, file)  # refuses to replace what came there meanwhile
    except OSError as error:
        raise BackupError(f"{file} cannot be written ({error.strerror}): choose another place") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return manifest


def read_manifest(file: Path) -> Manifest:
    """What a backup is of. Raises BackupError for a file that is none, is damaged, or is newer than this program."""
    try:
        with zipfile.ZipFile(file) as archive:
            form = json.loads(archive.read(_MANIFEST))
            archive.getinfo(_DUMP)
        known = {migration.name for migration in read_migrations()}
        if form["format"] != FORMAT or form["migration"] not in known:
            raise BackupError(f"{file} was written by Recado {form['version']}: restore it with that version or later")
        return Manifest(form["version"], form["createdAt"], form["migration"], form["keys"])
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError):
        raise BackupError(f"{file} is not a backup of Recado, or it is damaged") from None
    except OSError as error:
        raise BackupError(f"{file} cannot be read ({error.strerror})") from None


def claim_folder(data_dir: Path) -> None:
    """Mark an empty data folder as being restored; what an interrupted restore left there is removed first.

    Raises BackupError when the folder holds an installation.
    """
    mark = data_dir / UNFINISHED
    if mark.exists():
        _remove(data_dir)
    elif data_dir.exists() and any(data_dir.iterdir()):
        raise BackupError(f"{data_dir} is not empty: name another folder with --data-dir, and keep this one")
    data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark.touch(mode=0o600)


def load_backup(file: Path, data_dir: Path, *, keys: Path, progress: Progress, halt: CancellationToken) -> None:
    """Put keys and database of a backup into the running, empty cluster of a claimed folder.

    Blocks its thread. Raises BackupError.
    """
    cluster = Cluster(locate(data_dir))
    command = [*_program(cluster, "pg_restore"), "--no-owner", "--no-privileges", "--single-transaction"]
    command += ["--exit-on-error", "--dbname", DATABASE]

    try:
        with zipfile.ZipFile(file) as archive, archive.open(_DUMP) as dump:
            if _KEYS in archive.namelist():
                with _private(keys) as target:
                    target.write(archive.read(_KEYS))
                    target.flush()
                    os.fsync(target.fileno())
            with (
                _running(command, halt) as restore,
                contextlib.suppress(BrokenPipeError),
            ):  # it says itself why it ended
                while piece := dump.read(_PIECE):
                    _pipe(restore.stdin).write(piece)
                    progress(len(piece))
    except zipfile.BadZipFile:
        raise BackupError(f"{file} is damaged") from None


def release_folder(data_dir: Path) -> None:
    """The restore has come to its end: the folder may be used."""
    (data_dir / UNFINISHED).unlink()


def unfinished(data_dir: Path) -> str | None:
    """What to say of a data folder whose restore has not come to its end; None of any other."""
    if not (data_dir / UNFINISHED).exists():
        return None
    return f"the restore into {data_dir} has not come to its end: run 'recado restore' again"


def _remove(data_dir: Path) -> None:
    """Remove what a restore that was interrupted has made; its server, if it still runs, is nobody's."""
    elsewhere = service_folder(data_dir)
    if elsewhere is not None and (elsewhere / DATA_FOLDER).exists():
        _end_unused(data_dir, elsewhere)
        shutil.rmtree(elsewhere)
        (data_dir / LOCATION).unlink()
    elif (inside := data_dir / INSIDE).exists():
        _end_unused(data_dir, inside)
    for each in data_dir.iterdir():
        if each.name != UNFINISHED:
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def _end_unused(data_dir: Path, folder: Path) -> None:
    """End the server whose folder that is, or raise BackupError while somebody uses it."""
    users = FileLock(folder / USERS_LOCK)
    if not users.try_take():
        raise BackupError(f"another restore into {data_dir} runs: wait until it has ended")
    try:
        _end_server(Cluster(locate(data_dir)))
    finally:
        users.release()


def _end_server(cluster: Cluster) -> None:
    """End the server that a killed restore left; the caller holds the lock of its users. What it has is removed."""
    pid = cluster.pid()
    if pid is None:
        return
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            cluster.interrupt()
            ended, _, _ = select.select([descriptor], [], [], _END_LIMIT)
        finally:
            os.close(descriptor)
        if not ended:
            raise BackupError(f"the database of an interrupted restore still runs (process {pid}): end it first")


def _form(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": manifest.version,
        "createdAt": manifest.created_at,
        "migration": manifest.migration,
        "keys": manifest.keys,
    }


def _private(path: Path) -> IO[bytes]:
    """A new file that its owner alone can read, from its birth on."""
    path.unlink(missing_ok=True)
    return os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+b")


def _program(cluster: Cluster, name: str) -> list[str]:
    """One of PostgreSQL's programs, run as this process' own user, and how it finds the database."""
    return [
        str(bundled_binaries() / name),
        "--host",
        str(cluster.socket_folder),
        "--port",
        str(PORT),
        "--username",
        ROLE,
    ]


@contextlib.contextmanager
def _running(command: list[str], halt: CancellationToken) -> Iterator["subprocess.Popen[bytes]"]:
    """A program while the block feeds or reads it; BackupError with its complaint when it fails."""
    with tempfile.TemporaryFile() as complaints:
        program = subprocess.Popen(  # noqa: S603 - our own binary, our own arguments
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=complaints,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        )
        halt.watch(program)
        try:
            yield program
        except BaseException:
            program.kill()
            raise
        finally:
            for pipe in (program.stdin, program.stdout):
                with contextlib.suppress(BrokenPipeError):
                    _pipe(pipe).close()
            status = program.wait()
        if status != 0:
            complaints.seek(0)
            told = " ".join(complaints.read(_LONGEST_COMPLAINT).decode(errors="replace").split())
            raise BackupError(f"{Path(command[0]).name} failed: {told or _reason(status)}")


def _reason(status: int) -> str:
    """Why a program ended that could say nothing more."""
    return f"{signal.Signals(-status).name} ended it" if status < 0 else f"its status is {status}"


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None  # noqa: S101 - the program was started with pipes
    return pipe
