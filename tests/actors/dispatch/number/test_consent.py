"""No call begins for whoever opted out, once that was answered (C12.5.3), however close the claim was."""

import asyncio
import os
import random
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from tests.acme import add_template

from recado.actors.dispatch.lane_messages import Look
from recado.channels.core.provider import Accepted, OutboundMessage, Retry
from recado.domain.contacts.consent import ConsentChange, ConsentStatus
from recado.domain.core.ids import CONTACT, JOURNEY, MESSAGE, lowest_id
from recado.domain.core.phones import recipient_hash
from recado.domain.messages.changes import ConsentRefused, WithdrawalsLeft
from recado.domain.messages.message import NORMAL
from recado.domain.messages.withdrawal import ENDLESS, Withdrawal, WithdrawalKind
from recado.domain.templates.template import TemplateCategory
from recado.services.effects.consequences import Consequences
from recado.services.imports.contact_system import ContactSystem
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.audit import SYSTEM
from recado.storage.dispatch import withdrawals
from recado.storage.messages import messages
from recado.storage.messages.messages import ConsentCheck, NewMessage


class Marketing:
    """A campaign to many people, who opt out as they like."""

    def __init__(self, line: Any, people: ContactSystem, template: Any) -> None:
        self.line = line
        self.template = template
        self._people = people
        self.refused: set[str] = set()  # phones, from the moment at which their opt-out was answered
        self.too_late: list[str] = []  # phones whose call began after that
        self.called: list[str] = []
        line.provider.answer = self._answer

    def _answer(self, message: OutboundMessage) -> Accepted:
        self.called.append(message.to)
        if message.to in self.refused:
            self.too_late.append(message.to)
        return Accepted(f"provider-{message.id}")

    async def queue(self, phones: list[str], contacts: Mapping[str, str] | None = None) -> None:
        """`contacts`: the ids of those whose messages name them, by phone."""
        line, now = self.line, self.line.clock.now()
        asks = self.template.category is TemplateCategory.MARKETING
        new = [
            NewMessage(
                organization_id=line.organization.id, env="test", channel="chatapp", id=line.ids.new(MESSAGE),
                sender_id=line.number.id, type="template", recipient=phone,
                recipient_hash=recipient_hash(line.organization.id, phone), klass=NORMAL, force=False,
                template_id=self.template.id, payload=None, template_vars='["Ana"]', metadata=None, campaign_id=None,
                scheduled_at=None, due_at=now, ttl=timedelta(hours=1), held_base_ms=0, accepted_at=now,
                consent=ConsentCheck.DONE if asks else ConsentCheck.EXEMPT, obeys_quiet_hours=asks,
                contact_id=(contacts or {}).get(phone),
            )
            for phone in phones
        ]  # fmt: skip
        assert await messages.accept(line.db, new) == [messages.STORED] * len(new)
        line.tell(Look())

    async def opt_out(self, phone: str) -> None:
        address = Registrant(self.line.organization.id, "test", phone)
        refusal = ConsentChange(ConsentStatus.DENIED, source="test")
        await self._people.changes.opt_out([], address, refusal, by=SYSTEM, now=self.line.clock.now())
        self.refused.add(phone)

    async def claimed(self) -> list[str]:
        """Phones whose message is claimed, and was not called for."""
        rows = await self.line.db.fetch(
            "select m.recipient from dispatch d join messages m on m.id = d.id where d.claimed_epoch is not null"
        )
        return [row["recipient"] for row in rows if row["recipient"] not in self.called]

    async def outcome(self, phone: str) -> tuple[str, str | None]:
        row = await self.line.db.fetchrow("select status, last_error from messages where recipient = $1", phone)
        return row["status"], row["last_error"]


@pytest.fixture
async def marketing(line: Any) -> Marketing:
    def changed(change: Any) -> None:
        if isinstance(change, ConsentRefused):
            line.context.consents.refused(change.recipients)
        elif isinstance(change, WithdrawalsLeft):
            line.context.records.withdrawing.begin(change.withdrawals)

    people = ContactSystem(
        line.db, ids=line.ids, documents=DocumentCipher(line.context.records.keys, os.urandom(32)),
        subscriptions=line.directories.subscriptions, effects=Consequences(), changed=changed, clock=line.clock,
    )  # fmt: skip
    template = await add_template(
        line.db, line.clock, line.ids, line.number, name="offer", category=TemplateCategory.MARKETING
    )
    return Marketing(line, people, template)


def phones(count: int) -> list[str]:
    return [f"+49150{number:08}" for number in range(count)]


async def test_whoever_opted_out_without_a_trace_in_the_queue_fails_at_the_claim(line: Any, marketing: Any) -> None:
    """As when the opt-out was committed between the acceptance's look and its commit."""
    ana, bia = phones(2)
    await marketing.opt_out(ana)
    await marketing.queue([ana, bia])
    await line.goes_on(2.0)
    assert marketing.called == [bia]
    assert await marketing.outcome(ana) == ("failed", "opted_out: the contact opted out")
    assert (await marketing.outcome(bia))[0] == "sent"
    assert await line.db.fetchval("select count(*) from dispatch") == 0


