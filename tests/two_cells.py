"""Two databases of cells and one of their map, and the commands that know them."""

import base64
import json
import os
import secrets
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import asyncpg
from tests import forked
from tests.emptied import TEMPLATE
from tests.program import Service
from tests.standing_connection import StandingConnection

from recado.storage.cells.holding import Session, connect

LIMIT = 60.0  # seconds of a command


def random_key() -> str:
    return base64.b64encode(os.urandom(32)).decode()


@dataclass
class Cells:
    """Two databases of the schema and an empty one for the map, and the commands that know them."""

    folder: Path
    urls: dict[str, str]  # by the name of the environment variable
    keys: dict[str, str] = field(
        default_factory=lambda: {
            "ENCRYPTION_KEYS": f"k1:{random_key()}",
            "INDEX_KEY": random_key(),
            "CURSOR_KEY": random_key(),
        }
    )

    @property
    def environment(self) -> dict[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
        return {**inherited, **self.urls, **{f"RECADO_{name}": value for name, value in self.keys.items()}}

    def service(self, cell: str, **settings: str) -> Service:
        folder = self.folder / cell
        folder.mkdir(exist_ok=True)
        url = self.urls[f"CELL_{cell.upper()}"]
        return Service(
            folder, DATABASE_URL=url, SANDBOX_TIME_SCALE="0.01", SSRF_ALLOW_CIDRS="127.0.0.0/8", **self.keys, **settings
        )

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return forked.run(("cells", *arguments), cwd=self.folder, env=self.environment, timeout=LIMIT)

    def said(self, *arguments: str) -> Any:
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def refused(self, *arguments: str) -> str:
        done = self.run(*arguments)
        assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
        return done.stderr.removeprefix("recado: ")

    def spawn(self, *arguments: str) -> forked.Forked:
        with (self.folder / "spawned").open("ab") as output:
            return forked.spawn(
                ("cells", *arguments), cwd=self.folder, env=self.environment, stdout=output, stderr=output
            )

    def add_both(self, **urls: str) -> None:
        """`urls`: of the services, where anybody asks them."""
        for cell in "ab":
            self.add(cell, **urls)

    def add(self, cell: str, **urls: str) -> None:
        media = self.folder / cell / "data" / "media"
        media.mkdir(parents=True, exist_ok=True)
        name = f"CELL_{cell.upper()}"
        url = urls.get(cell, f"http://{cell}.example")
        self.said("add", cell, "--database-from", name, "--url", url, "--media", str(media))


@asynccontextmanager
async def made_cells(
    postgres: dict[str, Any], maker: StandingConnection, folder: Path, letters: str = "AB"
) -> AsyncIterator[Cells]:
    names = {f"CELL_{each}": f"recado_cell_{secrets.token_hex(4)}" for each in letters}
    names["RECADO_CELLS_DATABASE_URL"] = f"recado_map_{secrets.token_hex(4)}"
    for variable, name in names.items():
        made_of = "template0" if variable.startswith("RECADO") else TEMPLATE
        await maker.execute(f"create database {name} template {made_of} strategy file_copy")
    place = f"?host={postgres['host']}&port={postgres['port']}"
    yield Cells(folder, {key: f"postgresql://{postgres['user']}@/{name}{place}" for key, name in names.items()})
    # By a connection of its own: a test may have ended all that there were.
    connection = await asyncpg.connect(**postgres)
    for name in names.values():
        await connection.execute(f"drop database {name} with (force)")
    await connection.close()


@asynccontextmanager
async def session_in(cells: Cells, cell: str) -> AsyncIterator[Session]:
    session = await connect(cells.urls[f"CELL_{cell.upper()}"])
    try:
        yield session
    finally:
        await session.close()


async def fetch(cells: Cells, cell: str, query: str, *arguments: Any) -> list[asyncpg.Record]:
    async with session_in(cells, cell) as session:
        return list(await session.fetch(query, *arguments))
