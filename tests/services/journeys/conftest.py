"""An organization with journeys that run: its executions take their turns on a clock that the test sets."""

import os
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest
from tests.acme import BODY, acme, add_template
from tests.journey_emails import email_rules
from tests.people import insert_people
from tests.storage.journeys.rows import insert_journey, new_entry

from recado.domain.core.ids import CONTACT, CUSTOMER_EVENT, MESSAGE, IdSource
from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.domain.messages.withdrawal import Withdrawal
from recado.engine.clock import VirtualClock
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.wallet import Wallet
from recado.services.email.sendable import SendableTemplates
from recado.services.journeys.execution_turns import ExecutionTurns
from recado.services.journeys.running import RunningJourneys
from recado.services.journeys.step_calls import StepCalls
from recado.services.journeys.step_messages import StepMessages
from recado.services.messages.admission import Admission
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.services.messages.sms_rules import SmsRules
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import ACTIVE, SUSPENDED, Organization
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import executions
from recado.storage.journeys.entries import begin_test, enter
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.journeys import Journey
from recado.storage.messages.chat_windows import ChatWindows
from recado.storage.messages.messages import NewMessage
from recado.storage.senders.numbers import Number

ENV = "test"
BORN = datetime(2026, 11, 23, 12, tzinfo=UTC)  # a Monday
HOUR = timedelta(hours=1)


_INBOUND = """
insert into messages (organization_id, env, channel, id, direction, status, type, recipient, class, force, contact_id,
    delivered_at, updated_at)
values ($1, $2, 'sms', $3, 'inbound', 'delivered', 'text', '+4915000000001', 1, false, $4, $5, $5)
"""
_EVENT = """
insert into customer_events (organization_id, env, event_id, id, name, contact_id, occurred_at, currency)
values ($1, $2, $3::text, $3::text, $4, $5, $6, 'BRL')
"""


def sms(step_id: str, following: str, text: str = "Hi") -> dict[str, Any]:
    return {"id": step_id, "tipo": "enviar", "canal": "sms", "texto": text, "proximo": following}


def wait(step_id: str, following: str, minutes: int = 60) -> dict[str, Any]:
    return {"id": step_id, "tipo": "esperar", "minutos": minutes, "proximo": following}


def on(signal: str, about: str, **fields: Any) -> dict[str, Any]:
    """A condition `ask` that leads to the ends `yes` and `no`; its window is an hour."""
    return {
        "id": "ask", "tipo": "condicao", "sobre": about, "sinal": signal, "janelaMinutos": 60,
        "sim": "yes", "nao": "no", **fields,
    }  # fmt: skip


ENDS = [{"id": "yes", "tipo": "fim"}, {"id": "no", "tipo": "fim"}]
END = {"id": "end", "tipo": "fim"}


