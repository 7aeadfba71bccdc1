"""Processes of PostgreSQL servers, as `/proc` shows them."""

import os
from pathlib import Path

_PROC = Path("/proc")


def children(pid: int) -> list[int]:
    """The processes that a server has made."""
    return [int(child) for child in (_PROC / f"{pid}/task/{pid}/children").read_text().split()]


def title(pid: int) -> bytes:
    """What a process says that it is; empty when it is gone."""
    try:
        return (_PROC / f"{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def is_server(pid: int, folder: Path) -> bool:
    """Whether a process is the server of that cluster."""
    arguments = title(pid).split(b"\0")
    return arguments[0].endswith(b"postgres") and os.fsencode(folder) in arguments


def server_of(folder: Path) -> int | None:
    """The server of that cluster, also one that has not yet written who it is. Reads `/proc`: not for an event loop."""
    # A child is one of them, too, until it says what it is; the server is older.
    return min((int(each.name) for each in _PROC.glob("[0-9]*") if is_server(int(each.name), folder)), default=None)


def any_of(folder: Path) -> bool:
    """Whether a server of that cluster is there, or a child that a killed one left: all of them work in its folder."""
    here = folder.stat()
    for process in _PROC.iterdir():
        try:
            if (process / "comm").read_text() == "postgres\n" and os.path.samestat((process / "cwd").stat(), here):
                return True
        except OSError:  # no process, or gone, or that of another user, who is not the cluster's owner
            continue
    return False
