"""A caller brings contacts into active journeys, by whichever key it knows them (C9.7.1)."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.people import insert_people
from tests.services.journeys.conftest import END, ENV, HOUR, Way
from tests.storage.journeys.rows import insert_journey
from tests.waiting import until_locked_out

from recado.domain.core.errors import Problem, Unavailable
from recado.domain.core.idempotency import AnswerStored, KeptInCommit, KeyHeld
from recado.domain.core.ids import CONTACT
from recado.domain.events.customer_event import ContactKeys
from recado.domain.journeys.entries import EntryRefusal
from recado.domain.journeys.execution import EndReason, ExecutionOrigin
from recado.domain.journeys.journey import JourneyStatus
from recado.services.journeys.entries import IN_A_COMMIT, EnteredExecution, EntryOutcome, JourneyEntries
from recado.storage.core.idempotency import IdempotencyKeys, keep_answers
from recado.storage.journeys import doors, entries, states
from recado.storage.journeys.doors import Door as JourneyDoor
from recado.storage.journeys.entries import EntryResult, PlacedEntry
from recado.storage.journeys.journeys import JOURNEYS, Journey

ASKED = b"f" * 32


class Door:
    """Entries of one organization. `hints`: how often the poller was told that something is due."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self.hints = 0
        self.service = JourneyEntries(
            way.db, clock=way.clock, ids=way.ids, entered=self._hint, journeys=way.turns.journeys
        )

    async def enter(self, journey: Journey, data: Any = None, **keys: str) -> EnteredExecution | EntryRefusal:
        return await self.service.enter((journey.organization_id, ENV, journey.id), ContactKeys(**keys), data or {})

    async def refusal(self, journey: Journey, **keys: str) -> Problem:
        with pytest.raises(Problem) as caught:
            await self.enter(journey, **keys)
        return caught.value

    def _hint(self) -> None:
        self.hints += 1


@pytest.fixture
async def door(way: Way) -> AsyncIterator[Door]:
    found = Door(way)
    await found.service.start()
    yield found
    await found.service.stop()


async def test_a_contact_enters_by_each_of_its_keys_and_once(way: Way, door: Door) -> None:
    journey = await way.journey(END)
    contact_id = await way.person(external_id="e-1", phone="+4915000000777", email="Ana@example.org")
    entered = await door.enter(journey, {"order": "A-1"}, contact_id=contact_id)
    assert isinstance(entered, EnteredExecution)
    execution = await way.read((way.organization.id, ENV, journey.id, entered.execution_id))
    assert (execution.contact_id, execution.origem) == (contact_id, ExecutionOrigin.API)
    assert execution.entrada == {"order": "A-1"}
    for keys in ({"external_id": "e-1"}, {"phone": "+4915000000777"}, {"email": "ana@example.org"}):
        assert await door.enter(journey, **keys) is EntryRefusal.ENTERED_BEFORE
    assert door.hints == 1


async def test_the_first_key_that_finds_a_contact_counts(way: Way, door: Door) -> None:
    journey = await way.journey(END)
    first, second = await way.person(external_id="e-1"), await way.person(phone="+4915000000777")
    entered = await door.enter(journey, contact_id=way.ids.new(CONTACT), phone="+4915000000777", email="no@example.org")
    assert isinstance(entered, EnteredExecution)
    assert await way.db.fetchval("select contact_id from executions") == second
    await door.enter(journey, external_id="e-1", phone="+4915000000777")
    assert await way.db.fetchval("select contact_id from executions order by id desc limit 1") == first


async def test_whom_nobody_knows_is_refused_by_the_key_that_was_given(way: Way, door: Door) -> None:
    journey = await way.journey(END)
    for keys, field in (
        ({"contact_id": way.ids.new(CONTACT)}, "/contato/contactId"),
        ({"external_id": "e-1", "email": "a@example.org"}, "/contato/externalId"),
        ({"phone": "+4915000000777"}, "/contato/phone"),
        ({"email": "a@example.org"}, "/contato/email"),
    ):
        refusal = await door.refusal(journey, **keys)
        assert (refusal.code, refusal.errors[0].path) == ("REFERENCE_NOT_FOUND", field)
    assert door.hints == 0


@pytest.mark.parametrize("status", [each for each in JourneyStatus if each is not JourneyStatus.ATIVA])
async def test_a_journey_that_is_not_active_takes_nobody_in(way: Way, door: Door, status: JourneyStatus) -> None:
    journey = await way.journey(END, status=status)
    refusal = await door.refusal(journey, contact_id=await way.person())
    assert (refusal.code, refusal.meta) == ("JORNADA_NAO_ATIVA", {"status": status})


async def test_a_journey_that_paused_itself_takes_entries_which_wait(way: Way, door: Door) -> None:
    cause = {"motivo": "saldo_insuficiente", "passo": "end", "em": "2026-11-23T12:00:00.000Z"}
    journey = await way.journey(END, status=JourneyStatus.PAUSADA, pausada_por=cause)
    entered = await door.enter(journey, contact_id=await way.person())
    assert isinstance(entered, EnteredExecution)
    await way.work()
    execution = await way.read((way.organization.id, ENV, journey.id, entered.execution_id))
    assert (execution.motivo, execution.overslept) == (None, True)


async def test_whom_nobody_knows_is_refused_before_the_journey_is(way: Way, door: Door) -> None:
    journey = await way.journey(END, status=JourneyStatus.RASCUNHO)
    assert (await door.refusal(journey, contact_id=way.ids.new(CONTACT))).code == "REFERENCE_NOT_FOUND"
    assert (await door.refusal(journey, contact_id=await way.person())).code == "JORNADA_NAO_ATIVA"


@pytest.fixture
def commits(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[PlacedEntry]]:
    """What each commit was to let in."""
    found: list[Sequence[PlacedEntry]] = []
    enter = entries.enter_placed

    async def noted(connection: Any, placed: Sequence[PlacedEntry]) -> list[EntryResult]:
        found.append(placed)
        return await enter(connection, placed)

    monkeypatch.setattr(entries, "enter_placed", noted)
    return found


async def test_many_entries_of_several_organizations_go_in_one_commit(
    way: Way, door: Door, commits: list[Sequence[PlacedEntry]]
) -> None:
    other = "org_" + "1" * 21
    journeys = [await way.journey(END), await way.journey(END), await insert_journey(way.db, organization_id=other)]
    people = await insert_people(way.db, way.organization.id, ENV, [{} for _ in range(40)])
    strangers = await insert_people(way.db, other, ENV, [{} for _ in range(40)], first=101)
    asked = [
        (journey, contact_id)
        for mine, theirs in zip(people, strangers, strict=True)
        for journey, contact_id in zip(journeys, (mine, mine, theirs), strict=True)
    ]
    answers = await asyncio.gather(*(door.enter(journey, contact_id=contact_id) for journey, contact_id in asked))
    ids = [answer.execution_id for answer in answers if isinstance(answer, EnteredExecution)]
    rows = await way.db.fetch("select id, journey_id, contact_id from executions")
    assert {row["id"]: (row["journey_id"], row["contact_id"]) for row in rows} == {
        execution_id: (journey.id, contact_id) for execution_id, (journey, contact_id) in zip(ids, asked, strict=True)
    }
    assert len(commits) <= 3  # the first ones that come find a free connection each
    assert max(len({each.organization_id for each in placed}) for placed in commits) == 2
    assert door.hints == len(commits)


async def test_one_contact_that_is_brought_in_by_everybody_enters_once(
    way: Way, door: Door, commits: list[Sequence[PlacedEntry]]
) -> None:
    journey, contact_id = await way.journey(END), await way.person()
    answers = await asyncio.gather(*(door.enter(journey, contact_id=contact_id) for _ in range(30)))
    assert [type(answer) for answer in answers].count(EnteredExecution) == 1
    assert answers.count(EntryRefusal.ENTERED_BEFORE) == 29
    assert await way.db.fetchval("select count(*) from executions") == 1
    assert len(commits) <= 3


async def test_who_enters_does_not_wait_for_a_crowd_of_others_whose_journey_is_held(way: Way, door: Door) -> None:
    other = "org_" + "1" * 21
    held, free = await insert_journey(way.db, organization_id=other), await way.journey(END)
    strangers = await insert_people(way.db, other, ENV, [{} for _ in range(IN_A_COMMIT)])
    async with way.db.transaction() as connection:
        await connection.execute("select from journeys where id = $1 for update", held.id)
        crowd = [asyncio.create_task(door.enter(held, contact_id=each)) for each in strangers]
        await until_locked_out(way.db)
        assert isinstance(await door.enter(free, contact_id=await way.person()), EnteredExecution)
        assert not any(task.done() for task in crowd)
    assert {type(answer) for answer in await asyncio.gather(*crowd)} == {EnteredExecution}


async def test_a_journey_with_another_trigger_takes_nobody_in(way: Way, door: Door) -> None:
    journey = await way.journey(END, gatilho={"tipo": "evento", "nome": "paid"})
    refusal = await door.refusal(journey, contact_id=await way.person())
    assert (refusal.code, refusal.meta) == ("GATILHO_NAO_E_API", {"gatilho": "evento"})


async def test_a_version_that_has_a_later_one_takes_nobody_in_and_is_over_with_its_last_execution(
    way: Way, door: Door
) -> None:
    wait = {"id": "wait", "tipo": "esperar", "minutos": 60, "proximo": "end"}
    old = await way.journey(wait, END)
    longer = {**wait, "minutos": 120}
    other = await way.journey(longer, END)
    first, last = [await door.enter(old, contact_id=await way.person()) for _ in range(2)]
    await door.enter(other, contact_id=await way.person())
    await way.work()
    await way.db.execute("update journeys set entradas_encerradas = true where id = $1", old.id)
    refusal = await door.refusal(old, contact_id=await way.person())
    assert refusal.code == "ENTRADAS_ENCERRADAS"
    assert isinstance(first, EnteredExecution)
    assert isinstance(last, EnteredExecution)
    await way.db.execute(
        "update executions set wake_at = $2 where id = $1", last.execution_id, way.clock.now() + 2 * HOUR
    )
    await way.work(HOUR)
    assert await way.db.fetchval("select status from journeys where id = $1", old.id) == "ativa"
    await way.work(HOUR)
    rows = await way.db.fetch("select id, status, arquivada_em from journeys order by id")
    assert [(row["id"], row["status"], row["arquivada_em"]) for row in rows] == [
        (old.id, "arquivada", way.clock.now()), (other.id, "ativa", None),
    ]  # fmt: skip


async def test_who_pauses_a_journey_waits_for_those_who_enter_and_nobody_enters_after(way: Way, door: Door) -> None:
    journey = await way.journey(END)
    contact_id = await way.person()
    async with way.db.transaction() as connection:
        await connection.execute("update journeys set status = 'pausada'")
        entering = asyncio.create_task(door.refusal(journey, contact_id=contact_id))
        await until_locked_out(way.db)
    assert (await entering).code == "JORNADA_NAO_ATIVA"
    assert await way.db.fetchval("select count(*) from executions") == 0


async def key_held(way: Way, key: bytes = b"k" * 32) -> KeyHeld:
    found = await IdempotencyKeys(way.db).begin(way.organization.id, ENV, key, ASKED, way.clock.now())
    assert isinstance(found, KeyHeld)
    return found


def kept(held: KeyHeld) -> KeptInCommit[EntryOutcome]:
    return KeptInCommit(held, lambda outcome: AnswerStored(200, repr(outcome).encode()))


async def test_the_commit_of_an_entry_keeps_its_answer(way: Way, door: Door) -> None:
    journey = await way.journey(END)
    key = (journey.organization_id, ENV, journey.id)
    contact = ContactKeys(contact_id=await way.person())
    keys = [await key_held(way, bytes([number]) * 32) for number in range(4)]
    outcomes = await asyncio.gather(*(door.service.enter(key, contact, {}, kept=kept(each)) for each in keys))
    assert [type(each) for each in outcomes].count(EnteredExecution) == 1
    for held, outcome in zip(keys, outcomes, strict=True):
        found = await IdempotencyKeys(way.db).begin(
            held.organization_id, held.env, held.key_hash, ASKED, way.clock.now()
        )
        assert found == AnswerStored(200, repr(outcome).encode())


async def test_an_entry_that_is_refused_leaves_its_key_to_be_freed(way: Way, door: Door) -> None:
    journey, held = await way.journey(END, status=JourneyStatus.RASCUNHO), await key_held(way)
    asked = door.service.enter(
        (journey.organization_id, ENV, journey.id), ContactKeys(contact_id=await way.person()), {}, kept=kept(held)
    )
    with pytest.raises(Problem, match="only an active one"):
        await asked
    await IdempotencyKeys(way.db).release(held)
    assert await key_held(way)


