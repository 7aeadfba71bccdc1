"""Executions are counted by rows of each commit, which nobody waits for, and which a job folds (C9.2, C9.11.3)."""

import asyncio

from tests.storage.journeys.rows import ENV, NOW, ORGANIZATION, begun, insert_journey, new_entry, save_locked

from recado.domain.journeys.execution import EndReason, ExecutionOrigin, ExecutionStatus
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import execution_counts, executions
from recado.storage.journeys.entries import begin_test
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.journeys import Journey


async def in_test(database: Database, journey: Journey, contact_id: str) -> Execution:
    """The execution of a test that began now."""
    entry = new_entry(contact_id, journey, origin=ExecutionOrigin.TEST)
    await begin_test(database, ORGANIZATION, ENV, entry, hurried=True)
    found = await executions.get(database, (ORGANIZATION, ENV, journey.id, entry.execution_id))
    assert found is not None
    return found


async def counts(database: Database, journey: Journey) -> dict[str, int] | None:
    return (await execution_counts.of_journeys(database, ORGANIZATION, ENV, [journey.id])).get(journey.id)


async def test_the_executions_of_a_journey_are_counted_by_their_states_without_tests(database: Database) -> None:
    journey, other = await insert_journey(database), await insert_journey(database)
    assert await counts(database, journey) is None
    first, second, third = await begun(database, journey, 3)
    await begun(database, other)
    test = await in_test(database, journey, first.contact_id)
    assert await counts(database, journey) == {"ativa": 3, "concluida": 0, "cancelada": 0, "erro": 0}
    await save_locked(
        database,
        first.ended(EndReason.FINISHED, NOW),
        second.ended(EndReason.OPTED_OUT, NOW),
        third.ended(EndReason.INTERNAL_FAILURE, NOW),
        test.ended(EndReason.FINISHED, NOW),
    )
    assert await counts(database, journey) == {"ativa": 0, "concluida": 1, "cancelada": 1, "erro": 1}
    assert (await counts(database, other) or {})["ativa"] == 1


async def test_who_counts_waits_for_nobody_who_counts_in_the_same_journey(database: Database) -> None:
    journey = await insert_journey(database)
    entered = ((ORGANIZATION, ENV, journey.id), None, ExecutionStatus.ATIVA)
    async with database.transaction() as connection:
        await execution_counts.add(connection, [entered, entered])
        async with asyncio.timeout(60):
            await execution_counts.add(database, [entered])
            await execution_counts.fold(database)
        assert await counts(database, journey) == {"ativa": 1, "concluida": 0, "cancelada": 0, "erro": 0}
    assert await counts(database, journey) == {"ativa": 3, "concluida": 0, "cancelada": 0, "erro": 0}


async def test_what_is_folded_is_counted_once(database: Database) -> None:
    journey, other = await insert_journey(database), await insert_journey(database)
    for one in (journey, other):
        for execution in await begun(database, one, 3):
            await save_locked(database, execution.ended(EndReason.FINISHED, NOW))
    before = await counts(database, journey)
    assert before == {"ativa": 0, "concluida": 3, "cancelada": 0, "erro": 0}
    await execution_counts.fold(database, block=3)
    assert await database.fetchval("select count(*) from journey_count_changes") == 0
    assert await database.fetchval("select count(*) from journey_counts") == 2
    assert [await counts(database, one) for one in (journey, other)] == [before, before]
    (execution,) = await begun(database, journey)
    assert await counts(database, journey) == {**before, "ativa": 1}
    await save_locked(database, execution.ended(EndReason.CANCELED_BY_CALLER, NOW))
    await execution_counts.fold(database)
    assert await counts(database, journey) == {**before, "cancelada": 1}


async def test_a_version_that_takes_no_entries_is_over_with_its_last_execution_and_waits_for_tests(
    database: Database,
) -> None:
    old, open_one = await insert_journey(database, entradas_encerradas=True), await insert_journey(database)
    first, last = await begun(database, old, 2)
    (other,) = await begun(database, open_one)
    test = await in_test(database, old, first.contact_id)

    async def archived() -> list[str]:
        return [row["id"] for row in await database.fetch("select id from journeys where status = 'arquivada'")]

    await save_locked(database, first.ended(EndReason.FINISHED, NOW), other.ended(EndReason.FINISHED, NOW))
    assert await archived() == []
    assert await executions.emptied(database, [(ORGANIZATION, ENV, old.id)]) == []
    await save_locked(database, test.ended(EndReason.FINISHED, NOW))
    assert await archived() == []
    await save_locked(database, last.ended(EndReason.OPTED_OUT, NOW))
    assert await archived() == [old.id]
