"""One organization with coins, and everything that makes and moves its batches, over a real database."""

import asyncio
import os
import random
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.acme import acme, add_template
from tests.waiting import until

from recado.channels.core.adapters import Adapters
from recado.domain.batches.batch import BatchStatus
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import Priority
from recado.engine.clock import VirtualClock
from recado.services.batches.batch_acceptance import AcceptedBatch, BatchAcceptance
from recado.services.batches.batch_audience import Audiences
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.batch_maker import BatchMaker
from recado.services.batches.batch_prices import WalletTariff
from recado.services.batches.batches import Batches
from recado.services.batches.chatapp_batches import ChatAppBatches
from recado.services.dispatch.records import Records
from recado.services.dispatch.sending import Sending
from recado.services.effects.campaigns import Campaigns
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.recording import Recording
from recado.services.effects.totals import MessageTotals
from recado.services.effects.wallet import Wallet
from recado.services.messages.admission import Admission
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import Organization
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.batches import batches
from recado.storage.batches.batch_making import NewBatch
from recado.storage.batches.batches import Batch
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch.settlements import Departed, Failed
from recado.storage.senders.numbers import Number
from recado.storage.templates.templates import Template

PRICE = 1_800  # coins: a utility template abroad


@dataclass
class Workshop:
    """What makes batches; nothing of it runs by itself, `batches.work()` is one look."""

    db: Database
    clock: VirtualClock
    ids: IdSource
    records: Records
    sending: Sending
    maker: BatchMaker
    audiences: Audiences
    batches: Batches
    acceptance: BatchAcceptance
    organization: Organization
    number: Number
    template: Template
    told: list[tuple[Any, Any]] = field(default_factory=list)
    hints: int = 0

    def draft(self, count: int = 3, **changes: Any) -> BatchDraft:
        fields: dict[str, Any] = {
            "organization_id": self.organization.id,
            "env": "test",
            "channel": "chatapp",
            "sender_id": self.number.id,
            "type": "template",
            "priority": Priority.BULK,
            "recipients": people(count),
            "template_id": self.template.id,
            "template_vars": ["Ana"],
        }
        return BatchDraft(**{**fields, **changes})

    async def made(self, draft: BatchDraft) -> NewBatch:
        outcome = await self.acceptance.accept(draft)
        assert isinstance(outcome, AcceptedBatch)
        return outcome.batch

    async def another_organization(self) -> dict[str, Any]:
        """The changes that make a draft one of a second organization."""
        made = await acme(self.db, self.clock, self.ids)
        template = await add_template(self.db, self.clock, self.ids, made.number)
        return {
            "organization_id": made.organization.id, "sender_id": made.number.id, "template_id": template.id
        }  # fmt: skip

    async def built(self, batch: Any) -> Batch:
        """The batch, once the running service has made all of it, or can make no more."""

        async def through() -> Batch | None:
            now = await self.now(batch)
            return None if now.status == BatchStatus.BUILDING else now

        await self.batches.start()
        try:
            return await until(through, "all of the batch is made")
        finally:
            await self.batches.stop()

    async def now(self, batch: Any) -> Batch:
        found = await batches.get(self.db, (batch.organization_id, batch.env, batch.id))
        assert found is not None
        return found

    async def wallet(self) -> tuple[int, int]:
        """(available, held) coins."""
        row = await self.db.fetchrow(
            "select balance_coins, held_coins from wallets where organization_id = $1 and env = 'test'",
            self.organization.id,
        )
        return row["balance_coins"] - row["held_coins"], row["held_coins"]

    async def set_coins(self, available: int) -> None:
        await self.db.execute(
            "update wallets set balance_coins = held_coins + $2, status = 'low' "
            "where organization_id = $1 and env = 'test'",
            self.organization.id,
            available,
        )

    async def queue(self, batch: Any) -> list[Any]:
        """Its rows of the queue, in their order."""
        return list(await self.db.fetch("select * from dispatch where owner = $1 order by id", batch.id))

    async def claim(self, message_ids: list[str]) -> None:
        await self.db.execute(
            "with claimed as ("
            "update dispatch set claimed_epoch = 1, claimed_at = now() where id = any($1::text[]) returning id) "
            "update messages set status = 'sending' where id in (select id from claimed)",
            message_ids,
        )

    async def depart(self, message_ids: list[str]) -> None:
        """Let the messages be claimed and accepted by the provider."""
        await self.claim(message_ids)
        now = self.clock.now()
        key = (self.organization.id, "test", "chatapp")
        departed = [
            Departed(*key, message_id, self.number.id, f"p{message_id}", now, "utility", None, now)
            for message_id in message_ids
        ]
        await self.settle(departed)

    async def settle(self, settled: Sequence[Departed | Failed]) -> None:
        """Record what became of calls; the clock turns meanwhile, because a commit waits a moment for more."""
        under_way = asyncio.gather(*map(self.sending.settle, settled))
        while not under_way.done():
            await self.clock.advance(0.01)
            await asyncio.wait([under_way], timeout=0.01)
        await under_way


