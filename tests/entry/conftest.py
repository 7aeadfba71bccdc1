"""The entry before two cells: their databases are real, and what they serve is answered by the tests."""

import hashlib
import os
import random
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_network
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from tests.emptied import TEMPLATE
from tests.program import free_port
from tests.standing_connection import StandingConnection

from recado.config.limits import DEFAULT_LIMITS, RequestLimit
from recado.domain.core.ids import ORGANIZATION, IdSource
from recado.domain.core.tokens import mint_token, token_hash
from recado.engine.clock import SystemClock
from recado.entry.parts import entry_parts
from recado.entry.places import CellList, CellPlaces, MappedPlaces
from recado.storage.cells.cell_map import Cell, CellMap
from recado.storage.cells.holding import Session, connect

PROXY = "127.0.0.9"
TABLES = ("organizations", "api_keys", "api_key_tokens", "accounts", "origin_links")

LIMITS = {**DEFAULT_LIMITS, "failed": RequestLimit(1, 20), "login": RequestLimit(10, 100)}
"""As slow as the machine may be: guesses come faster than these, and tests sign in more slowly."""

Answer = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


async def echo(request: web.BaseRequest) -> web.StreamResponse:
    """What came, as JSON."""
    digest = hashlib.sha256()
    size = 0
    async for piece in request.content.iter_any():
        digest.update(piece)
        size += len(piece)
    said = {"target": request.raw_path, "headers": dict(request.headers), "size": size, "sha256": digest.hexdigest()}
    return web.json_response(said)


@dataclass
class StubCell:
    """A cell's service: `answers` takes its requests, which `targets` lists. It is ready while it runs."""

    name: str
    session: Session
    answers: Answer = echo
    targets: list[str] = field(default_factory=list)
    port: int = field(default_factory=free_port)
    runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        async def handle(request: web.BaseRequest) -> web.StreamResponse:
            if request.raw_path == "/readyz":
                return web.Response()
            self.targets.append(request.raw_path)
            response = await self.answers(request)
            response.headers["X-From"] = self.name
            return response

        self.runner = web.ServerRunner(web.Server(handle), handle_signals=False, shutdown_timeout=0.1)
        await self.runner.setup()
        await web.TCPSite(self.runner, "127.0.0.1", self.port).start()

    async def stop(self) -> None:
        runner, self.runner = self.runner, None
        if runner is not None:
            await runner.cleanup()

    async def organization(self) -> tuple[str, str]:
        """A new one: its id, and the token of a key."""
        ids = IdSource(SystemClock(), random.Random(secrets.token_bytes(16)))
        organization_id, token = ids.new(ORGANIZATION), mint_token("svc_test_", os.urandom)
        await self.session.execute(
            "insert into organizations (id, name, status, time_zone, country, require_granted_for_marketing,"
            " opt_out_keywords, opt_in_keywords, revision, updated_at)"
            " values ($1, 'Acme', 'active', 'UTC', 'BR', false, '{}', '{}', 1, now())",
            organization_id,
        )
        await self.session.execute(
            "insert into api_key_tokens values ($1, $2, 'key', null)", token_hash(token), organization_id
        )
        return organization_id, token


@dataclass
class Two:
    """Two cells, the map, and the address of the entry."""

    a: StubCell
    b: StubCell
    urls: dict[str, str]
    map: CellMap
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def move(self, organization_id: str) -> None:
        """From the first to the second, at once, as the last commit of a move leaves it."""
        for table in TABLES:
            whose = "id" if table == "organizations" else "organization_id"
            rows = await self.a.session.fetch(f"delete from {table} where {whose} = $1 returning *", organization_id)
            if rows:
                await self.b.session.copy_records_to_table(table, records=[tuple(row) for row in rows])


@pytest.fixture(scope="session")
async def cell_urls(postgres: dict[str, Any], maker: StandingConnection) -> AsyncIterator[dict[str, str]]:
    names = {f"CELL_{each}": f"recado_entry_{secrets.token_hex(4)}" for each in "AB"}
    for name in names.values():
        await maker.execute(f"create database {name} template {TEMPLATE} strategy file_copy")
    place = f"?host={postgres['host']}&port={postgres['port']}"
    yield {key: f"postgresql://{postgres['user']}@/{name}{place}" for key, name in names.items()}
    for name in names.values():
        await maker.execute(f"drop database {name} with (force)")


@pytest.fixture
async def two(cell_urls: dict[str, str]) -> AsyncIterator[Two]:
    async with between(dict(cell_urls)) as made:
        yield made


@asynccontextmanager
async def between(
    urls: dict[str, str],
    *,
    find_places: Callable[[CellList], CellPlaces] = lambda _: MappedPlaces(),
    variables: dict[str, str] | None = None,
    mapped: bool = True,
    metrics_token: str | None = None,
) -> AsyncIterator[Two]:
    sessions = {each: await connect(urls[f"CELL_{each.upper()}"]) for each in "ab"}
    cells = {each: StubCell(each, session) for each, session in sessions.items()}
    cell_map = CellMap(sessions["a"])
    for session in sessions.values():
        await session.execute(f"truncate {', '.join(TABLES)}")
    await cell_map.make()
    for cell in cells.values():
        await cell.start()
        await cell_map.add(Cell(cell.name, f"CELL_{cell.name.upper()}", cell.url, None))
    port = free_port()
    parts = entry_parts(
        map_address=urls["CELL_A"] if mapped else None,
        variables=variables or urls,
        host="127.0.0.1",
        port=port,
        base_url="https://api.example.com",
        trusted_proxies=[ip_network(PROXY)],
        limits=LIMITS,
        connections=1_000,
        connections_of_address=500,
        metrics_token=metrics_token,
        clock=SystemClock(),
        random_bytes=os.urandom,
        find_places=find_places,
    )
    await parts.start()
    try:
        yield Two(cells["a"], cells["b"], urls, cell_map, port)
    finally:
        await parts.stop()
        for cell in cells.values():
            await cell.stop()
        await sessions["a"].execute("drop schema recado_cells cascade")
        for session in sessions.values():
            await session.close()


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}
