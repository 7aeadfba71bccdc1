"""One PostgreSQL cluster on disk and its server process: create, configure, spawn, find, signal. Knows no sharing.

The server is a process of its own session and outlives ours: anyone who comes next finds it through its pid file.
"""

import contextlib
import errno
import hashlib
import os
import pwd
import re
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

from recado.storage.core import whole_file
from recado.storage.embedded.postgres_binaries import MAJOR
from recado.storage.embedded.server_processes import any_of, children, is_server, title
from recado.storage.embedded.service_folder import Home

DATABASE = "recado"
ROLE = "recado"
PORT = 5432  # names the socket file; nothing listens on TCP
_RUN = "run"
_SOCKET_NOTE = "socket_folder"
_LONGEST_SOCKET = 100  # bytes of path; the kernel takes 107
_LARGEST_LOG = 10 * 2**20  # bytes
_NO_PID = 2**30  # above the largest pid of the kernel
_INITDB_LIMIT = 300.0
_READ_OF_LOG = 256 * 1024  # bytes
_LONGEST_TOLD = 2000  # characters
LARGEST_WAL: Final = 8 * 2**30  # bytes that the write-ahead log may take on the disk
_WAL_SEGMENT = 16 * 2**20  # bytes
# What the server says to those who connect too early, as we do while we wait for it, or whom its end cuts off.
_TO_CALLERS = ("the database system is ", "terminating ")
_FAILURE = re.compile(r" \[\d+\] (?:PANIC|FATAL):  (.+)$", re.MULTILINE)

# Durability stays as it is by default (fsync, synchronous_commit). The log gets neither statements nor error texts,
# which hold personal data. What depends on the pace is reckoned from the 2.35 KB of write-ahead log that were
# measured for a message on its whole way: 23 MB a second at 10,000 messages/s, 4.7 MB at 2,000.
#
# - max_wal_size: a checkpoint begins after max_wal_size / (1 + checkpoint_completion_target), which is 4.3 GB:
#   every three minutes at 10,000/s, and up to 2,000/s at checkpoint_timeout only. After each, the first change of a
#   page writes the whole page again, 8 KB instead of some hundred bytes: rare checkpoints keep that small. It also
#   bounds what a start after a crash of the machine reads again: up to 8 GB, a minute or two of the ten that a
#   start waits.
# - min_wal_size: so many segments are kept, to be written over instead of made: 22 s of a burst at 10,000/s.
# - checkpoint_completion_target: at most shared_buffers are dirty, 256 MB, which are written within nine tenths of
#   the interval: 1.6 MB a second.
# - wal_compression stays off: this build knows pglz only, which took a quarter more time over a batch of updates;
#   and with the above, whole pages are few.
# - autovacuum_naptime: at 10,000/s the queue loses 50,000 rows in 5 s, some 35 MB, with three entries in indexes
#   each. A look that finds nothing takes some milliseconds. The queue's tables themselves are vacuumed without
#   pauses (vacuum_of_the_queue.sql). For all others the usual limit stays: it allows 5,000 changed pages a second,
#   of which 10,000 messages/s need half.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "120",
    "shared_buffers": "256MB",
    "huge_pages": "off",
    "jit": "off",
    "max_wal_size": f"{LARGEST_WAL // 2**30}GB",
    "min_wal_size": "512MB",
    "wal_buffers": "16MB",
    "wal_compression": "off",
    "checkpoint_timeout": "15min",
    "checkpoint_completion_target": "0.9",
    "random_page_cost": "1.1",
    "autovacuum_naptime": "5s",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
}


class ClusterError(Exception):
    """The cluster cannot be made or run; the text says why, with the end of the server's log."""