def people(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"to": f"+4915{number:09}"} for number in range(first, first + count)]


@pytest.fixture
async def workshop(database: Database) -> AsyncIterator[Workshop]:
    clock = VirtualClock(datetime.now(UTC).replace(microsecond=0))
    ids = IdSource(clock, random.Random(os.urandom(8)))
    directories = Directories(database, clock=clock)
    told: list[tuple[Any, Any]] = []
    records = Records(
        database,
        directories.numbers,
        directories.social_accounts,
        directories.organizations,
        directories.templates,
        None,  # type: ignore[arg-type]  # nobody sends
        Adapters({}).sender,
        clock,
    )
    found: list[Workshop] = []
    totals = MessageTotals(clock=clock, emptied=lambda keys: found[0].batches.emptied(keys))
    outbox = Outbox(directories.subscriptions, ids=ids, queued=lambda keys: None)
    wallet = Wallet(directories.prices, clock=clock, ids=ids, queued=lambda keys: None)
    consequences = Consequences(outbox, wallet, totals, Campaigns())

    def tell(number: Any, message: object) -> None:
        told.append((number, message))

    sending = Sending(
        database,
        clock=clock,
        tell=tell,
        admission=Admission(database, clock=clock, ids=ids, consequences=consequences),
        consequences=consequences,
        recording=Recording(database, consequences=consequences, outbox=outbox, wallet=wallet, totals=totals),
    )
    audiences = Audiences(database, Evaluation(database), clock=clock)
    channels = {CHATAPP: ChatAppBatches(database, directories, sends_in={"test"})}
    maker = BatchMaker(
        database,
        clock=clock,
        ids=ids,
        tell=tell,
        consequences=consequences,
        tariff=WalletTariff(prices=directories.prices, ids=ids, clock=clock),
        audiences=audiences,
        channels=channels,
    )
    life = Batches(
        database,
        clock=clock,
        maker=maker,
        audiences=audiences,
        owners=records.owners,
        consequences=consequences,
        tell=tell,
        claims_settled=sending.claims_settled,
    )

    def hint() -> None:
        found[0].hints += 1

    acceptance = BatchAcceptance(
        database,
        channels=channels,
        maker=maker,
        audiences=audiences,
        ids=ids,
        clock=clock,
        unfinished=hint,
    )
    made = await acme(database, clock, ids)
    template = await add_template(database, clock, ids, made.number)
    workshop = Workshop(
        database,
        clock,
        ids,
        records,
        sending,
        maker,
        audiences,
        life,
        acceptance,
        made.organization,
        made.number,
        template,
        told,
    )
    found.append(workshop)
    await sending.start()
    await acceptance.start()
    yield workshop
    await acceptance.stop()
    await sending.stop()


@pytest.fixture
async def nobody(workshop: Workshop) -> None:
    """No contacts, lists and segments of the tests before."""
    await workshop.db.execute(
        "truncate contacts, static_lists, static_list_members, segments, batch_audiences, opt_outs"
    )
