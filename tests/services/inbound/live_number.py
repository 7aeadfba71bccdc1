"""A live number behind a bridge: the callbacks about it, on the real database."""

import random
from typing import Any
from unittest.mock import Mock

import orjson
from tests.waiting import until

from recado.channels.chatapp.bridge import Bridge
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.core.timestamps import format_timestamp
from recado.engine.clock import SystemClock
from recado.http.bodies.body_workers import BodyWorkers
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.inbound.callbacks import Callbacks
from recado.services.inbound.inbound import InboundMessages
from recado.services.inbound.receipts import Receipts
from recado.services.senders.social_accounts import SocialAccountReports
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import create_organization
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.webhooks.sealed_phones import shown


class Line:
    """A live number behind a bridge, whose callbacks are worked off when `arrive` returns."""

    def __init__(self, db: Database, number: Any, clock: Clock) -> None:
        self.db, self.number, self.clock = db, number, clock
        self.ids = IdSource(self.clock, random.Random(7))
        self.keys = KeyRing({"k1": b"k" * 32})
        directories = Directories(db, clock=self.clock)
        consequences = Consequences(Outbox(directories.subscriptions, ids=self.ids, queued=lambda told: None))
        inbound = InboundMessages(
            organizations=directories.organizations,
            clock=self.clock,
            ids=self.ids,
            keys=self.keys,
            changed=lambda change: None,
            owing=lambda: None,
            simulator_domain="simulator.test",
        )
        self.receipts = Receipts(db, clock=self.clock, consequences=consequences, inbound=inbound)
        self.workers = BodyWorkers(clock)  # who sends large bodies ends them
        self.callbacks = Callbacks(
            db,
            clock=self.clock,
            providers={
                ("chatapp", "bridge"): Bridge(
                    url="http://127.0.0.1:1", token="t", secret="s", callback_url="http://x.test", clock=self.clock
                )
            },
            receipts_of=self.receipts,
            numbers=Mock(),
            social_accounts=SocialAccountReports(db, self.clock, lambda change: None),
            templates=Mock(),
            flows=Mock(),
            apart=self.workers,
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
        await self.callbacks.take("chatapp", "bridge", orjson.dumps({"events": events}), {})
        await self.worked_off()

    async def worked_off(self) -> None:
        await until(self._processed, "the callbacks are worked off", every=0.005)

    async def _processed(self) -> bool:
        """Nobody but their one worker may take them: a second one would apply them once more."""
        return not await self.db.fetchval("select exists (select from callbacks where processed_at is null)")

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        rows = await self.db.fetch("select type, data::text, organization_id, id as event_id from events order by id")
        return [(row.pop("type"), shown(row.pop("data"), self.keys, **row)) for row in map(dict, rows)]


async def live_number(database: Database) -> Any:
    """The number that a new organization begins with, in live."""
    clock = SystemClock()
    ids = IdSource(clock, random.Random(3))
    async with database.transaction() as connection:
        made = await create_organization(
            connection, ids, name="Acme", now=clock.now(), random_bytes=random.Random(1).randbytes
        )
    await database.execute("update sender_owners set env = 'live'")
    return made.number