class Cluster:
    """The cluster in a home. Anyone who calls `create` or `spawn` holds the lock that admits one process at a time."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.folder = home.folder / "cluster"
        self.log = home.folder / "postgres.log"
        self.socket_folder = self._choose_socket_folder()

    @property
    def connect_arguments(self) -> dict[str, Any]:
        """What asyncpg needs to connect."""
        return {"host": str(self.socket_folder), "port": PORT, "user": ROLE, "database": DATABASE}

    def create(self) -> None:
        """Makes the cluster when there is none. An initdb that was killed leaves only what the next one removes."""
        version = self.folder / "PG_VERSION"
        if version.exists():
            if (found := version.read_text().strip()) != MAJOR:
                raise ClusterError(f"{self.folder} was written by PostgreSQL {found}; this Recado brings {MAJOR}")
            return
        unfinished = self.home.folder / "cluster.new"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._own_folder(unfinished)
        command = [str(self.home.binaries / "initdb"), "--pgdata", str(unfinished), "--username", ROLE]
        # Code point order, and the case rules of Unicode, the same on every system.
        command += [
            "--encoding",
            "UTF8",
            "--locale-provider",
            "builtin",
            "--builtin-locale",
            "C.UTF-8",
            "--locale",
            "C",
        ]
        command += ["--auth-local", "peer", "--auth-host", "reject", "--no-instructions"]
        done = subprocess.run(  # noqa: S603 - our own binary, our own arguments
            command, capture_output=True, text=True, timeout=_INITDB_LIMIT, check=False, **self._as_owner()
        )
        if done.returncode != 0:
            raise ClusterError(f"initdb failed: {done.stderr.strip()[-2000:]}")
        unfinished.rename(self.folder)

    def spawn(self) -> int:
        """Starts the server process and answers its pid; it is not ready yet. Repairs what a crash left behind."""
        self._own_folder(self.socket_folder)
        self._configure()
        for lock in (self.folder / "postmaster.pid", self.socket_folder / f".s.PGSQL.{PORT}.lock"):
            self._disown(lock)
        if self.log.exists() and self.log.stat().st_size > _LARGEST_LOG:
            self.log.rename(self.log.with_suffix(".log.1"))
        command = [str(self.home.binaries / "postgres"), "-D", str(self.folder)]
        command.append(f"--config-file={self.home.folder / 'postgresql.conf'}")
        with os.fdopen(os.open(self.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600), "ab") as log:
            server = subprocess.Popen(  # noqa: S603 - our own binary, our own arguments
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as_owner(),
            )
        threading.Thread(target=server.wait, name="reap-postgres", daemon=True).start()
        return server.pid

    def pid(self) -> int | None:
        """The pid of the running server, or None. A pid file of another program counts not."""
        return server_pid(self.folder)

    def listening(self) -> bool:
        """Whether somebody accepts connections on the socket, ready to serve or not."""
        return accepts_connections(self.socket_folder)

    def interrupt(self) -> int | None:
        """Asks for a fast shutdown: open transactions are rolled back. Answers the pid that will end, or None."""
        pid = self.pid()
        if pid is not None:
            os.kill(pid, signal.SIGINT)
        return pid

    def quit(self, pid: int) -> None:
        """Ends the server without its last checkpoint, paused or not: the next start recovers, and nothing is lost."""
        if not is_server(pid, self.folder):
            return
        for number, each in ((signal.SIGQUIT, pid), *((signal.SIGCONT, each) for each in (pid, *children(pid)))):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, number)

    def log_size(self) -> int:
        """How many bytes the server's log has."""
        try:
            return self.log.stat().st_size
        except FileNotFoundError:
            return 0

    def trouble(self, since: int = 0) -> str:
        """Why the server does not run, as its log says it behind so many bytes, or as its disk shows."""
        try:
            with self.log.open("rb") as log:
                size = log.seek(0, os.SEEK_END)
                log.seek(max(since if since <= size else 0, size - _READ_OF_LOG))  # it may be a new log by now
                told = log.read().decode(errors="replace")
        except FileNotFoundError:
            told = ""
        if (failure := last_failure(told)) is not None:
            return failure
        if shutil.disk_usage(self.folder).free < _WAL_SEGMENT:  # there may be no room for the log either
            return f"{os.strerror(errno.ENOSPC)}: {self.folder}"
        return told[-_LONGEST_TOLD:].strip()

    def _configure(self) -> None:
        """Writes the settings beside the cluster and not into it: root follows no path that the service user made."""
        files = {name: str(self.home.folder / f"pg_{name}.conf") for name in ("hba", "ident")}
        settings = {**_SETTINGS, "unix_socket_directories": str(self.socket_folder)}
        settings |= {f"{name}_file": path.replace("'", "''") for name, path in files.items()}
        lines = [f"{name} = '{value}'" for name, value in settings.items()]
        header = "# Written at every start. Settings of your own: ALTER SYSTEM, which goes to postgresql.auto.conf.\n"
        self._write("postgresql.conf", header + "\n".join(lines))
        # `all` leaves replication out, through which pg_basebackup comes.
        self._write("pg_hba.conf", f"local all,replication {ROLE} peer map={ROLE}")
        users = {pwd.getpwuid(os.geteuid()).pw_name, self.home.user}
        self._write("pg_ident.conf", "\n".join(f'{ROLE} "{user}" {ROLE}' for user in sorted(users)))

    def _write(self, name: str, text: str) -> None:
        path = self.home.folder / name
        if whole_file.read(path) != text + "\n":  # a full disk is no reason not to start again
            whole_file.replace(path, text + "\n")
        path.chmod(0o640)
        if self.home.foreign:
            os.chown(path, 0, self.home.gid)

    def _own_folder(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid not in (self.home.uid, os.geteuid()):
            raise ClusterError(f"{folder} is not ours")
        if self.home.foreign:
            os.chown(folder, self.home.uid, self.home.gid, follow_symlinks=False)

    def _as_owner(self) -> dict[str, Any]:
        """Arguments of subprocess: a bare environment (no PG… variable of ours may reach the server), and its user."""
        arguments: dict[str, Any] = {"cwd": "/", "env": {"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, "umask": 0o077}
        if self.home.foreign:
            arguments |= {"user": self.home.uid, "group": self.home.gid, "extra_groups": []}
        return arguments

    def _disown(self, lock: Path) -> None:
        """Makes PostgreSQL see a lock file as left behind when its pid belongs to another program by now.

        Only the pid is replaced: the rest lets PostgreSQL find out whether children of the old server are still alive.
        A file without a pid, as a crash of the machine or a full disk may leave it, would stop every start. It tells
        nothing of children, and goes when none of them is there.
        """
        text = whole_file.read(lock)
        if text is None:
            return
        pid = _first_pid(text)
        if pid is None:
            if not any_of(self.folder):
                lock.unlink()
        elif pid != _NO_PID and not is_server(pid, self.folder):
            _, *rest = text.splitlines(keepends=True)
            owner = (self.home.uid, self.home.gid) if self.home.foreign else None
            whole_file.replace(lock, "".join([f"{_NO_PID}\n", *rest]), owner=owner)

    def _choose_socket_folder(self) -> Path:
        inside = self.home.folder / _RUN
        path = str(inside / f".s.PGSQL.{PORT}")
        # The server reads the folder from a list, in which other characters would need quotes.
        if len(os.fsencode(path)) <= _LONGEST_SOCKET and re.fullmatch(r"[A-Za-z0-9/._-]+", path):
            return inside
        return self._short_folder()

    def _short_folder(self) -> Path:
        """A folder of the owner's in the temporary folder; its name is noted, so that every process finds the same."""
        note = self.home.folder / _SOCKET_NOTE
        if note.exists():
            return Path(note.read_text().strip())
        digest = hashlib.sha256(os.fsencode(self.home.folder)).hexdigest()[:16]
        folder = Path("/tmp") / f"recado-{digest}"  # noqa: S108 - made for us alone, and checked before every start
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if folder.lstat().st_uid not in (self.home.uid, os.geteuid()):
                folder = Path(tempfile.mkdtemp(prefix="recado-", dir="/tmp"))
        note.write_text(f"{folder}\n")
        return folder


def last_failure(told: str) -> str | None:
    """The last line of a server's log that says why it failed; None when no line does."""
    failures = [text for text in _FAILURE.findall(told) if not text.startswith(_TO_CALLERS)]
    return failures[-1][:_LONGEST_TOLD] if failures else None


def server_pid(folder: Path) -> int | None:
    """The pid of the server that runs a cluster, or None. A pid file of another program counts not."""
    try:
        pid = _first_pid((folder / "postmaster.pid").read_text(errors="replace"))
    except OSError:
        return None
    return pid if pid is not None and is_server(pid, folder) else None


def has_clients(pid: int) -> bool:
    """Whether anybody is connected to a server: its processes say in their titles what they are."""
    return any(title(child).startswith(f"postgres: {ROLE} ".encode()) for child in children(pid))


def accepts_connections(socket_folder: Path) -> bool:
    """Whether a server listens there, ready to serve or not."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(socket_folder / f".s.PGSQL.{PORT}"))
        except OSError:
            return False
        return True


def socket_folder_of(folder: Path) -> Path:
    """Where the server of a home's folder has its socket, if it has one."""
    try:
        return Path((folder / _SOCKET_NOTE).read_text().strip())
    except FileNotFoundError:
        return folder / _RUN


def _first_pid(text: str) -> int | None:
    """The pid that a lock file begins with; that of a server without a postmaster is negative."""
    try:
        return abs(int(text.partition("\n")[0]))
    except ValueError:
        return None
