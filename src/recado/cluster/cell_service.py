"""The service of a cell as a process of its own: what it is begun with, where it listens, and whether it answers.

Nothing secret is an argument of it. What it needs to know is in the environment of the machine that it runs on.
"""

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

DATABASE: Final = "RECADO_DATABASE_URL"
DATA_DIR: Final = "RECADO_DATA_DIR"
KEYS: Final = ("RECADO_ENCRYPTION_KEYS", "RECADO_INDEX_KEY", "RECADO_CURSOR_KEY")
_NOT_OF_A_CELL: Final = ("RECADO_CLUSTER", "RECADO_LISTEN", "RECADO_CELLS_DATABASE_URL", DATA_DIR)
ANSWERS_WITHIN: Final = 2.0  # seconds


class NotHere(Exception):
    """This machine cannot run it; the text says why, without any value."""


def lacking(environment: Mapping[str, str], database_from: str) -> str | None:
    """What a machine lacks to run a cell, or None."""
    for name in (database_from, *KEYS):
        if not environment.get(name):
            return f"{name} is not set"
    if not Path(environment.get(DATA_DIR, "")).is_absolute():
        return f"{DATA_DIR} is not a folder from the root, such as /var/lib/recado"
    if environment.get("RECADO_STORAGE", "") != "s3" and not environment.get("RECADO_STORAGE_DIR"):
        return (
            "media would stay on one machine: set RECADO_STORAGE=s3, or RECADO_STORAGE_DIR to a folder that all "
            "machines share"
        )
    return None


class CellService:
    """`program`: what the arguments of `serve` are given to. `host`: the machine's own address."""

    def __init__(
        self, cell: str, database_from: str, host: str, environment: Mapping[str, str], program: Sequence[str]
    ) -> None:
        """Raises OSError: the address is not of this machine. Its port is kept for this cell as long as this lives."""
        self._cell = cell
        self._database_from = database_from
        self._environment = environment
        self._program = program
        self._host = host
        # Bound, and not listening: no other program is given this port, and the service may listen there.
        self._kept = _kept(host)
        self.port = int(self._kept.getsockname()[1])

    @property
    def _authority(self) -> str:
        return f"[{self._host}]:{self.port}" if ":" in self._host else f"{self._host}:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self._authority}"

    def begin(self, *, take_over: bool) -> "subprocess.Popen[bytes]":
        """A process of it, which ends in order with the thread that calls this. Raises `NotHere`, and OSError."""
        environment = self._environment
        if (lack := lacking(environment, self._database_from)) is not None:
            raise NotHere(lack)
        its = {name: value for name, value in environment.items() if name not in _NOT_OF_A_CELL}
        its[DATABASE] = environment[self._database_from]
        folder = Path(environment[DATA_DIR], self._cell)
        arguments = ["--listen", self._authority, "--data-dir", str(folder), *(["--take-over"] if take_over else [])]
        beside = [sys.executable, "-P", "-m", "recado.cluster.beside", str(os.getpid())]
        return subprocess.Popen(  # noqa: S603 - this program
            [*beside, *self._program, *arguments], stdin=subprocess.DEVNULL, env=its, start_new_session=True
        )

    def answers(self) -> bool:
        """Whether the process takes requests."""
        connection = http.client.HTTPConnection(self._host, self.port, timeout=ANSWERS_WITHIN)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def close(self) -> None:
        """Let the port go."""
        self._kept.close()


def _kept(host: str) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    kept = socket.socket(family, socket.SOCK_STREAM)
    try:
        kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        kept.bind((host, 0))
    except BaseException:
        kept.close()
        raise
    return kept
