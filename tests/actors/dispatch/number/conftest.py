"""One number over a real database, on a clock that only the test moves, before a provider that answers as told."""

import asyncio
import base64
import os
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from functools import partial
from typing import Any

import pytest
from tests.acme import acme, add_template
from tests.waiting import PATIENCE

from recado.actors.dispatch.calls import Calls, ContentOf
from recado.actors.dispatch.lane import Lane
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import Changed, Look
from recado.actors.dispatch.lanes import Lanes
from recado.actors.dispatch.places import Places
from recado.channels.core.provider import Accepted, Account, OutboundMessage, Outcome
from recado.channels.core.references import NamedBy
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.core.moments import Moments
from recado.domain.messages.message import NORMAL
from recado.domain.senders.sender import SenderKey
from recado.engine.clock import VirtualClock
from recado.engine.registry import Registry
from recado.engine.runtime import Runtime
from recado.services.dispatch.hints import Forced
from recado.services.dispatch.records import Records
from recado.services.dispatch.sending import Sending
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.recording import Recording
from recado.services.effects.totals import MessageTotals
from recado.storage.access import organizations
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import Organization
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.months import Months
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number
from recado.storage.templates.templates import Template

STEP = 0.01  # seconds: how far time goes before what was asked of the database is waited for


class Traffic:
    """What is being asked of the database. `turns`: a lock, where one thing is to be asked after the other."""

    def __init__(self) -> None:
        self.turns: asyncio.Lock | None = None
        self._under_way = 0
        self._none = asyncio.Event()

    def __enter__(self) -> None:
        self._under_way += 1

    def __exit__(self, *_: object) -> None:
        self._under_way -= 1
        if not self._under_way:
            self._none.set()

    async def quiet(self, clock: VirtualClock) -> None:
        """Until nothing moves any more unless time does."""
        async with asyncio.timeout(PATIENCE):
            await clock.settle()
            while self._under_way:
                self._none.clear()
                await self._none.wait()
                await clock.settle()


class Watched:
    """A database, or one of its pools, whose calls are counted as traffic."""

    def __init__(self, database: Any, traffic: Traffic) -> None:
        self._database = database
        self._traffic = traffic

    @property
    def hot(self) -> "Watched":
        return Watched(self._database.hot, self._traffic)

    @property
    def months(self) -> Months:
        months: Months = self._database.months
        return months

    @property
    def bulk(self) -> "Watched":
        return Watched(self._database.bulk, self._traffic)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._database, name)

        async def counted(*arguments: Any, **options: Any) -> Any:
            with self._traffic:
                async with self._traffic.turns or nullcontext():
                    return await call(*arguments, **options)

        return counted

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        with self._traffic:
            async with self._database.transaction() as connection:
                yield connection


@dataclass
class Provider:
    """Answers what `answer` says, at once; `calls`: the moment, the message and the attempt of each call."""

    clock: VirtualClock
    calls: list[tuple[float, str, int]] = field(default_factory=list)
    answer: Callable[[OutboundMessage], Outcome] = lambda message: Accepted(f"provider-{message.id}")
    name: str = "scripted"
    idempotent: bool = False
    looked_up_by: frozenset[NamedBy] = frozenset()
    paces_pairs: bool = False

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        self.calls.append((self.clock.monotonic(), message.id, attempt))
        return self.answer(message)

    @property
    def moments(self) -> list[float]:
        return [at for at, _, _ in self.calls]

    @property
    def sent(self) -> list[str]:
        return [message_id for _, message_id, _ in self.calls]


