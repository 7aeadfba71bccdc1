"""Webhooks before a real endpoint on this machine that answers as a test says, and a real database."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

import orjson
import pytest
from aiohttp import web
from tests.waiting import PATIENCE, until

from recado.actors.webhooks.webhooks import Webhooks
from recado.channels.http.guarded_http import GuardedHttp
from recado.channels.http.outbound_guard import OutboundGuard
from recado.channels.webhooks.webhook_signing import new_secret
from recado.domain.core.ids import WEBHOOK, IdSource
from recado.domain.webhooks.webhook import SubscriptionKey, SubscriptionStatus
from recado.engine.clock import SystemClock
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor
from recado.storage.access.organizations import NewOrganization, create_organization
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.webhooks import events, webhooks
from recado.storage.webhooks.webhooks import HEADERS_FIELD, SECRET_FIELD, Subscription

LOCAL = (ip_network("127.0.0.0/8"), ip_network("::1"))
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Received:
    """One request that an endpoint got."""

    headers: Mapping[str, str]
    body: bytes
    path: str

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass
class Receiver:
    """A local endpoint. `answer` may be replaced; every request is in `received`."""

    port: int = 0
    received: list[Received] = field(default_factory=list)
    answer: Handler | None = None
    at_once: int = 0
    most_at_once: int = 0
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        body = await request.read()
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            async with self.arrived:
                self.received.append(Received(request.headers, body, request.path))
                self.arrived.notify_all()
            if self.answer is not None:
                return await self.answer(request)  # type: ignore[arg-type]
            return web.Response(text="thank you")
        finally:
            self.at_once -= 1

    async def wait_for(self, count: int, limit: float = PATIENCE) -> list[Received]:
        async with asyncio.timeout(limit), self.arrived:
            await self.arrived.wait_for(lambda: len(self.received) >= count)
        return self.received


@asynccontextmanager
async def listening() -> AsyncIterator[Receiver]:
    made = Receiver()
    server = web.Server(made.handle)
    runner = web.ServerRunner(server, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.port = runner.addresses[0][1]
    try:
        yield made
    finally:
        await runner.cleanup()


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with listening() as made:
        yield made


class ShiftedClock(SystemClock):
    """The machine's clock, moved on by a test."""

    __slots__ = ("ahead",)

    def __init__(self) -> None:
        super().__init__()
        self.ahead = timedelta(0)
        machine = self.now
        self.now = lambda: machine() + self.ahead


@dataclass
class Place:
    """One organization and the webhooks of a process. `secrets`: by subscription."""

    db: Database
    clock: ShiftedClock
    ids: IdSource
    keys: KeyRing
    http: GuardedHttp
    organization: NewOrganization
    webhooks: Webhooks
    root: Supervisor
    secrets: dict[str, str] = field(default_factory=dict)

    @property
    def organization_id(self) -> str:
        return self.organization.organization.id

    async def subscribe(self, url: str, *names: str, **fields: Any) -> Subscription:
        subscription_id, secret = self.ids.new(WEBHOOK), new_secret(os.urandom)
        headers = fields.pop("headers", None)
        place = {"organization_id": self.organization_id, "record_id": subscription_id}
        sealed = None
        if headers:
            plain = [{"key": key, "value": value} for key, value in headers.items()]
            sealed = self.keys.encrypt(orjson.dumps(plain).decode(), **place, field=HEADERS_FIELD)
        env = fields.pop("env", "test")
        async with self.db.transaction() as connection:
            made = await webhooks.insert(
                connection,
                Subscription(
                    organization_id=self.organization_id,
                    id=subscription_id,
                    env=env,
                    url=url,
                    secret_cipher=self.keys.encrypt(secret, **place, field=SECRET_FIELD),
                    headers_cipher=sealed,
                    events=names or ("*",),
                    updated_at=self.clock.now(),
                    **fields,
                ),
            )
        self.secrets[made.id] = secret
        return made

    async def emit(self, event: str = "wallet.depleted", count: int = 1, hint: bool = True, **data: Any) -> None:
        keys: list[SubscriptionKey] = []
        async with self.db.transaction() as connection:
            for number in range(count):
                keys += await events.emit(
                    connection,
                    self.ids,
                    organization_id=self.organization_id,
                    env="test",
                    type=event,
                    data={"number": number, **data},
                    keys=self.keys,
                )
        if hint:
            self.webhooks.queued(set(keys))

    async def stored(self, subscription: Subscription) -> Subscription:
        found = await webhooks.get(self.db, self.organization_id, None, subscription.id)
        assert found is not None
        return found

    async def until_status(self, subscription: Subscription, wanted: SubscriptionStatus) -> None:
        async def so() -> bool:
            return (await self.stored(subscription)).status is wanted

        await until(so, f"the subscription is {wanted.value}")

    async def settled(self, subscription: Subscription, count: int = 1, limit: float = 10.0) -> list[Any]:
        """The log of the subscription once it has so many entries."""

        async def rows() -> tuple[list[Any]] | None:
            found = await self.db.fetch(
                "select * from deliveries where subscription_id = $1 order by id", subscription.id
            )
            return (found,) if len(found) >= count else None

        return (await until(rows, f"{count} deliveries are settled", limit=limit))[0]

    async def pending(self, subscription: Subscription) -> list[Any]:
        return await self.db.fetch(
            "select * from delivery_queue where subscription_id = $1 order by id", subscription.id
        )

    async def until_attempted(self, subscription: Subscription, attempts: int = 1, limit: float = 10.0) -> Any:
        """The one pending delivery, once it was tried so often."""

        async def tried() -> Any:
            rows = await self.pending(subscription)
            return rows[0] if rows and rows[0]["attempts"] >= attempts else None

        return await until(tried, f"the delivery was tried {attempts} times", limit=limit)


def make_webhooks(place: Any, http: GuardedHttp) -> tuple[Webhooks, Supervisor]:
    runtime = Runtime(place.clock, random.Random(3))
    made = Webhooks(place.db, clock=place.clock, ids=place.ids, keys=place.keys, http=http, runtime=runtime)
    root = Supervisor("root", runtime=runtime)
    made.join(root)
    return made, root


@pytest.fixture
async def place(database: Database) -> AsyncIterator[Place]:
    clock = ShiftedClock()
    ids = IdSource(clock, random.Random(5))
    keys = KeyRing.parse("test:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")
    async with database.transaction() as connection:
        organization = await create_organization(
            connection, ids, name="First", now=clock.now(), random_bytes=os.urandom
        )
    guard = OutboundGuard(clock=clock, allowed=LOCAL)
    http = GuardedHttp(guard, clock=clock, connect_limit=PATIENCE, call_limit=PATIENCE)
    made = Place(database, clock, ids, keys, http, organization, None, None)  # type: ignore[arg-type]
    made.webhooks, made.root = make_webhooks(made, http)
    await made.root.start()
    yield made
    await made.root.stop()