async def test_an_entry_whose_request_has_given_up_is_not_made(way: Way, door: Door) -> None:
    journey, held = await way.journey(END), await key_held(way)
    key = (journey.organization_id, ENV, journey.id)
    contact = ContactKeys(contact_id=await way.person())
    await IdempotencyKeys(way.db).release_uncommitted(held)
    with pytest.raises(Unavailable):
        await door.service.enter(key, contact, {}, kept=kept(held))
    assert await way.db.fetchval("select count(*) from executions") == 0
    assert isinstance(await door.service.enter(key, contact, {}), EnteredExecution)


async def test_an_answer_that_an_earlier_run_of_the_commit_kept_is_not_contradicted(way: Way, door: Door) -> None:
    journey, held = await way.journey(END), await key_held(way)
    key, contact = (journey.organization_id, ENV, journey.id), ContactKeys(contact_id=await way.person())
    async with way.db.transaction() as connection:
        await keep_answers(connection, [(held, AnswerStored(409, b"refused"))])
    with pytest.raises(Unavailable, match="same Idempotency-Key"):
        await door.service.enter(key, contact, {}, kept=kept(held))
    assert await way.db.fetchval("select count(*) from executions") == 0
    found = await IdempotencyKeys(way.db).begin(held.organization_id, held.env, held.key_hash, ASKED, way.clock.now())
    assert found == AnswerStored(409, b"refused")


async def test_a_request_that_gives_up_during_the_commit_leaves_its_answer(way: Way, door: Door) -> None:
    journey, held = await way.journey(END), await key_held(way)
    key = (journey.organization_id, ENV, journey.id)
    contact = ContactKeys(contact_id=await way.person())
    async with way.db.transaction() as connection:
        await connection.execute("select from journeys where id = $1 for update", journey.id)
        entering = asyncio.ensure_future(door.service.enter(key, contact, {}, kept=kept(held)))
        await until_locked_out(way.db)
        freeing = asyncio.create_task(IdempotencyKeys(way.db).release_uncommitted(held))
        await until_locked_out(way.db, 2)
    outcome = await entering
    await freeing
    found = await IdempotencyKeys(way.db).begin(held.organization_id, held.env, held.key_hash, ASKED, way.clock.now())
    assert found == AnswerStored(200, repr(outcome).encode())


@pytest.mark.parametrize("by", ["a pause", "an activation"])
async def test_who_moves_a_journey_goes_before_all_who_come_later_to_enter_it(way: Way, by: str) -> None:
    journey = await way.journey(END)
    key = (journey.organization_id, ENV, journey.id)

    async def move() -> None:
        async with way.db.transaction() as connection:
            if by == "an activation":
                await states.lock_chain(connection, journey)
            before = await JOURNEYS.get_locked(connection, *key)
            assert before is not None
            await states.pause(connection, before, way.clock.now())

    async def enter() -> JourneyDoor:
        async with way.db.hot.transaction() as connection:
            return (await doors.hold_keys(connection, [key]))[key]

    async with way.db.hot.transaction() as connection:
        assert (await doors.hold_keys(connection, [key]))[key].open
        assert (await enter()).open  # many enter at once
        moving = asyncio.create_task(move())
        await until_locked_out(way.db)
        coming = asyncio.create_task(enter())
        await until_locked_out(way.db, 2)
    await moving
    assert not (await coming).open


async def test_the_executions_of_a_journey_that_is_archived_end_without_their_timers(way: Way, door: Door) -> None:
    wait = {"id": "wait", "tipo": "esperar", "minutos": 60, "proximo": "end"}
    journey, other = await way.journey(wait, END), await way.journey(wait, END)
    began = [await way.begin(journey) for _ in range(3)]
    untouched = await way.begin(other)
    await way.work()
    await way.db.execute("update journeys set status = 'arquivada' where id = $1", journey.id)
    await way.work()
    assert {(await way.read(each.key)).motivo for each in began} == {EndReason.JOURNEY_ARCHIVED}
    assert (await way.read(untouched.key)).motivo is None


async def test_many_executions_of_an_archived_journey_end_in_blocks(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    wait = {"id": "wait", "tipo": "esperar", "minutos": 60, "proximo": "end"}
    journey = await way.journey(wait, END)
    for _ in range(7):
        await way.begin(journey)
    await way.work()
    monkeypatch.setattr("recado.services.journeys.execution_turns.MOST", 3)
    await way.db.execute("update journeys set status = 'arquivada'")
    await way.work()
    assert await way.db.fetchval("select count(*) from executions where motivo = 'jornada_arquivada'") == 7
    assert await way.db.fetchval("select count(*) from execution_signals") == 0
