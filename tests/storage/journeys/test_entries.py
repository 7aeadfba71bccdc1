"""Who enters a journey: once for the chain of its versions, or again after a while; of two at once, one (C9.7)."""

import asyncio
from datetime import timedelta

from tests.people import insert_people
from tests.storage.journeys.rows import (
    ENV,
    IDS,
    NOW,
    ORGANIZATION,
    begun,
    entered,
    insert_journey,
    new_entry,
    save_locked,
)
from tests.waiting import until_locked_out

from recado.domain.core.ids import CONTACT
from recado.domain.journeys.entries import EntryRefusal
from recado.domain.journeys.execution import EndReason, ExecutionOrigin, ExecutionStatus
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import execution_counts, executions
from recado.storage.journeys.entries import Entered, NewEntry, begin_test, enter

DAY = timedelta(days=1)


async def test_an_entry_begins_an_execution_at_the_first_step_with_its_data(database: Database) -> None:
    journey = await insert_journey(database)
    (contact_id,) = await insert_people(database, ORGANIZATION, ENV, [{}])
    entry = new_entry(contact_id, journey, order="A-1", total=12.5, paid=True)
    assert await entered(database, entry) is Entered.ENTERED
    execution = await executions.get(database, (ORGANIZATION, ENV, journey.id, entry.execution_id))
    assert execution is not None
    assert (execution.status, execution.origem, execution.step_id) == (
        ExecutionStatus.ATIVA,
        ExecutionOrigin.API,
        journey.inicio,
    )
    assert (execution.started_at, execution.arrived_at, execution.wake_at) == (NOW, NOW, NOW)
    assert execution.entrada == {"order": "A-1", "total": 12.5, "paid": True}
    assert (execution.chain_id, execution.versao, execution.contact_id) == (journey.chain_id, 1, contact_id)


async def test_a_contact_enters_a_chain_of_versions_once(database: Database) -> None:
    first = await insert_journey(database)
    second = await insert_journey(database, chain_id=first.id, versao=2)
    other = await insert_journey(database)
    (contact_id,) = await insert_people(database, ORGANIZATION, ENV, [{}])
    assert await entered(database, new_entry(contact_id, first)) is Entered.ENTERED
    for journey in (first, second):
        assert await entered(database, new_entry(contact_id, journey)) is EntryRefusal.ENTERED_BEFORE
    assert await entered(database, new_entry(contact_id, other)) is Entered.ENTERED
    assert await database.fetchval("select count(*) from executions") == 2


async def test_a_contact_enters_again_when_its_last_execution_is_over_and_long_enough_ago(database: Database) -> None:
    journey = await insert_journey(database)
    (contact_id,) = await insert_people(database, ORGANIZATION, ENV, [{}])
    entry = new_entry(contact_id, journey, interval=DAY)
    assert await entered(database, entry) is Entered.ENTERED

    async def again(after: timedelta) -> object:
        return await entered(database, new_entry(contact_id, journey, at=NOW + after, interval=DAY))

    assert await again(2 * DAY) is EntryRefusal.UNDER_WAY
    execution = await executions.get(database, (ORGANIZATION, ENV, journey.id, entry.execution_id))
    assert execution is not None
    await save_locked(database, execution.ended(EndReason.FINISHED, NOW))
    assert await again(DAY - timedelta(seconds=1)) is EntryRefusal.TOO_SOON
    assert await again(DAY) is Entered.ENTERED
    assert await again(3 * DAY) is EntryRefusal.UNDER_WAY


async def test_who_refused_or_does_not_exist_does_not_enter(database: Database) -> None:
    journey = await insert_journey(database)
    (denied,) = await insert_people(database, ORGANIZATION, ENV, [{"opt_in_status": "denied"}])
    (foreign,) = await insert_people(database, "org_" + "1" * 21, ENV, [{}], first=2)
    given = [new_entry(each, journey) for each in (denied, foreign, IDS.new(CONTACT))]
    results = await enter(database, ORGANIZATION, ENV, given)
    assert results == [EntryRefusal.OPTED_OUT, Entered.NO_CONTACT, Entered.NO_CONTACT]
    assert await database.fetchval("select count(*) from executions") == 0
    assert await database.fetchval("select count(*) from chain_entries") == 0


