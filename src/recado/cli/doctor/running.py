"""Whose the service is that answers at the address of the settings: of this database, or of another (C35)."""

import os
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from recado.cli.doctor.finding import Finding, failure
from recado.config.settings import Settings
from recado.storage.dispatch.ownership import Owner

_PROC = Path("/proc")
_LISTENS = "0A"  # the state of a socket in /proc/net/tcp
_SOCKET = re.compile(r"socket:\[([0-9]+)\]")


@dataclass(slots=True)
class Looked:
    """What was found of the database. `asked`: whether it is known who serves it; `owner` None: nobody."""

    findings: list[Finding] = field(default_factory=list)
    owner: Owner | None = None
    asked: bool = False


def at_the_address(running: Finding, looked: Looked, settings: Settings) -> Finding:
    """The finding on a service that answers, after the database was asked who serves it."""
    ours = is_ours(looked, settings.listen.port)
    if ours:
        return running
    if ours is None:
        return Finding(
            running.subject, running.verdict, f"{running.text}; whether it serves this database is not known"
        )
    listen, data_dir = settings.listen, settings.data_dir
    what = f"the data folder {data_dir}" if settings.embedded else "this database"
    name = "name its folder with --data-dir" if settings.embedded else "look at RECADO_DATABASE_URL"
    text = (
        f"the service on {listen.host}:{listen.port} is not of {what}: {name}, or choose another address for this one"
    )
    return failure("service", text)


def is_ours(looked: Looked, port: int) -> bool | None:
    """Whether the process that serves the database is the one that listens on `port` here; None: nothing tells."""
    if not looked.asked:
        return None
    owner = looked.owner
    if owner is None:
        return False
    return None if owner.pid is None or owner.host != socket.gethostname() else _listens(owner.pid, port)


def _listens(pid: int, port: int) -> bool | None:
    """Whether a process has a socket that listens on `port`; None when its files cannot be seen from here."""
    try:
        links = list(_links(_PROC / f"{pid}/fd"))
        rows = [row.split() for name in ("tcp", "tcp6") for row in _rows(_PROC / f"{pid}/net/{name}")]
    except OSError:
        return None
    listening = {row[9] for row in rows if row[3] == _LISTENS and int(row[1].rpartition(":")[2], 16) == port}
    return any(found[1] in listening for link in links if (found := _SOCKET.fullmatch(link)) is not None)


def _links(files: Path) -> Iterator[str]:
    for each in files.iterdir():
        with suppress(FileNotFoundError):  # closed meanwhile
            yield os.readlink(each)


def _rows(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []
