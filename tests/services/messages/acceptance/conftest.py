"""One organization ready to send, and the acceptance of its messages over a real database."""

import os
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.acme import acme, add_template
from tests.causes import FAILED_AS

from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.domain.core.phones import recipient_hash
from recado.domain.messages.message import Priority
from recado.engine.clock import VirtualClock
from recado.services.dispatch.sending import Sending
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.recording import Recording
from recado.services.effects.totals import MessageTotals
from recado.services.effects.wallet import Wallet
from recado.services.messages.acceptance import Acceptance, AcceptedMessage
from recado.services.messages.admission import Admission
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.services.messages.draft import MessageDraft
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import Organization
from recado.storage.core.connections.postgres import Database
from recado.storage.messages import message_reads
from recado.storage.messages.chat_windows import ChatWindows
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.recipients import RecipientLookup
from recado.storage.senders import numbers
from recado.storage.senders.numbers import Number
from recado.storage.templates.templates import Template

PHONE = "+5511987654321"
BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}, code {{2}}!"}},)


@dataclass
class House:
    """One organization with a connected sandbox number and an approved template of two variables."""

    db: Database
    clock: VirtualClock
    ids: IdSource
    directories: Directories
    acceptance: Acceptance
    told: list[tuple[Any, Any]]
    organization: Organization
    number: Number
    template: Template

    def draft(self, **changes: Any) -> MessageDraft:
        fields: dict[str, Any] = {
            "organization_id": self.organization.id,
            "env": "test",
            "channel": "chatapp",
            "sender_id": self.number.id,
            "to": PHONE,
            "type": "template",
            "priority": Priority.NORMAL,
            "template_id": self.template.id,
            "template_vars": ["Ana", "42"],
        }
        return MessageDraft(**{**fields, **changes})

    def free_form(self, **changes: Any) -> MessageDraft:
        text = {"type": "text", "payload": {"text": {"body": "hi"}}, "template_id": None, "template_vars": None}
        return self.draft(**{**text, **changes})

    async def accepted(self, draft: MessageDraft) -> NewMessage:
        outcome = await self.acceptance.accept(draft)
        assert isinstance(outcome, AcceptedMessage)
        return outcome.message

    async def refusal(self, draft: MessageDraft) -> Problem:
        before = await self.stored()
        with pytest.raises(Problem) as caught:
            await self.acceptance.accept(draft)
        assert await self.stored() == before
        return caught.value

    async def stored(self) -> int:
        return int(await self.db.fetchval("select count(*) from messages"))

    async def row(self, message_id: str) -> Message:
        row = await message_reads.get(self.db, self.organization.id, "test", message_id)
        assert row is not None
        return row

    async def set_number(self, **changes: Any) -> None:
        self.number = await numbers.save(self.db, self.number, replace(self.number, **changes), self.clock.now())
        self.directories.numbers.clear()

    async def add_template(self, **changes: Any) -> Template:
        of_its_own = {"name": f"t{self.ids.new('')}".lower(), "components": BODY}
        return await add_template(self.db, self.clock, self.ids, self.number, **{**of_its_own, **changes})

    async def hear_from(self, phone: str, at: datetime) -> None:
        await self.db.execute(
            "insert into chat_windows values ($1, $2, $3, $4)",
            self.organization.id,
            self.number.id,
            recipient_hash(self.organization.id, phone),
            at,
        )

    async def fail(self, message_id: str, last_error: str, *, sent: bool = False) -> None:
        now = self.clock.now()
        await self.db.execute(
            f"update messages set status = 'failed', {FAILED_AS}, failed_at = $3, sent_at = $4 where id = $1",
            message_id,
            last_error,
            now,
            now if sent else None,
        )


NOTHING_DIRECT: Any = None  # chat-app sends nothing so


@pytest.fixture
async def house(database: Database) -> AsyncIterator[House]:
    clock = VirtualClock(datetime.now(UTC))
    ids = IdSource(clock, random.Random(os.urandom(8)))
    directories = Directories(database, clock=clock)
    told: list[tuple[Any, Any]] = []
    outbox = Outbox(directories.subscriptions, ids=ids, queued=lambda keys: None)
    wallet = Wallet(directories.prices, clock=clock, ids=ids, queued=lambda keys: None)
    totals = MessageTotals(clock=clock, emptied=lambda keys: None)
    consequences = Consequences(outbox, wallet)
    sending = Sending(
        database,
        clock=clock,
        tell=lambda number, message: told.append((number, message)),
        admission=Admission(database, clock=clock, ids=ids, consequences=consequences),
        consequences=consequences,
        recording=Recording(database, consequences=consequences, outbox=outbox, wallet=wallet, totals=totals),
    )
    windows = ChatWindows(database, clock=clock)
    recipients = RecipientLookup(database, clock=clock)
    await sending.start()
    await windows.start()
    await recipients.start()
    made = await acme(database, clock, ids)
    rules = ChatAppRules(
        numbers=directories.numbers,
        organizations=directories.organizations,
        templates=directories.templates,
        flows=directories.flows,
        windows=windows,
        ids=ids,
        clock=clock,
        sends_in={"test"},
        prices=directories.prices,
    )
    acceptance = Acceptance(
        database,
        rules=[rules],
        organizations=directories.organizations,
        recipients=recipients,
        sending=sending,
        direct=NOTHING_DIRECT,
        ids=ids,
        clock=clock,
    )
    house = House(database, clock, ids, directories, acceptance, told, made.organization, made.number, None)  # type: ignore[arg-type]
    house.template = await house.add_template()
    yield house
    await recipients.stop()
    await windows.stop()
    await sending.stop()