@dataclass
class Way:
    """One organization, and the turns of its executions.

    `accepted`: the messages that they made; `recalled`: those in hand when their executions ended; `paused`: journeys
    that paused themselves.
    """

    db: Database
    clock: VirtualClock
    ids: IdSource
    directories: Directories
    organization: Organization
    number: Number
    turns: ExecutionTurns
    step_messages: StepMessages
    step_calls: StepCalls
    accepted: list[NewMessage] = field(default_factory=list)
    recalled: list[Withdrawal] = field(default_factory=list)
    paused: list[OwnerPauses] = field(default_factory=list)

    async def journey(self, *steps: Mapping[str, Any], **changes: Any) -> Journey:
        return await insert_journey(self.db, steps, organization_id=self.organization.id, **changes)

    async def person(self, **columns: Any) -> str:
        known = await self.db.fetchval("select count(*) from contacts")
        given = [{"id": self.ids.new(CONTACT), **columns}]
        (contact_id,) = await insert_people(self.db, self.organization.id, ENV, given, first=known + 1)
        return contact_id

    async def begin(self, journey: Journey, contact_id: str | None = None, **data: Any) -> Execution:
        entry = new_entry(contact_id or await self.person(), journey, at=self.clock.now(), **data)
        await enter(self.db, self.organization.id, ENV, [entry])
        return await self.read((self.organization.id, ENV, journey.id, entry.execution_id))

    async def tried(self, journey: Journey) -> Execution:
        """The execution of a test without waits."""
        entry = new_entry(await self.person(), journey, at=self.clock.now(), origin=ExecutionOrigin.TEST)
        await begin_test(self.db, self.organization.id, ENV, entry, hurried=True)
        return await self.read((self.organization.id, ENV, journey.id, entry.execution_id))

    async def read(self, key: executions.ExecutionKey) -> Execution:
        found = await executions.get(self.db, key)
        assert found is not None
        return found

    async def work(self, after: timedelta = timedelta()) -> None:
        """Every turn that there is something to do in, once so much time has passed."""
        await self.clock.advance(after.total_seconds())
        while (await self.turns.hear()).count or await self.turns.rouse():
            pass
        while (await self.turns.take()).count:
            pass

    async def suspend(self, *, lifted: bool = False) -> None:
        """The organization, or its suspension is lifted."""
        status = ACTIVE if lifted else SUSPENDED
        await self.db.execute("update organizations set status = $2 where id = $1", self.organization.id, status)

    async def trail(self, execution: Execution) -> list[tuple[str, str, str | None]]:
        found = await executions.trail(self.db, execution.organization_id, execution.id)
        return [(step.step_id, step.resultado, step.detalhe) for step in found]

    async def ids_of_inbound(self, contact_id: str, at: datetime) -> str:
        """An SMS of the contact, which came in now and was written at that moment; answers its id."""
        message_id = self.ids.new(MESSAGE)
        await self.db.execute(_INBOUND, self.organization.id, ENV, message_id, contact_id, at)
        return message_id

    async def event(self, contact_id: str, name: str, at: datetime) -> None:
        """A customer event of the contact."""
        event_id = self.ids.new(CUSTOMER_EVENT)
        await self.db.execute(_EVENT, self.organization.id, ENV, event_id, name, contact_id, at)


@asynccontextmanager
async def open_way(database: Database, at: datetime = BORN, seed: int = 7) -> AsyncIterator[Way]:
    """`seed`: of its ids, for another one in a database that has one of that moment."""
    clock = VirtualClock(at)
    ids = IdSource(clock, random.Random(seed))
    directories = Directories(database, clock=clock)
    outbox = Outbox(directories.subscriptions, ids=ids, queued=lambda keys: None)
    wallet = Wallet(directories.prices, clock=clock, ids=ids, queued=lambda keys: None)
    consequences = Consequences(outbox, wallet)
    windows = ChatWindows(database, clock=clock)
    await windows.start()
    shared: dict[str, Any] = {
        "organizations": directories.organizations,
        "ids": ids,
        "clock": clock,
        "sends_in": {ENV},
        "prices": directories.prices,
    }
    emails = SendableTemplates(database, clock=clock)
    rules = [
        ChatAppRules(
            numbers=directories.numbers,
            templates=directories.templates,
            flows=directories.flows,
            windows=windows,
            **shared,
        ),
        SmsRules(links=partial(MessageLinks, "https://links.example.org", os.urandom), **shared),
        email_rules(database, emails, **shared),
    ]
    made = await acme(database, clock, ids)
    step_messages = StepMessages(
        rules,
        numbers=directories.numbers,
        templates=directories.templates,
        organizations=directories.organizations,
        emails=emails,
    )
    step_calls = StepCalls(database, clock=clock, ids=ids, wanted=lambda: None, due=lambda: None)
    accepted: list[NewMessage] = []
    recalled: list[Withdrawal] = []
    paused: list[OwnerPauses] = []
    turns = ExecutionTurns(
        database,
        clock=clock,
        organizations=directories.organizations,
        step_messages=step_messages,
        step_calls=step_calls,
        admission=Admission(database, clock=clock, ids=ids, consequences=consequences),
        accepted=accepted.extend,
        recalled=recalled.extend,
        paused=paused.append,
        journeys=RunningJourneys(),
    )
    try:
        yield Way(
            database,
            clock,
            ids,
            directories,
            made.organization,
            made.number,
            turns,
            step_messages,
            step_calls,
            accepted,
            recalled,
            paused,
        )
    finally:
        await windows.stop()


@pytest.fixture
async def way(database: Database) -> AsyncIterator[Way]:
    async with open_way(database) as made:
        yield made


async def approved_template(way: Way) -> str:
    """Of one variable."""
    template = await add_template(way.db, way.clock, way.ids, way.number, name="welcome", components=BODY)
    return template.id
