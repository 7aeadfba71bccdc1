"""A PostgreSQL of the system's packages, as a database that somebody else runs: another version, with its extensions.

Debian's `postgresql` package; the test command installs it when it is run as root.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.program import free_port

OWNER = "recado"
_PACKAGED = Path("/usr/lib/postgresql")
_PACKAGE_USER = "postgres"  # PostgreSQL refuses to run as root
_LIMIT = 60  # seconds


def binaries() -> Path | None:
    """The folder of its programs, of the newest version; None when no such package is installed."""
    found = sorted(_PACKAGED.glob("*/bin/initdb"), key=lambda path: int(path.parent.parent.name))
    return found[-1].parent if found else None


@contextmanager
def serving(programs: Path, *, superuser: bool = False) -> Iterator[dict[str, Any]]:
    """The connect arguments of an empty database, as its owner or as a superuser, while a server of its own runs."""
    home = Path(mkdtemp(prefix="postgres-"))
    port = free_port()
    user = None
    if os.geteuid() == 0:
        user = _PACKAGE_USER
        shutil.chown(home, user)

    def run(program: str, *arguments: str) -> None:
        # Its output goes to a file: the server would hold a pipe open.
        with (home / "out").open("ab") as output:
            subprocess.run(
                [programs / program, *arguments], cwd=home, user=user, stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, timeout=_LIMIT, check=True, env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
            )  # fmt: skip

    data, at = str(home / "data"), ("--host", str(home), "--port", str(port))
    options = f"-k {home} -p {port} -c listen_addresses=127.0.0.1 -c fsync=off -c max_connections=200"
    try:
        run("initdb", "-D", data, "-A", "trust", "-E", "UTF8")
        run("pg_ctl", "-D", data, "-l", str(home / "log"), "-o", options, "--wait", "start")
        try:
            run("createuser", *at, "--superuser" if superuser else "--createdb", OWNER)
            run("createdb", *at, "--owner", OWNER, OWNER)
            yield {"host": "127.0.0.1", "port": port, "user": OWNER, "database": OWNER}
        finally:
            run("pg_ctl", "-D", data, "--mode", "immediate", "--wait", "stop")
    finally:
        shutil.rmtree(home)


def url_of(arguments: dict[str, Any]) -> str:
    """As `RECADO_DATABASE_URL` takes it."""
    return f"postgresql://{arguments['user']}@{arguments['host']}:{arguments['port']}/{arguments['database']}"
