"""An organization with a wallet, and the steps of a message's life that touch it, each with what follows of it."""

import os
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import orjson

from recado.domain.channels.policies import POLICIES
from recado.domain.core.clock import Clock
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.messages.message import Cause, FailureCode
from recado.services.effects.campaigns import Campaigns
from recado.services.effects.consequences import Consequences
from recado.services.effects.deadlines import MessageDeadlines
from recado.services.effects.outbox import Outbox
from recado.services.effects.overdue import Handlers, Overdue, handlers_of_policies
from recado.services.effects.recording import Recording
from recado.services.effects.totals import MessageTotals
from recado.services.effects.wallet import Wallet
from recado.services.messages.admission import Admission
from recado.storage.access import organizations
from recado.storage.access.directories import Directories
from recado.storage.billing import ledger
from recado.storage.billing.ledger import WalletRecord
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import settlements
from recado.storage.dispatch.settlements import Capture, Departed, Failed
from recado.storage.messages import message_moves, receipts
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.receipts import ReportRow

ENV = "live"


class Purse:
    """`organization_id`: whose live wallet it is, empty at first."""

    def __init__(self, database: Database, clock: Clock, ids: IdSource) -> None:
        self.database = database
        self.clock = clock
        self.ids = ids
        self.hinted: list[Any] = []
        self.directories = Directories(database, clock=clock)
        outbox = Outbox(self.directories.subscriptions, ids=ids, queued=self.hinted.extend)
        wallet = Wallet(self.directories.prices, clock=clock, ids=ids, queued=self.hinted.extend)
        totals = MessageTotals(clock=clock, emptied=lambda keys: None)
        self.consequences = Consequences(outbox, MessageDeadlines(), wallet, totals, Campaigns())
        self.recording = Recording(
            database, consequences=self.consequences, outbox=outbox, wallet=wallet, totals=totals
        )
        self.admission = Admission(database, clock=clock, ids=ids, consequences=self.consequences)
        self.organization_id = ""

    async def open(self) -> "Purse":
        async with self.database.transaction() as connection:
            made = await organizations.create_organization(
                connection, self.ids, name="Acme", now=self.clock.now(), random_bytes=os.urandom
            )
        self.organization_id = made.organization.id
        return self

    async def credit(self, coins: int) -> None:
        async with self.database.transaction() as connection:
            await ledger.credit(
                connection, self.ids, organization_id=self.organization_id, env=ENV, kind=ledger.ADJUSTMENT,
                coins=coins, description=None, reference=None, now=self.clock.now(),
            )  # fmt: skip

    async def wallet(self) -> WalletRecord:
        found = await ledger.get(self.database, self.organization_id, ENV)
        assert found is not None
        return found

    async def standing(self) -> tuple[int, int]:
        """The balance, and what is held of it."""
        wallet = await self.wallet()
        return wallet.balance_coins, wallet.held_coins

    def message(self, coins: int | None, **changes: Any) -> NewMessage:
        now = self.clock.now()
        fields: dict[str, Any] = {
            "organization_id": self.organization_id, "env": ENV, "channel": "chatapp", "id": self.ids.new(MESSAGE),
            "sender_id": "num_" + "0" * 21, "type": "template", "recipient": "+5511987654321", "recipient_hash": 1,
            "klass": 1, "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
            "campaign_id": None, "scheduled_at": None, "due_at": now, "ttl": timedelta(hours=1), "held_base_ms": 0,
            "accepted_at": now, "coins": coins, "price_kind": "chatapp_utility",
        }  # fmt: skip
        return NewMessage(**{**fields, **changes})

    async def store(self, *batch: NewMessage) -> Sequence[Any]:
        return await self.admission.store(batch)

    async def claim(self, message: NewMessage) -> None:
        await self.database.execute(
            "update dispatch set claimed_epoch = 1, claimed_at = $2 where id = $1", message.id, self.clock.now()
        )
        await self.database.execute(
            "update messages set status = 'sending' where organization_id = $1 and id = $2 and status = 'queued'",
            self.organization_id,
            message.id,
        )

    def departed(self, *batch: NewMessage, capture: Capture | None = None) -> list[Departed]:
        now = self.clock.now()
        return [
            Departed(
                m.organization_id, m.env, m.channel, m.id, m.sender_id, m.id, now, "utility", look_ups=None,
                settled_at=now, deadlines=POLICIES[m.channel].deadlines(orjson.loads(m.details or "{}"), now),
                capture=capture,
            )
            for m in batch
        ]  # fmt: skip

    async def depart(self, *batch: NewMessage, capture: Capture | None = None) -> None:
        await self.recording.record(self.departed(*batch, capture=capture))

    async def overdue(self, *, handlers: Handlers | None = None) -> None:
        """All that is due after a departure is due now, and its handlers do what they do."""
        handlers = handlers_of_policies() if handlers is None else handlers
        await self.database.execute("update message_deadlines set due_at = $1", self.clock.now())
        await Overdue(self.database, clock=self.clock, consequences=self.consequences, handlers=handlers).work()

    async def fail(self, message: NewMessage, code: FailureCode, *, queued: bool) -> None:
        cause = Cause(code, "as the test wants it", certain=code is not FailureCode.OUTCOME_UNKNOWN)
        row = Failed(message.organization_id, message.env, message.channel, message.id, cause, self.clock.now(), queued)
        async with self.database.hot.transaction() as connection:
            committed = await self.consequences.write(connection, await settlements.failed(connection, [row]))
        committed()

    async def report(self, message: NewMessage, status: str) -> None:
        cause = Cause(FailureCode.PROVIDER_ERROR, "says the provider") if status == "failed" else None
        row = ReportRow(
            message.organization_id, message.env, message.channel, message.id, status, self.clock.now(), cause, None
        )
        async with self.database.hot.transaction() as connection:
            found = await receipts.apply(connection, [row], self.clock.now())
            if cause is not None:  # as if its outcome were unknown again: another report is believed
                await connection.execute("update messages set outcome_certain = false where id = $1", message.id)
            moved = [move for moves in found.values() for move in moves]
            committed = await self.consequences.write(connection, moved)
        committed()

    async def archive(self, message: NewMessage) -> bool:
        return await message_moves.archive(
            self.database, self.ids, audit.SYSTEM, message.organization_id, message.env, message.id,
            self.clock.now(), self.consequences,
        )  # fmt: skip

    async def status(self, message: NewMessage) -> str | None:
        found: str | None = await self.database.fetchval(
            "select status from messages where organization_id = $1 and id = $2", self.organization_id, message.id
        )
        return found

    async def charges(self) -> dict[str, int]:
        """What each message was charged, by id."""
        rows = await self.database.fetch(
            "select message_id, count(*), sum(coins) from ledger "
            "where organization_id = $1 and kind = 'charge' group by 1",
            self.organization_id,
        )
        assert all(row["count"] == 1 for row in rows)
        return {row["message_id"]: -int(row["sum"]) for row in rows}

    async def check(self) -> None:
        """What always holds: the ledger sums up, what is held is what queue and deadlines hold, balances run."""
        wallet = await self.wallet()
        entries = await self.database.fetch(
            "select coins, balance_after from ledger where organization_id = $1 and env = $2 order by position",
            self.organization_id,
            ENV,
        )
        assert sum(entry["coins"] for entry in entries) == wallet.balance_coins
        balance = 0
        for entry in entries:
            balance += entry["coins"]
            assert entry["balance_after"] == balance
        held = await self.database.fetchval(
            "select (select coalesce(sum(coins), 0) from dispatch where organization_id = $1 and env = $2)::bigint"
            " + (select coalesce(sum(held_coins), 0) from message_deadlines where organization_id = $1 and env = $2)",
            self.organization_id,
            ENV,
        )
        assert wallet.held_coins == held