async def test_a_message_that_is_claimed_when_its_recipient_opts_out_does_not_leave(line: Any, marketing: Any) -> None:
    people = phones(200)
    await marketing.queue(people)
    await line.goes_on(1.2)
    caught: list[str] = []
    while not caught:  # some are always claimed ahead, but for the moment after a departure
        await line.goes_on(0.01)
        caught = await marketing.claimed()
    for phone in caught:
        await marketing.opt_out(phone)
    await line.goes_on(3.0)
    assert not set(caught) & set(marketing.called)
    assert len(marketing.called) == len(people) - len(caught)
    assert {await marketing.outcome(phone) for phone in caught} == {("failed", "opted_out: the contact opted out")}
    attempts = await line.db.fetch("select attempts from messages where recipient = any($1::text[])", caught)
    assert {row["attempts"] for row in attempts} == {0}
    assert not line.context.consents._going
    assert not line.context.consents._stopped


async def test_no_call_begins_after_an_opt_out_was_answered_whenever_it_comes(line: Any, marketing: Any) -> None:
    people = phones(300)
    chance = random.Random(11)
    await marketing.queue(people)
    sending = asyncio.create_task(line.goes_on(5.5))
    while not sending.done():
        near = [phone for phone in people if phone not in marketing.called][:8]  # about to leave, claimed or not
        if near:
            await marketing.opt_out(chance.choice(near))
        await asyncio.sleep(0)
    await sending
    assert marketing.too_late == []
    assert 0 < len(marketing.refused) < len(people)
    statuses = [(await marketing.outcome(phone))[0] for phone in people]
    assert statuses.count("sent") == len(marketing.called)
    assert statuses.count("sent") + statuses.count("failed") == len(people)


async def test_utility_messages_leave_for_whoever_opted_out(line: Any, marketing: Any) -> None:
    (ana,) = phones(1)
    marketing.template = line.template
    await marketing.opt_out(ana)
    await marketing.queue([ana])
    await line.goes_on(2.0)
    assert marketing.called == [ana]


@pytest.mark.parametrize("became", [TemplateCategory.MARKETING, TemplateCategory.UTILITY])
async def test_what_a_message_obeys_does_not_change_with_its_template(
    line: Any, marketing: Any, became: TemplateCategory
) -> None:
    """Decided when it is made: a reviewer who files the template elsewhere later changes nothing about it."""
    (ana,) = phones(1)
    if became is TemplateCategory.MARKETING:
        marketing.template = line.template
    await marketing.opt_out(ana)
    await marketing.queue([ana])
    await line.db.execute("update templates set category = $1", became.value)
    line.directories.templates.clear()
    await line.goes_on(2.0)
    assert marketing.called == ([ana] if became is TemplateCategory.MARKETING else [])


async def test_what_waited_at_a_refusal_never_leaves_though_a_consent_follows_before_all_is_withdrawn(
    line: Any, marketing: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(withdrawals, "BLOCK", 1)
    ana, bia = phones(2)
    await marketing.queue([ana] * 3)
    hashed = recipient_hash(line.organization.id, ana)
    await line.db.execute("update dispatch set consent_hash = $1", hashed)  # as an acceptance that asked for consent
    await marketing.opt_out(ana)
    await line.db.execute("delete from opt_outs")
    await line.clock.advance(0.01)
    await marketing.queue([ana, bia])
    await line.goes_on(2.0)
    assert sorted(marketing.called) == [ana, bia]
    counts = await line.db.fetch("select status, count(*) as n from messages where recipient = $1 group by 1", ana)
    assert {row["status"]: row["n"] for row in counts} == {"failed": 3, "sent": 1}


async def test_messages_of_a_deleted_contact_are_held_until_they_are_withdrawn(line: Any, marketing: Any) -> None:
    marketing.template = line.template
    ana, bia = phones(2)
    deleted, now = line.ids.new(CONTACT), line.clock.now()
    later = lowest_id(MESSAGE, now + timedelta(seconds=1))
    left = Withdrawal(line.organization.id, "test", WithdrawalKind.DELETED, deleted, later)
    line.context.records.withdrawing.begin([left])
    await marketing.queue([ana, bia], {ana: deleted})
    await line.goes_on(2.0)
    assert marketing.called == [bia]
    assert await line.reasons() == {"owner_paused"}


async def test_messages_of_an_archived_journey_are_held_until_they_are_withdrawn(line: Any) -> None:
    archived, others = await line.queue(5, tell=False), await line.queue(5, tell=False)
    owner = line.ids.new(JOURNEY)
    await line.db.execute("update dispatch set owner = $1 where id = any($2::text[])", owner, archived)
    line.context.records.withdrawing.begin([withdrawals.of_archived(line.organization.id, "test", owner)])
    line.tell(Look())
    await line.goes_on(2.0)
    assert sorted(line.provider.sent) == sorted(others)
    assert await line.reasons() == {"owner_paused"}


async def test_a_message_whose_execution_ends_during_its_call_is_not_called_for_again(line: Any) -> None:
    ended, other = await line.queue(2, tell=False)

    def refuse_for_now(message: OutboundMessage) -> Retry:
        left = Withdrawal(line.organization.id, "test", WithdrawalKind.RECALLED, ended, ENDLESS)
        line.context.records.withdrawing.begin([left])
        return Retry()

    line.provider.answer = refuse_for_now
    line.tell(Look())
    await line.goes_on(1.5)
    assert sorted(line.provider.sent) == sorted([ended, other])
    line.provider.answer = lambda message: Accepted(f"provider-{message.id}")
    await line.db.execute("update dispatch set not_before = null, reason = null")  # their moment has come
    line.tell(Look())
    await line.goes_on(2.0)
    assert line.provider.sent[2:] == [other]
    assert await line.reasons() == {"owner_paused"}
    assert await line.counts() == {"queued": 1, "sent": 1}
