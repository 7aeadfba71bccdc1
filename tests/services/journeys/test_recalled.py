"""What a call has in hand when its execution ends does not leave later: it is withdrawn if it comes back (C9.12)."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from tests.services.journeys.conftest import END, ENV, HOUR, Way, sms, wait
from tests.waiting import until_locked_out

from recado.domain.messages.withdrawal import ENDLESS, Withdrawal, WithdrawalKind
from recado.services.dispatch.row import row_of
from recado.services.dispatch.withdrawals import Withdrawals
from recado.services.dispatch.withdrawing import RECALLED, Withdrawing
from recado.services.effects.consequences import Consequences
from recado.services.effects.wallet import Wallet
from recado.services.journeys.cancellation import ExecutionCancellation
from recado.storage.billing import ledger
from recado.storage.core.audit import SYSTEM, entry_of
from recado.storage.dispatch import withdrawals
from recado.storage.journeys.executions import Execution

CLAIM = "update dispatch set claimed_epoch = 1, claimed_at = $1"
RETURN = "update dispatch set claimed_epoch = null, claimed_at = null, not_before = $1, reason = 'retry'"


class Desk:
    """What a process does with what is left of a withdrawal."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.withdrawing = Withdrawing()
        wallet = Wallet(way.directories.prices, clock=way.clock, ids=way.ids, queued=lambda keys: None)
        self.effects = Consequences(wallet)
        self.withdrawals = Withdrawals(way.db, clock=way.clock, effects=self.effects, withdrawing=self.withdrawing)
        self.cancellation = ExecutionCancellation(
            way.db, clock=way.clock, effects=self.effects, recalled=way.recalled.extend
        )

    async def cancel(self, execution: Execution) -> None:
        where = {"organization_id": self.way.organization.id, "env": ENV}
        entry = entry_of(self.way.ids, SYSTEM, "journey.execution_cancel", target_id=execution.id, **where)
        await self.cancellation.cancel(execution.key, entry)

    async def reach_the_goal(self, execution: Execution) -> None:
        await self.way.event(execution.contact_id, "paid", self.way.clock.now())
        await self.way.work()

    async def opt_out(self, execution: Execution) -> None:
        await self.way.db.execute("update contacts set opt_in_status = 'denied' where id = $1", execution.contact_id)
        await self.way.work()

    async def archive(self, execution: Execution) -> None:
        await self.way.db.execute("update journeys set status = 'arquivada' where id = $1", execution.journey_id)
        await self.way.work()

    async def outcome(self) -> tuple[str, str | None]:
        row = await self.way.db.fetchrow("select status, failure_code from messages")
        return row["status"], row["failure_code"]

    async def held_coins(self) -> int:
        wallet = await ledger.get(self.way.db, self.way.organization.id, ENV)
        assert wallet is not None
        return wallet.held_coins


@pytest.fixture
def desk(way: Way) -> Desk:
    return Desk(way)


async def sending(way: Way) -> tuple[Execution, Withdrawal]:
    """An execution that waits, whose message a call has in hand; and what is noted of that."""
    journey = await way.journey(sms("hello", "wait"), wait("wait", "end"), END, meta_evento="paid")
    execution = await way.begin(journey)
    await way.work()
    await way.db.execute(CLAIM, way.clock.now())
    (made,) = way.accepted
    return execution, Withdrawal(way.organization.id, ENV, WithdrawalKind.RECALLED, made.id, ENDLESS)


Ending = Callable[[Desk, Execution], Awaitable[None]]


@pytest.mark.parametrize("ends", [Desk.cancel, Desk.reach_the_goal, Desk.opt_out, Desk.archive])
async def test_what_comes_back_after_its_execution_ended_is_withdrawn(way: Way, desk: Desk, ends: Ending) -> None:
    execution, noted = await sending(way)
    await ends(desk, execution)
    assert (await way.read(execution.key)).motivo is not None
    assert way.recalled == await withdrawals.noted(way.db) == [noted]
    await desk.withdrawals.work()
    assert await desk.outcome() == ("queued", None)  # its call is under way
    await way.db.execute(RETURN, way.clock.now() + HOUR)
    assert await desk.held_coins() > 0
    await desk.withdrawals.work()
    assert await desk.outcome() == ("failed", "withdrawn")
    assert await desk.held_coins() == 0
    assert await withdrawals.noted(way.db) == []


async def test_it_passes_no_gate_from_the_end_of_its_execution_on(way: Way, desk: Desk) -> None:
    execution, _ = await sending(way)
    row = row_of(way.accepted[0])
    assert desk.withdrawing.gate(row) is None
    await desk.cancel(execution)
    desk.withdrawals.left(way.recalled)
    assert desk.withdrawing.gate(row) is RECALLED
    assert desk.withdrawing.gate(replace(row, repeat_of=way.clock.now())) is RECALLED
    assert desk.withdrawing.gate(replace(row, id=row.id + "0")) is None
    following = Desk(way)
    await following.withdrawals.start()  # of a process that comes after a crash
    try:
        assert following.withdrawing.gate(row) is RECALLED
    finally:
        await following.withdrawals.stop()


async def test_what_leaves_or_may_have_left_is_noted_no_more(way: Way, desk: Desk) -> None:
    execution, _ = await sending(way)
    await desk.cancel(execution)
    await way.db.execute("update dispatch set reason = 'uncertain', not_before = 'infinity'")
    await desk.withdrawals.work()
    assert await withdrawals.noted(way.db) == []
    assert await desk.outcome() == ("queued", None)


async def test_what_is_uncertain_at_the_end_or_waits_in_the_queue_is_not_noted(way: Way, desk: Desk) -> None:
    execution, _ = await sending(way)
    await way.db.execute("update dispatch set reason = 'uncertain', not_before = 'infinity'")
    await desk.cancel(execution)
    assert way.recalled == []
    other = await way.begin(await way.journey(sms("hello", "wait"), wait("wait", "end"), END))
    await way.work()
    await desk.cancel(other)
    assert (way.recalled, await withdrawals.noted(way.db)) == ([], [])


async def test_a_claim_at_the_moment_of_the_end_is_seen(way: Way, desk: Desk) -> None:
    execution, noted = await sending(way)
    await way.db.execute("update dispatch set claimed_epoch = null, claimed_at = null")
    async with way.db.transaction() as connection:
        await connection.execute(CLAIM, way.clock.now())
        canceling = asyncio.ensure_future(desk.cancel(execution))
        await until_locked_out(way.db)
    await canceling
    assert way.recalled == await withdrawals.noted(way.db) == [noted]
