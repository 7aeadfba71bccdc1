"""What waits for one person ends in blocks: the first with the refusal or the deletion, the others after (C12.5.3)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from tests.people import insert_people, phone
from tests.services.batches.audiences import a_template
from tests.services.batches.conftest import Workshop
from tests.services.batches.counting import checked
from tests.waiting import until

from recado.domain.contacts.consent import ConsentChange, ConsentStatus
from recado.domain.core.phones import recipient_hash
from recado.domain.messages.changes import Change, WithdrawalsLeft
from recado.domain.messages.withdrawal import WithdrawalKind
from recado.domain.templates.template import TemplateCategory
from recado.services.contacts.consents import Outcome
from recado.services.contacts.contacts import OptedOut
from recado.services.dispatch.withdrawals import Withdrawals
from recado.services.dispatch.withdrawing import DELETED, REFUSED, Withdrawing
from recado.services.imports.contact_system import ContactSystem
from recado.storage.batches import batches
from recado.storage.contacts import contact_erasures
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.audit import SYSTEM
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch import withdrawals

BLOCK = 10
ROWS = 35
PRICE = 9_000  # coins: a marketing template abroad
KEYS = KeyRing.parse("test:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")


@dataclass
class Desk:
    """A process: what it withdraws, and what its dispatchers know of it. Nothing runs by itself."""

    workshop: Workshop
    withdrawing: Withdrawing = field(default_factory=Withdrawing)

    def __post_init__(self) -> None:
        shop = self.workshop
        self.effects = shop.batches.queue._consequences
        self.withdrawals = Withdrawals(shop.db, clock=shop.clock, effects=self.effects, withdrawing=self.withdrawing)
        self.people = ContactSystem(
            shop.db, ids=shop.ids, documents=DocumentCipher(KEYS, b"i" * 32), subscriptions=None,  # type: ignore[arg-type]
            effects=self.effects, changed=self._changed, clock=shop.clock,
        )  # fmt: skip

    def _changed(self, change: Change) -> None:
        if isinstance(change, WithdrawalsLeft):
            self.withdrawals.left(change.withdrawals)

    async def says(self, contact_id: str, status: ConsentStatus) -> OptedOut | None:
        shop = self.workshop
        change = ConsentChange(status, source="test", at=shop.clock.now())
        if status is ConsentStatus.DENIED:
            address = Registrant(shop.organization.id, "test")
            return await self.people.changes.opt_out([contact_id], address, change, by=SYSTEM, now=shop.clock.now())
        key = (shop.organization.id, "test", contact_id)
        await self.people.changes.change(key, {}, change, by=SYSTEM, now=shop.clock.now(), check=lambda _: None)
        return None

    async def refuse(self, contact_id: str) -> OptedOut:
        answer = await self.says(contact_id, ConsentStatus.DENIED)
        assert answer is not None
        return answer

    async def delete(self, contact_id: str) -> None:
        key = (self.workshop.organization.id, "test", contact_id)
        await self.people.changes.delete(key, by=SYSTEM, now=self.workshop.clock.now(), check=lambda _: None)

    async def gate(self, batch: Any, place: int) -> Any:
        """What the dispatchers' gate says of a message of the batch, by its place among those that wait."""
        return self.withdrawing.gate(await self.waits(batch, place))

    async def waits(self, batch: Any, place: int) -> Any:
        """A message of the batch as dispatchers have it."""
        message_id = (await self.workshop.queue(batch))[place]["id"]
        _, told = next(each for each in self.workshop.told if any(row.id == message_id for row in each[1].rows))
        row = next(row for row in told.rows if row.id == message_id)
        contact_id, hashed = await self.workshop.db.fetchrow(
            "select contact_id, recipient_hash from messages where id = $1", message_id
        )
        return replace(row, contact_id=contact_id, recipient_hash=hashed)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(withdrawals, "BLOCK", BLOCK)


@pytest.fixture
async def desk(workshop: Workshop, nobody: None) -> Desk:
    await workshop.db.execute("truncate withdrawals, contact_erasures, contact_consents")
    return Desk(workshop)


