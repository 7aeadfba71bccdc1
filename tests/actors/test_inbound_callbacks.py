"""Inbound messages as a bridge reports them, from its callback to contact and event (C28.1, C29.5)."""

import random
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock

import orjson
import pytest
from tests.waiting import until

from recado.actors.callbacks import Callbacks
from recado.actors.consequences import Consequences
from recado.actors.inbound import InboundMessages
from recado.actors.outbox import Outbox
from recado.actors.receipts import Receipts
from recado.channels.chatapp.bridge import Bridge
from recado.domain.ids import IdSource
from recado.domain.timestamps import format_timestamp
from recado.engine.clock import SystemClock
from recado.storage.directories import Directories
from recado.storage.organizations import create_organization
from recado.storage.postgres import Database

SUBSCRIBE = """
insert into webhook_subscriptions
    (organization_id, id, env, url, secret_cipher, secret_version, events, include_pii, max_attempts, backoff_seconds,
    status, revision, updated_at)
values ($1, 'wbh_1', 'live', 'https://there.test', 's', 1, array['*'], false, 8, 30, 'active', 1, now())
"""


class Line:
    """A live number behind a bridge, whose callbacks are worked off when `arrive` returns."""

    def __init__(self, db: Database, number: Any) -> None:
        self.db, self.number = db, number
        self.clock = SystemClock()
        self.ids = IdSource(self.clock, random.Random(7))
        directories = Directories(db, clock=self.clock)
        consequences = Consequences(Outbox(directories.subscriptions, ids=self.ids, queued=lambda told: None))
        inbound = InboundMessages(
            organizations=directories.organizations,
            clock=self.clock,
            ids=self.ids,
            changed=lambda change: None,
            owing=lambda: None,
        )
        self.callbacks = Callbacks(
            db,
            clock=self.clock,
            providers={
                ("chatapp", "bridge"): Bridge(
                    url="http://127.0.0.1:1", token="t", secret="s", callback_url="http://x.test", clock=self.clock
                )
            },
            receipts_of=Receipts(db, clock=self.clock, consequences=consequences, inbound=inbound),
            numbers=Mock(),
            templates=Mock(),
        )

    def inbound(self, text: str, message_id: str, **fields: Any) -> dict[str, Any]:
        return {
            "kind": "inbound",
            "account": self.number.phone_number_id,
            "from": "5511987650001",
            "at": format_timestamp(self.clock.now()),
            "type": "text",
            "payload": {"text": {"body": text}},
            "providerMessageId": message_id,
            "profileName": "Ana",
            **fields,
        }

    async def arrive(self, *events: dict[str, Any]) -> None:
        await self.callbacks.take("chatapp", "bridge", orjson.dumps({"events": events}))
        await until(self._processed, 10, "the callbacks are worked off", every=0.005)

    async def _processed(self) -> bool:
        """Nobody but their one worker may take them: a second one would apply them once more."""
        return not await self.db.fetchval("select exists (select from callbacks where processed_at is null)")

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        rows = await self.db.fetch("select type, data::text from events order by id")
        return [(row[0], orjson.loads(row[1])) for row in rows]


@pytest.fixture
async def line(database: Database) -> AsyncIterator[Line]:
    clock = SystemClock()
    ids = IdSource(clock, random.Random(3))
    async with database.transaction() as connection:
        made = await create_organization(
            connection, ids, name="Acme", now=clock.now(), random_bytes=random.Random(1).randbytes
        )
    await database.execute("update number_owners set env = 'live'")
    await database.execute(SUBSCRIBE, made.organization.id)
    made_line = Line(database, made.number)
    await made_line.callbacks.start()
    yield made_line
    await made_line.callbacks.stop()


async def test_a_message_makes_a_contact_and_both_are_told(line: Line) -> None:
    await line.arrive(line.inbound("hello", "in-1"), line.inbound("hello again", "in-2", quoted="in-1"))
    (contact,) = await line.db.fetch("select id, env, source, chatapp_profile_name from contacts")
    assert tuple(contact)[1:] == ("live", "webhook", "Ana")
    first, _ = [row[0] for row in await line.db.fetch("select id from messages order by id")]
    told = await line.told()
    assert [type_ for type_, _ in told] == ["contact.created", "message.received", "message.received"]
    assert [data for _, data in told[1:]] == [
        {"contact": {"id": contact["id"], "created": True}},
        {"contact": {"id": contact["id"], "created": False}, "inReplyTo": first},
    ]


async def test_a_repeated_callback_changes_nothing(line: Line) -> None:
    stop = line.inbound("stop", "in-1")
    await line.arrive(stop)
    before = await line.told()
    assert {type_ for type_, _ in before} == {
        "contact.created",
        "message.received",
        "contact.consent_changed",
        "contact.opted_out",
    }
    await line.arrive(stop)
    await line.arrive(stop, line.inbound("stop", "in-1", profileName="Bia"))
    assert await line.told() == before
    counted = "select (select count(*) from messages), (select count(*) from contact_consents)"
    assert [tuple(row) for row in await line.db.fetch(counted)] == [(1, 1)]
    assert await line.db.fetchval("select chatapp_profile_name from contacts") == "Ana"


async def test_a_preference_opts_out(line: Line) -> None:
    await line.arrive(line.inbound("hello", "in-1"))
    await line.arrive(
        {
            "kind": "preference",
            "account": line.number.phone_number_id,
            "phone": "+5511987650001",
            "stopped": True,
            "at": format_timestamp(line.clock.now()),
        }
    )
    stored = await line.db.fetch("select opt_in_status, opt_in_source from contacts")
    assert [tuple(row) for row in stored] == [("denied", "provider")]
    assert (await line.told())[-1][0] == "contact.opted_out"


async def test_reports_and_messages_of_one_callback_are_both_applied(line: Line) -> None:
    report = {
        "kind": "status",
        "status": "delivered",
        "at": format_timestamp(line.clock.now()),
        "providerMessageId": "out-1",
        "account": line.number.phone_number_id,
    }
    await line.arrive(report, line.inbound("stop", "in-1"))
    assert await line.db.fetchval("select count(*) from parked_reports") == 1
    assert await line.db.fetchval("select opt_in_status from contacts") == "denied"
