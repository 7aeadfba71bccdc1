"""A server with fake routes and credentials on a real socket, under a virtual clock: what HTTP itself must hold."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest

from recado.domain.core.errors import Problem
from recado.domain.core.idempotency import AnswerStored, Beginning, Erased, InProgress, KeyHeld, Reused
from recado.domain.core.ids import IdSource
from recado.engine.clock import VirtualClock
from recado.http.api.call import Call
from recado.http.api.route import Route
from recado.http.callers.principal import Principal
from recado.http.server import HttpServer
from recado.http.wire.reply import Reply
from recado.storage.core.shares.callers import working_for

BASE_URL = "https://api.example.com"
SENDER = Principal("org_1", "live", "key", "key_1", frozenset({"things:read", "things:write"}))

NO_CEILINGS: Mapping[str, tuple[float, int]] = {}
LIMITS = {
    "read": (500.0, 1000),
    "write": (200.0, 400),
    "send": (5000.0, 10_000),
    "public": (50.0, 3),
    "login": (10 / 60, 10),
    "failed": (50.0, 50),
    "anonymous": (50.0, 200),
    "tiny": (0.5, 2),
}


@dataclass
class FakeCredentials:
    """Tokens to principals; `bad` tokens answer their own 401."""

    known: dict[str, Principal] = field(default_factory=lambda: {"good": SENDER})
    bad: dict[str, Problem] = field(default_factory=dict)
    asked_for: list[str] = field(default_factory=list)

    def peek(self, token: str) -> Principal | None:
        return self.known.get(token)

    async def authenticate(self, token: str) -> Principal | Problem:
        self.asked_for.append(working_for.get())
        return self.bad.get(token) or Problem("UNAUTHORIZED", "Unknown API key.")


class FakeIdempotency:
    """Keys in a dictionary. `erased`: contacts whose answers are gone."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str, bytes], tuple[bytes, AnswerStored | Erased | None]] = {}
        self.begun: list[datetime] = []
        self.locks: list[timedelta] = []
        self.erased: set[str] = set()

    async def begin(
        self, organization_id: str, env: str, key_hash: bytes, fingerprint: bytes, now: datetime, *, lock: timedelta
    ) -> Beginning:
        key = (organization_id, env, key_hash)
        self.begun.append(now)
        self.locks.append(lock)
        if key not in self.rows:
            self.rows[key] = (fingerprint, None)
            return KeyHeld(organization_id, env, key_hash, now)
        known, stored = self.rows[key]
        if known != fingerprint:
            return Reused()
        return stored or InProgress()

    async def finish(self, held: KeyHeld, status: int, body: bytes, subject_id: str | None) -> None:
        key = (held.organization_id, held.env, held.key_hash)
        gone = subject_id if subject_id in self.erased else None
        self.rows[key] = (self.rows[key][0], AnswerStored(status, body) if gone is None else Erased(status, gone))

    async def take_back(self, held: KeyHeld, made: str | None) -> None:
        key = (held.organization_id, held.env, held.key_hash)
        self.rows[key] = (self.rows[key][0], None)

    async def release(self, held: KeyHeld) -> None:
        self.rows.pop((held.organization_id, held.env, held.key_hash), None)

    async def release_uncommitted(self, held: KeyHeld) -> None:
        await self.release(held)  # nothing here is committed

    async def resume(self, organization_id: str, env: str, key_hash: bytes, now: datetime) -> KeyHeld | None:
        return None  # nothing here is lost

    def noting_commit(
        self, held: KeyHeld, made: Callable[[], str | None], answer: Callable[[], AnswerStored | None]
    ) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass
class Api:
    """A running server and a client of it, which sends a good credential unless told otherwise."""

    server: HttpServer
    client: aiohttp.ClientSession
    clock: VirtualClock
    credentials: FakeCredentials
    idempotency: FakeIdempotency
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    def as_principal(self, **changes: Any) -> dict[str, str]:
        """The headers of a caller who differs from the usual one in `changes`."""
        token = f"token-{len(self.credentials.known)}"
        self.credentials.known[token] = replace(SENDER, **changes)
        return {"Authorization": f"Bearer {token}"}

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A bare connection, closed at the end of the test."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port)
        self.writers.append(writer)
        return reader, writer


def thing_route(method: str = "GET", path: str = "/things", **options: Any) -> Route:
    """A route that answers 200 with `{"ok": true}`, unless `options` say more."""
    reads = method == "GET"
    usual: dict[str, Any] = {
        "handler": answer_ok,
        "operation_id": f"{method.lower()}{path.title().replace('/', '').replace('{', '').replace('}', '')}",
        "summary": "Something",
        "tag": "Things",
        "scope": "things:read" if reads else "things:write",
        "rate_class": "read" if reads else "write",
    }
    return Route(method=method, path=path, **{**usual, **options})


async def answer_ok(_: Call) -> Reply:
    return Reply(200, {"ok": True})


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[Api]]]:
    """Start servers: `await serve(*routes, **options of HttpServer)`."""
    started: list[Api] = []

    async def start(
        *routes: Route,
        limits: Mapping[str, tuple[float, int]] = LIMITS,
        ceilings: Mapping[str, tuple[float, int]] = NO_CEILINGS,
        **options: Any,
    ) -> Api:
        clock = VirtualClock(datetime(2026, 3, 1, 12, tzinfo=UTC))
        credentials, idempotency = FakeCredentials(), FakeIdempotency()
        server = HttpServer(
            routes,
            authenticator=credentials,
            idempotency_store=idempotency,
            limits=limits,
            ceilings=ceilings,
            clock=clock,
            ids=IdSource(clock, random.Random(7)),
            base_url=BASE_URL,
            **options,
        )
        await server.start()
        client = aiohttp.ClientSession(f"http://127.0.0.1:{server.port}", headers={"Authorization": "Bearer good"})
        api = Api(server, client, clock, credentials, idempotency)
        started.append(api)
        return api

    yield start
    for api in started:
        await api.client.close()
        for writer in api.writers:
            writer.close()
        await api.server.stop()


@pytest.fixture
def thing() -> Callable[..., Route]:
    """`thing(method, path, **options of Route)`: a route that needs little said about it."""
    return thing_route


@pytest.fixture
def wait_until() -> Callable[[Callable[[], bool]], Awaitable[None]]:
    """`await wait_until(condition)`: let the loop run until it holds; ten seconds end a test that waits in vain."""

    async def until(condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                await asyncio.sleep(0)

    return until