async def waits_for_one(workshop: Workshop, number: int = 1, rows: int = ROWS) -> tuple[Any, str]:
    """A batch of marketing messages that all go to one contact, and its id."""
    (contact_id,) = await insert_people(workshop.db, workshop.organization.id, "test", [{}], number)
    template_id = await workshop.db.fetchval(
        "select id from templates where number_id = $1 and category = 'marketing'", workshop.number.id
    ) or await a_template(workshop, TemplateCategory.MARKETING)
    made = await workshop.made(workshop.draft(rows, template_id=template_id))
    await aim(workshop, made, contact_id, number)
    return made, contact_id


async def aim(workshop: Workshop, made: Any, contact_id: str, number: int) -> None:
    hashed = recipient_hash(workshop.organization.id, phone(number))
    await workshop.db.execute(
        "update messages set recipient = $2, recipient_hash = $3, contact_id = $4 where batch_id = $1",
        made.id, phone(number), hashed, contact_id,
    )  # fmt: skip
    await workshop.db.execute("update dispatch set consent_hash = $2 where owner = $1", made.id, hashed)


async def test_a_refusal_withdraws_one_block_counts_all_and_leaves_the_rest_to_follow(desk: Desk) -> None:
    shop = desk.workshop
    made, ana = await waits_for_one(shop)
    answer = await desk.refuse(ana)
    assert (answer.withdrawn, answer.already) == (ROWS, False)
    batch = await checked(shop, made)
    assert (batch.failed, batch.queued, batch.held_coins) == (BLOCK, ROWS - BLOCK, (ROWS - BLOCK) * PRICE)
    assert (await shop.wallet())[1] == batch.held_coins
    assert await desk.gate(made, 0) is REFUSED
    await desk.withdrawals.work()
    batch = await checked(shop, made)
    assert (batch.failed, batch.queued, batch.held_coins) == (ROWS, 0, 0)
    assert (await shop.wallet())[1] == 0
    assert await withdrawals.noted(shop.db) == []
    found = await shop.db.fetch("select distinct status, last_error from messages where batch_id = $1", made.id)
    assert [tuple(each) for each in found] == [("failed", "opted_out: the contact opted out")]


async def test_what_fits_into_one_block_is_withdrawn_with_the_refusal_and_nothing_is_noted(desk: Desk) -> None:
    made, ana = await waits_for_one(desk.workshop, rows=BLOCK)
    assert (await desk.refuse(ana)).withdrawn == BLOCK
    assert (await checked(desk.workshop, made)).failed == BLOCK
    assert await withdrawals.noted(desk.workshop.db) == []


async def test_a_deletion_archives_one_block_and_leaves_the_rest_to_follow(desk: Desk) -> None:
    shop = desk.workshop
    made, ana = await waits_for_one(shop)
    await desk.delete(ana)
    assert (await checked(shop, made)).archived == BLOCK
    assert await desk.gate(made, 0) is DELETED
    await desk.withdrawals.work()
    batch = await checked(shop, made)
    assert (batch.archived, batch.queued, batch.held_coins) == (ROWS, 0, 0)
    assert await withdrawals.noted(shop.db) == []


class Dies:
    """The effects of a process that is gone in the middle of its second block."""

    def __init__(self, effects: Any) -> None:
        self._effects = effects
        self._blocks = 0

    async def write(self, connection: Executor, moved: Sequence[Moved]) -> AfterCommit:
        self._blocks += 1
        if self._blocks == 2:
            raise asyncio.CancelledError
        return await self._effects.write(connection, moved)  # type: ignore[no-any-return]


@pytest.mark.parametrize("kind", [WithdrawalKind.OPTED_OUT, WithdrawalKind.DELETED])
async def test_what_a_dead_process_had_not_withdrawn_leaves_no_more_and_is_withdrawn_by_the_next(
    desk: Desk, kind: WithdrawalKind
) -> None:
    shop = desk.workshop
    made, ana = await waits_for_one(shop)
    await (desk.refuse(ana) if kind is WithdrawalKind.OPTED_OUT else desk.delete(ana))
    desk.withdrawals._effects = Dies(desk.effects)
    with pytest.raises(asyncio.CancelledError):
        await desk.withdrawals.work()
    batch = await checked(shop, made)
    assert (batch.failed + batch.archived, batch.queued) == (2 * BLOCK, ROWS - 2 * BLOCK)

    following = Desk(shop)
    waits = await following.waits(made, 0)
    assert following.withdrawing.gate(waits) is None
    await following.withdrawals.start()
    try:
        assert following.withdrawing.gate(waits) in {REFUSED, DELETED}

        async def none_waits() -> bool:
            return not await withdrawals.noted(shop.db)

        await until(none_waits, "nothing is left")
    finally:
        await following.withdrawals.stop()
    batch = await checked(shop, made)
    assert (batch.failed + batch.archived, batch.queued, batch.held_coins) == (ROWS, 0, 0)
    assert (await shop.wallet())[1] == 0