@dataclass
class Line:
    """The number, and everything that it works with."""

    db: Database
    clock: VirtualClock
    traffic: Traffic
    provider: Provider
    ids: IdSource
    directories: Directories
    context: LaneContext
    registry: Registry[SenderKey]
    make: Callable[[SenderKey], Lane]
    organization: Organization
    number: Number
    template: Template
    contents: dict[str, ContentOf]
    lanes: Lanes
    places: Places

    @property
    def key(self) -> SenderKey:
        return SenderKey(self.organization.id, "test", "chatapp", self.number.id)

    @property
    def in_memory(self) -> bool:
        return self.registry.get(self.key) is not None

    def tell(self, message: object) -> None:
        self.registry.get_or_spawn(self.key, self.make).tell(message)

    async def goes_on(self, seconds: float, step: float = STEP) -> None:
        """Let time pass. The database is infinitely fast: what a step asks of it is there before the next one."""
        await self.traffic.quiet(self.clock)
        for _ in range(round(seconds / step)):
            await self.clock.advance(step)
            await self.traffic.quiet(self.clock)

    async def queue(self, count: int, *, klass: int = NORMAL, due_in: float = 0.0, tell: bool = True) -> list[str]:
        """Store so many messages and tell the number; their ids in the order in which they are due."""
        now = self.clock.now()
        new = [
            NewMessage(
                organization_id=self.organization.id,
                env="test",
                channel="chatapp",
                id=self.ids.new(MESSAGE),
                sender_id=self.number.id,
                type="template",
                recipient="+5511987654321",
                recipient_hash=position,
                klass=klass,
                force=False,
                template_id=self.template.id,
                payload=None,
                template_vars='["Ana"]',
                metadata=None,
                campaign_id=None,
                scheduled_at=now + timedelta(seconds=due_in) if due_in else None,
                due_at=now + timedelta(seconds=due_in),
                ttl=timedelta(days=20),
                held_base_ms=0,
                accepted_at=now,
            )
            for position in range(count)
        ]
        assert await messages.accept(self.db, new) == [messages.STORED] * count
        if tell:
            self.tell(Look())
        return [message.id for message in new]

    async def force(self, message_id: str) -> None:
        await self.db.execute("update dispatch set force = true where id = $1", message_id)
        await self.db.execute("update messages set force = true where id = $1", message_id)
        self.tell(Forced())

    async def set_number(self, **changes: Any) -> None:
        self.number = await numbers.save(self.db, self.number, replace(self.number, **changes), self.clock.now())
        self.directories.numbers.clear()
        if self.in_memory:
            self.tell(Changed())

    async def quiet_hours(self, start: time, end: time) -> None:
        changed = replace(self.organization, quiet_start=start, quiet_end=end, time_zone="UTC")
        self.organization = await organizations.save(self.db, self.organization, changed, self.clock.now())
        self.directories.organizations.clear()

    async def counts(self) -> dict[str, int]:
        """Messages by status."""
        rows = await self.db.fetch(
            "select status, count(*)::int as n from messages where sender_id = $1 group by status", self.number.id
        )
        return {row["status"]: row["n"] for row in rows}

    async def most_attempts(self) -> int:
        return int(await self.db.fetchval("select max(attempts) from messages where sender_id = $1", self.number.id))

    async def reasons(self) -> set[str | None]:
        rows = await self.db.fetch("select distinct reason from dispatch where sender_id = $1", self.number.id)
        return {row["reason"] for row in rows}


@pytest.fixture
async def line(database: Database) -> AsyncIterator[Line]:
    """A connected number of 80 a second whose process took it over just now."""
    today = datetime.now(UTC).replace(hour=11, minute=0, second=0, microsecond=0)
    clock = VirtualClock(today)
    traffic = Traffic()
    db: Any = Watched(database, traffic)
    ids = IdSource(clock, random.Random(5))
    directories = Directories(db, clock=clock)
    provider = Provider(clock)
    keys = KeyRing.parse(f"k1:{base64.b64encode(os.urandom(32)).decode()}")
    adapter: Any = provider
    records = Records(
        db,
        directories.numbers,
        directories.social_accounts,
        directories.organizations,
        directories.templates,
        keys,
        lambda channel, env, route=None: adapter,
        clock,
    )
    made = await acme(database, clock, ids)
    template = await add_template(database, clock, ids, made.number)
    runtime = Runtime(clock, random.Random(6))

    def tell(number: SenderKey, message: object) -> None:
        lanes.tell(number, message)

    admission: Any = None  # nothing is accepted here: messages are stored as they are
    consequences = Consequences()
    recording = Recording(
        db,
        consequences=consequences,
        outbox=Outbox(directories.subscriptions, ids=ids, queued=lambda keys: None),
        wallet=None,
        totals=MessageTotals(clock=clock, emptied=lambda keys: None),
    )
    sending = Sending(db, clock=clock, tell=tell, admission=admission, consequences=consequences, recording=recording)
    contents: dict[str, ContentOf] = {}
    calls = Calls(sending, clock=clock, expect=lambda at: None, contents=contents)
    context = LaneContext(records, sending, calls, Moments(clock), clock.monotonic() + 1.0)
    make = partial(Lane, context=context)
    places = Places()
    lanes = Lanes(context, places, runtime=runtime)
    supervisor, registry = lanes.supervisor, lanes.registry
    await sending.start()
    await supervisor.start()
    await registry.start()
    yield Line(
        database,
        clock,
        traffic,
        provider,
        ids,
        directories,
        context,
        registry,
        make,
        made.organization,
        made.number,
        template,
        contents,
        lanes,
        places,
    )
    await registry.stop()
    await supervisor.stop()
    await calls.stop()
    await sending.stop()