async def test_of_many_entries_at_once_each_contact_has_its_own_answer(database: Database) -> None:
    journey = await insert_journey(database)
    contact_ids = await insert_people(database, ORGANIZATION, ENV, [{} for _ in range(50)])
    given = [new_entry(contact_id, journey) for contact_id in [*reversed(contact_ids), *contact_ids[:3]]]
    results = await enter(database, ORGANIZATION, ENV, given)
    assert results == [Entered.ENTERED] * 50 + [EntryRefusal.ENTERED_BEFORE] * 3
    assert await database.fetchval("select count(distinct contact_id) from executions") == 50


async def test_who_repeats_entries_whose_answer_was_lost_is_answered_as_before(database: Database) -> None:
    journey = await insert_journey(database)
    contact_ids = await insert_people(database, ORGANIZATION, ENV, [{}, {}])
    given = [new_entry(contact_id, journey, interval=DAY) for contact_id in contact_ids]
    for _ in range(2):
        assert await enter(database, ORGANIZATION, ENV, given) == [Entered.ENTERED] * 2
    assert await entered(database, new_entry(contact_ids[0], journey, interval=DAY)) is EntryRefusal.UNDER_WAY
    assert await database.fetchval("select count(*) from executions") == 2
    counted = await execution_counts.of_journeys(database, ORGANIZATION, ENV, [journey.id])
    assert counted[journey.id]["ativa"] == 2


async def test_many_entries_of_one_contact_are_decided_one_after_the_other(database: Database) -> None:
    journey = await insert_journey(database)
    later = await insert_journey(database, chain_id=journey.id, versao=2)
    (contact_id,) = await insert_people(database, ORGANIZATION, ENV, [{}])
    given = [new_entry(contact_id, each, interval=DAY) for each in (journey, *[later] * 20)]
    results = await enter(database, ORGANIZATION, ENV, given)
    assert results == [Entered.ENTERED, *[EntryRefusal.UNDER_WAY] * 20]


async def test_of_two_that_bring_a_contact_in_at_once_one_does(database: Database) -> None:
    journey = await insert_journey(database)
    contact_ids = await insert_people(database, ORGANIZATION, ENV, [{}, {}])
    async with database.transaction() as connection:
        assert await entered(connection, new_entry(contact_ids[0], journey)) is Entered.ENTERED

        async def both() -> list[object]:
            async with database.transaction() as other:
                given = [new_entry(each, journey) for each in contact_ids]
                return list(await enter(other, ORGANIZATION, ENV, given))

        waiting = asyncio.create_task(both())
        await until_locked_out(database)
    assert await waiting == [EntryRefusal.ENTERED_BEFORE, Entered.ENTERED]
    assert await database.fetchval("select count(*) from executions") == 2


async def test_of_two_that_bring_a_contact_in_again_at_once_one_does(database: Database) -> None:
    journey = await insert_journey(database)
    (execution,) = await begun(database, journey)
    await save_locked(database, execution.ended(EndReason.FINISHED, NOW))

    def again() -> NewEntry:
        return new_entry(execution.contact_id, journey, at=NOW + DAY, interval=DAY)

    async with database.transaction() as connection:
        assert await entered(connection, again()) is Entered.ENTERED

        async def other() -> object:
            async with database.transaction() as second:
                return await entered(second, again())

        waiting = asyncio.create_task(other())
        await until_locked_out(database)
    assert await waiting is EntryRefusal.UNDER_WAY


async def test_a_test_knows_no_other_entries_and_claims_nothing(database: Database) -> None:
    journey = await insert_journey(database)
    (execution,) = await begun(database, journey)
    entry = new_entry(execution.contact_id, journey, origin=ExecutionOrigin.TEST)
    await begin_test(database, ORGANIZATION, ENV, entry, hurried=True)
    test = await executions.get(database, (ORGANIZATION, ENV, journey.id, entry.execution_id))
    assert test is not None
    assert (test.teste, test.hurried, test.origem) == (True, True, ExecutionOrigin.TEST)
    assert await database.fetchval("select execution_id from chain_entries") == execution.id