async def test_a_consent_between_two_blocks_brings_nothing_back_and_lets_later_messages_leave(desk: Desk) -> None:
    shop = desk.workshop
    before, ana = await waits_for_one(shop)
    await desk.refuse(ana)
    await shop.clock.advance(0.5)
    await desk.says(ana, ConsentStatus.GRANTED)
    after = await shop.made(shop.draft(3, template_id=before.template_id))
    await aim(shop, after, ana, 1)
    assert await desk.gate(before, 0) is REFUSED
    assert await desk.gate(after, 0) is None
    await desk.withdrawals.work()
    assert (await checked(shop, before)).failed == ROWS
    assert (await checked(shop, after)).queued == 3


async def test_who_refuses_again_while_messages_are_being_withdrawn_is_left_to_that(desk: Desk) -> None:
    """Or the commit of somebody who writes "sair" and "voltar" in turn would take a block each time."""
    shop = desk.workshop
    first, ana = await waits_for_one(shop)
    await desk.refuse(ana)
    await shop.clock.advance(0.5)
    await desk.says(ana, ConsentStatus.GRANTED)
    second = await shop.made(shop.draft(3, template_id=first.template_id))
    await aim(shop, second, ana, 1)
    await shop.clock.advance(0.5)
    await desk.refuse(ana)
    assert (await checked(shop, first)).failed == BLOCK
    assert await desk.gate(second, 0) is REFUSED
    await desk.withdrawals.work()
    assert (await checked(shop, first)).failed == ROWS
    assert (await checked(shop, second)).failed == 3
    assert await withdrawals.noted(shop.db) == []
    assert not desk.withdrawing._before


async def test_many_who_refuse_in_one_commit_have_one_block_of_it_together(desk: Desk) -> None:
    shop = desk.workshop
    made, people = [], []
    for number in (1, 2, 3):
        batch, _ = await waits_for_one(shop, number, rows=6)
        made.append(batch)
        people.append((shop.organization.id, "test", recipient_hash(shop.organization.id, phone(number))))
    outcome = Outcome()
    async with shop.db.transaction() as connection:
        await desk.people.consents.withdraw(connection, people, shop.clock.now(), outcome)
    outcome.committed()
    assert outcome.withdrawn == 18
    assert sum([(await checked(shop, batch)).failed for batch in made]) == BLOCK
    await desk.withdrawals.work()
    assert [(await checked(shop, batch)).failed for batch in made] == [6, 6, 6]


async def test_a_block_that_fails_keeps_no_other_kind_waiting_and_is_tried_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = desk.workshop
    refused, ana = await waits_for_one(shop, 1)
    deleted, bia = await waits_for_one(shop, 2)
    await desk.refuse(ana)
    await desk.delete(bia)

    async def fail(*arguments: Any, **named: Any) -> Any:
        raise LookupError("a row that nobody expected")

    with monkeypatch.context() as patched:
        patched.setattr(withdrawals, "of_contact", fail)
        await desk.withdrawals.work()
    assert (await checked(shop, refused)).failed == ROWS
    assert (await checked(shop, deleted)).archived == BLOCK
    assert await desk.gate(deleted, 0) is DELETED
    await desk.withdrawals.work()
    assert (await checked(shop, deleted)).archived == ROWS


async def test_an_erasure_waits_until_what_is_queued_for_the_contact_is_withdrawn(desk: Desk) -> None:
    shop = desk.workshop
    made, ana = await waits_for_one(shop)
    await desk.delete(ana)
    await desk.people.erasure.work()
    assert await shop.db.fetchval("select count(*) from messages where recipient_hash is null") == 0
    assert await contact_erasures.due(shop.db, shop.clock.now(), 10) == []
    await desk.withdrawals.work()
    await shop.clock.advance(60.0)
    await desk.people.erasure.work()
    assert await shop.db.fetchval("select count(*) from messages where recipient_hash is null") == ROWS
    assert (await batches.get(shop.db, (shop.organization.id, "test", made.id))).archived == ROWS  # type: ignore[union-attr]
