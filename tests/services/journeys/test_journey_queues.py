"""What a journey has queued is held while it is paused, leaves when it goes on, and is withdrawn with it (C9.12)."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from tests.services.journeys.conftest import END, ENV, HOUR, Way, sms, wait
from tests.storage.journeys.rows import new_entry

from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.journeys.journey import AutomaticPause, Hindrance, JourneyStatus
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.hints import OwnerMoved
from recado.services.dispatch.owners import Owners
from recado.services.dispatch.row import row_of
from recado.services.dispatch.withdrawals import Withdrawals
from recado.services.dispatch.withdrawing import ARCHIVED, Withdrawing
from recado.services.effects.consequences import Consequences
from recado.services.effects.wallet import Wallet
from recado.services.journeys import journey_queues
from recado.services.journeys.journey_queues import JourneyQueues
from recado.services.journeys.superseded_versions import SupersededVersions
from recado.storage.billing import ledger
from recado.storage.core.statements.moves import AfterCommit, Moved
from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch import withdrawals
from recado.storage.journeys import states
from recado.storage.journeys.entries import begin_test
from recado.storage.journeys.journeys import JOURNEYS, Journey

PEOPLE = 7
BLOCK = 3
SECOND = timedelta(seconds=1)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journey_queues, "BLOCK", BLOCK)
    monkeypatch.setattr(withdrawals, "BLOCK", BLOCK)


@dataclass
class Process:
    """What a process knows of journeys, and does with their rows. Nothing runs by itself."""

    way: Way
    owners: Owners = field(default_factory=Owners)
    withdrawing: Withdrawing = field(default_factory=Withdrawing)
    told: list[tuple[SenderKey, object]] = field(default_factory=list)

    def __post_init__(self) -> None:
        way = self.way
        self.queues = JourneyQueues(
            way.db, clock=way.clock, owners=self.owners, tell=lambda sender, hint: self.told.append((sender, hint))
        )
        wallet = Wallet(way.directories.prices, clock=way.clock, ids=way.ids, queued=lambda keys: None)
        self.effects = Consequences(wallet)
        self.withdrawals = Withdrawals(way.db, clock=way.clock, effects=self.effects, withdrawing=self.withdrawing)

    async def pause(self, journey: Journey) -> Journey:
        return await self._moved(journey, states.pause)

    async def go_on(self, journey: Journey) -> Journey:
        async with self.way.db.transaction() as connection:
            after, _ = await states.activate(connection, await self.now(journey), self.way.clock.now())
        self.queues.moved(after.pauses)
        return after

    async def archive(self, journey: Journey) -> None:
        after = await self._moved(journey, states.archive)
        self.withdrawals.left([withdrawals.of_archived(after.organization_id, ENV, after.id)])

    async def now(self, journey: Journey) -> Journey:
        found = await JOURNEYS.get(self.way.db, journey.organization_id, ENV, journey.id)
        assert found is not None
        return found

    async def _moved(self, journey: Journey, move: Any) -> Journey:
        async with self.way.db.transaction() as connection:
            after: Journey = await move(connection, await self.now(journey), self.way.clock.now())
        self.queues.moved(after.pauses)
        return after


@pytest.fixture
def process(way: Way) -> Process:
    return Process(way)


async def queued(way: Way, *steps: Any, people: int = PEOPLE) -> Journey:
    """A journey whose executions have each a message that waits; they have ended, unless `steps` say otherwise."""
    journey = await way.journey(*(steps or (sms("hello", "end"), END)), ativada_em=way.clock.now())
    for _ in range(people):
        await way.begin(journey)
    await way.work()
    return journey


async def reasons(way: Way, journey: Journey) -> dict[str | None, int]:
    rows = await way.db.fetch("select reason, count(*) from dispatch where owner = $1 group by 1", journey.id)
    return {row["reason"]: row["count"] for row in rows}


async def outcomes(way: Way, journey: Journey) -> dict[tuple[str, str | None], int]:
    rows = await way.db.fetch(
        "select status, failure_code, count(*) from messages where journey_id = $1 group by 1, 2", journey.id
    )
    return {(row["status"], row["failure_code"]): row["count"] for row in rows}


async def held_coins(way: Way) -> int:
    wallet = await ledger.get(way.db, way.organization.id, ENV)
    assert wallet is not None
    return wallet.held_coins


# Pauses -----------------------------------------------------------------------------------------------------------


async def test_a_pause_holds_what_its_journey_has_queued_and_nothing_else(way: Way, process: Process) -> None:
    journey, other = await queued(way), await queued(way)
    await process.pause(journey)
    assert (process.owners.holds(journey.id), process.owners.holds(other.id)) == (True, False)
    assert await reasons(way, journey) == {None: PEOPLE}  # the gate holds them until the rows follow
    await process.queues.work()
    assert await reasons(way, journey) == {"owner_paused": PEOPLE}
    assert await reasons(way, other) == {None: PEOPLE}
    assert process.told == []


async def test_an_activation_lets_them_go_at_each_of_their_senders(way: Way, process: Process) -> None:
    journey = await queued(way, sms("hello", "more"), {**sms("more", "end"), "smsRoute": "otp"}, END)
    senders = {row["sender_id"] for row in await way.db.fetch("select distinct sender_id from dispatch")}
    assert len(senders) == 2
    await process.pause(journey)
    await process.queues.work()
    await process.go_on(journey)
    assert not process.owners.holds(journey.id)
    await process.queues.work()
    moved = OwnerMoved(journey.id)
    assert sorted(process.told) == [
        (SenderKey(way.organization.id, ENV, "sms", sender_id), moved) for sender_id in sorted(senders)
    ]


async def test_a_pause_does_not_count_toward_the_time_to_live(way: Way, process: Process) -> None:
    journey = await queued(way)
    due_at = way.clock.now()
    await way.clock.advance(60)
    await process.pause(journey)
    await way.clock.advance(120)
    assert process.owners.held_ms(journey.id, due_at, way.clock.now()) == 120_000
    await process.go_on(journey)
    await way.clock.advance(60)
    later = way.clock.now()
    assert process.owners.held_ms(journey.id, due_at, later) == 120_000
    assert process.owners.held_ms(journey.id, due_at + timedelta(minutes=2), later) == 60_000
    assert process.owners.held_ms(journey.id, later, later + HOUR) == 0


async def test_who_starts_knows_what_is_paused_and_for_how_long_others_were(way: Way, process: Process) -> None:
    paused, resumed = await queued(way), await queued(way)
    due_at = way.clock.now()
    for journey in (paused, resumed):
        await process.pause(journey)
    await way.clock.advance(90)
    await process.go_on(resumed)

    following = Process(way)
    await following.queues.start()
    try:
        assert following.owners.holds(paused.id)
        assert not following.owners.holds(resumed.id)
        for journey in (paused, resumed):
            assert following.owners.held_ms(journey.id, due_at, way.clock.now()) == 90_000
    finally:
        await following.queues.stop()


async def test_what_a_turn_adds_after_the_pause_is_held_as_well(way: Way, process: Process) -> None:
    journey = await queued(way)
    await process.pause(journey)
    await process.queues.work()
    await way.db.execute("update journeys set status = 'ativa'")  # as a turn has read it before
    await way.begin(journey)
    await way.work()
    assert await reasons(way, journey) == {"owner_paused": PEOPLE, None: 1}
    assert process.owners.holds(journey.id)  # the gate is what holds it


async def test_a_journey_that_pauses_itself_is_found_by_the_next_look(way: Way, process: Process) -> None:
    journey = await queued(way)
    await process.queues.work()
    await way.clock.advance(20)
    cause = AutomaticPause(Hindrance.CONSECUTIVE_FAILURES, "hello", way.clock.now())
    assert await states.pause_itself(way.db, (way.organization.id, ENV, journey.id), cause)
    await process.queues.work()
    assert process.owners.holds(journey.id)
    assert await reasons(way, journey) == {"owner_paused": PEOPLE}


async def test_moves_may_be_told_in_any_order(way: Way, process: Process) -> None:
    journey = await queued(way)
    paused = await process.pause(journey)
    resumed = await process.go_on(journey)
    process.queues.moved(paused.pauses)
    assert not process.owners.holds(journey.id)
    following = Process(way)
    following.queues.moved(resumed.pauses)
    following.queues.moved(paused.pauses)
    assert not following.owners.holds(journey.id)


async def test_one_that_goes_on_at_once_has_nothing_held(way: Way, process: Process) -> None:
    journey = await queued(way)
    await process.pause(journey)
    await process.go_on(journey)
    await process.queues.work()
    assert await reasons(way, journey) == {None: PEOPLE}


async def test_a_journey_that_is_over_is_known_no_more(
    way: Way, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journey_queues, "LOOK_AT_ALL_EVERY", 1)
    journey, other = await queued(way), await queued(way)
    due_at = way.clock.now()
    for each in (journey, other):
        await process.pause(each)
    await way.clock.advance(60)
    async with way.db.transaction() as connection:  # by somebody who tells nobody
        await states.archive(connection, await process.now(journey), way.clock.now())
    await process.queues.work()
    assert (process.owners.holds(journey.id), process.owners.holds(other.id)) == (False, True)
    assert process.owners.held_ms(journey.id, due_at, way.clock.now()) == 0


# Archives ---------------------------------------------------------------------------------------------------------


async def test_an_archive_withdraws_all_that_waits_also_of_executions_that_have_ended(
    way: Way, process: Process
) -> None:
    other = await queued(way)
    coins = await held_coins(way)
    over, under_way = await queued(way), await queued(way, sms("hello", "wait"), wait("wait", "end"), END)
    assert await held_coins(way) == 3 * coins
    for journey in (over, under_way):
        await process.archive(journey)
    await process.withdrawals.work()
    for journey in (over, under_way):
        assert await outcomes(way, journey) == {("failed", "withdrawn"): PEOPLE}
    assert await outcomes(way, other) == {("queued", None): PEOPLE}
    assert await held_coins(way) == coins
    await way.work()
    found = await way.db.fetch("select distinct motivo from executions where journey_id = $1", under_way.id)
    assert [row["motivo"] for row in found] == ["jornada_arquivada"]


async def test_a_pause_leaves_tests_alone_and_an_archive_withdraws_what_they_have_queued(
    way: Way, process: Process
) -> None:
    journey = await queued(way, people=0)
    entry = new_entry(await way.person(), journey, at=way.clock.now(), origin=ExecutionOrigin.TEST)
    await begin_test(way.db, way.organization.id, ENV, entry, hurried=False)
    await way.work()
    await process.pause(journey)
    await process.queues.work()
    rows = await way.db.fetch("select owner, reason from dispatch")
    assert [tuple(row) for row in rows] == [(entry.execution_id, None)]
    assert not process.owners.holds(entry.execution_id)
    await process.archive(journey)
    await process.withdrawals.work()
    assert await way.db.fetchval("select array_agg(failure_code) from messages") == ["withdrawn"]


async def test_nothing_of_an_archived_journey_leaves_while_it_is_withdrawn(way: Way, process: Process) -> None:
    journey, other = await queued(way), await queued(way)
    rows = {new.owner: row_of(new) for new in way.accepted}
    await process.archive(journey)
    assert process.withdrawing.gate(rows[journey.id]) is ARCHIVED
    assert process.withdrawing.gate(replace(rows[journey.id], repeat_of=way.clock.now())) is ARCHIVED
    assert process.withdrawing.gate(rows[other.id]) is None


async def test_what_a_late_turn_adds_is_withdrawn_too_and_then_nothing_is_noted(way: Way, process: Process) -> None:
    journey = await queued(way)
    await process.archive(journey)
    await process.withdrawals.work()
    await way.db.execute("update journeys set status = 'ativa'")  # as a turn has read it before
    await way.begin(journey)
    await way.work()
    assert await outcomes(way, journey) == {("failed", "withdrawn"): PEOPLE, ("queued", None): 1}
    assert process.withdrawing.gate(row_of(way.accepted[-1])) is ARCHIVED
    await process.withdrawals.work()
    assert await outcomes(way, journey) == {("failed", "withdrawn"): PEOPLE + 1}
    assert len(await withdrawals.noted(way.db)) == 1
    await way.clock.advance(withdrawals.LATE_TURNS.total_seconds())
    await process.withdrawals.work()
    assert await withdrawals.noted(way.db) == []
    assert process.withdrawing.gate(row_of(way.accepted[-1])) is None


async def test_a_message_in_hand_is_left_to_its_call_and_withdrawn_when_it_comes_back(
    way: Way, process: Process
) -> None:
    journey = await queued(way)
    await way.db.execute(
        "update dispatch set claimed_epoch = 1, claimed_at = $1 where id = (select min(id) from dispatch)",
        way.clock.now(),
    )
    await process.archive(journey)
    await way.clock.advance(withdrawals.LATE_TURNS.total_seconds())
    await process.withdrawals.work()
    assert await outcomes(way, journey) == {("failed", "withdrawn"): PEOPLE - 1, ("queued", None): 1}
    assert len(await withdrawals.noted(way.db)) == 1
    await way.db.execute("update dispatch set claimed_epoch = null, claimed_at = null")
    await process.withdrawals.work()
    assert await outcomes(way, journey) == {("failed", "withdrawn"): PEOPLE}
    assert await withdrawals.noted(way.db) == []


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


async def test_what_a_dead_process_had_not_withdrawn_is_withdrawn_by_the_next(way: Way, process: Process) -> None:
    journey = await queued(way)
    await process.archive(journey)
    process.withdrawals._effects = Dies(process.effects)  # type: ignore[assignment]
    with pytest.raises(asyncio.CancelledError):
        await process.withdrawals.work()
    assert await outcomes(way, journey) == {("failed", "withdrawn"): BLOCK, ("queued", None): PEOPLE - BLOCK}
    row = row_of(way.accepted[-1])

    following = Process(way)
    assert following.withdrawing.gate(row) is None
    following.withdrawing.begin(await withdrawals.noted(way.db))  # as its start does
    assert following.withdrawing.gate(row) is ARCHIVED
    await following.withdrawals.work()
    assert await outcomes(way, journey) == {("failed", "withdrawn"): PEOPLE}
    assert await held_coins(way) == 0


# Versions ---------------------------------------------------------------------------------------------------------


async def test_a_replaced_version_without_executions_is_archived_and_its_messages_leave(way: Way) -> None:
    ended = await queued(way)
    going = await queued(way, sms("hello", "wait"), wait("wait", "end"), END)
    for journey in (ended, going):
        await way.db.execute("update journeys set entradas_encerradas = true where id = $1", journey.id)
    await SupersededVersions(way.db, clock=way.clock).look()
    found = await way.db.fetch("select id, status, arquivada_em from journeys")
    assert {tuple(row) for row in found} == {
        (ended.id, JourneyStatus.ARQUIVADA, way.clock.now()),
        (going.id, JourneyStatus.ATIVA, None),
    }
    assert await outcomes(way, ended) == {("queued", None): PEOPLE}
    assert await withdrawals.noted(way.db) == []


async def test_looks_go_on_from_one_version_to_the_next(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recado.services.journeys.superseded_versions.AT_ONCE", 2)
    journeys = [await queued(way, sms("hello", "wait"), wait("wait", "end"), END, people=1) for _ in range(2)]
    journeys.append(await queued(way, people=1))
    await way.db.execute("update journeys set entradas_encerradas = true")
    versions = SupersededVersions(way.db, clock=way.clock)

    async def running() -> int:
        count: int = await way.db.fetchval("select count(*) from journeys where status = 'ativa'")
        return count

    counts = []
    for _ in range(2):
        await versions.look()
        counts.append(await running())
    assert counts == [3, 2]
