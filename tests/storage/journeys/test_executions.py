"""Executions that are due are taken in shares, by one turn at a time, and pass each step once (C9.15)."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.storage.journeys.rows import ENV, NOW, ORGANIZATION, begun, entered, insert_journey, new_entry, save_locked
from tests.waiting import until_locked_out

from recado.domain.journeys.execution import Awaited, EndReason, ExecutionStatus
from recado.domain.journeys.journey import JourneyStatus
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import executions
from recado.storage.journeys.executions import Execution, HeardSignals, PassedBefore, PassedStep

OTHERS = tuple(f"org_{number:021}" for number in (1, 2, 3))
MINUTE = timedelta(minutes=1)


def passed(execution: Execution, step_id: str = "end", *, place: int = 0, message_id: str | None = None) -> PassedStep:
    return PassedStep(
        organization_id=execution.organization_id,
        execution_id=execution.id,
        step_id=step_id,
        env=execution.env,
        kind="fim",
        at=NOW,
        place=place,
        result="fim",
        message_id=message_id,
    )


async def due(database: Database, *, each: int = 10, most: int = 100, after: str = "") -> list[Execution]:
    async with database.transaction() as connection:
        return await executions.claim_due(connection, NOW, each=each, most=most, after=after)


async def read(database: Database, execution: Execution) -> Execution:
    found = await executions.get(database, execution.key)
    assert found is not None
    return found


async def test_each_organization_has_its_share_of_what_is_due(database: Database) -> None:
    for organization_id, count in zip((ORGANIZATION, *OTHERS), (9, 2, 1, 3), strict=True):
        journey = await insert_journey(database, organization_id=organization_id)
        await begun(database, journey, count)
    assert [each.organization_id for each in await due(database, each=2, most=8)] == [
        *[ORGANIZATION] * 2, *[OTHERS[0]] * 2, OTHERS[1], *[OTHERS[2]] * 2,
    ]  # fmt: skip
    # Where few have something due, they share all places.
    assert Counter(each.organization_id for each in await due(database, each=2, most=20)) == {
        ORGANIZATION: 5, OTHERS[0]: 2, OTHERS[1]: 1, OTHERS[2]: 3,
    }  # fmt: skip
    assert [each.organization_id for each in await due(database, each=2, most=3)] == [*[ORGANIZATION] * 2, OTHERS[0]]
    assert {each.organization_id for each in await due(database, after=OTHERS[0])} == {OTHERS[1], OTHERS[2]}


async def test_of_an_organization_the_longest_due_come_first_and_those_that_wait_do_not(database: Database) -> None:
    journey = await insert_journey(database)
    first, second, later, asleep, over = await begun(database, journey, 5)
    await save_locked(
        database,
        replace(first, wake_at=NOW - MINUTE),
        later.waiting(Awaited.TIME, NOW + MINUTE),
        asleep.waiting(Awaited.SIGNAL, None),
        over.ended(EndReason.FINISHED, NOW),
    )
    assert [each.id for each in await due(database)] == [first.id, second.id]
    assert [each.id for each in await due(database, each=1, most=1)] == [first.id]


async def test_what_a_turn_has_in_hand_another_leaves_out(database: Database) -> None:
    journey = await insert_journey(database)
    first, second = await begun(database, journey, 2)
    async with database.transaction() as connection:
        held = await executions.claim_due(connection, NOW, each=1, most=1)
        assert [each.id for each in await due(database)] == [({first.id, second.id} - {held[0].id}).pop()]
        async with database.transaction() as other:
            assert await executions.claim(other, held[0].key, NOW) is None
        await executions.save(connection, [held[0].waiting(Awaited.TIME, NOW + MINUTE)], [])
    assert held[0].id not in [each.id for each in await due(database)]
    async with database.transaction() as connection:
        assert await executions.claim(connection, held[0].key, NOW) is None
        assert (await executions.claim(connection, held[0].key, NOW + MINUTE)) is not None


async def test_turns_at_once_share_what_is_due_of_one_organization(database: Database) -> None:
    journey = await insert_journey(database)
    all_of_them = {each.id for each in await begun(database, journey, 5)}
    async with database.transaction() as connection:
        held = await executions.claim_due(connection, NOW, each=2, most=3)
        other = await due(database, each=2, most=3)
        assert (len(held), {each.id for each in (*held, *other)}) == (3, all_of_them)


async def test_what_became_of_an_execution_is_read_as_it_was_saved(database: Database) -> None:
    journey = await insert_journey(database)
    first, second, third, fourth = await begun(database, journey, 4)
    changed = [
        first.moved_to("other", NOW + MINUTE),
        second.waiting(Awaited.SILENCE_END, NOW + MINUTE),
        third.failed(NOW + MINUTE, 3),
        fourth.ended(EndReason.SEND_UNDETERMINED, NOW + MINUTE),
    ]
    await save_locked(database, *changed)
    assert [await read(database, each) for each in changed] == changed
    assert changed[3].status is ExecutionStatus.ERRO


async def test_a_step_is_passed_once_and_then_nothing_is_written(database: Database) -> None:
    journey = await insert_journey(database)
    (execution,) = await begun(database, journey)
    steps = [passed(execution, "a"), passed(execution, "c", place=1)]
    await save_locked(database, execution.moved_to("b", NOW), steps=steps)
    with pytest.raises(PassedBefore):
        await save_locked(
            database, execution.moved_to("z", NOW), steps=[passed(execution, "d"), passed(execution, "a", place=1)]
        )
    assert (await read(database, execution)).step_id == "b"
    assert [each.step_id for each in await executions.trail(database, ORGANIZATION, execution.id)] == ["a", "c"]


async def test_what_is_due_in_a_pause_goes_on_with_its_journey(database: Database) -> None:
    paused = await insert_journey(database, status=JourneyStatus.PAUSADA)
    running = await insert_journey(database)
    held = await begun(database, paused, 3)
    (freed,) = await begun(database, running)
    await save_locked(database, *(each.put_off() for each in (*held, freed)))
    assert await due(database) == []
    async with database.transaction() as connection:
        assert await executions.rouse(connection, NOW, each=10, most=10) == 1
    assert [each.id for each in await due(database)] == [freed.id]
    await database.execute("update journeys set status = 'ativa'")
    async with database.transaction() as connection:
        assert await executions.rouse(connection, NOW, each=2, most=10) == 2
        assert await executions.rouse(connection, NOW, each=2, most=10) == 1
        assert await executions.rouse(connection, NOW, each=2, most=10) == 0
    assert len(await due(database)) == 4
    assert (await read(database, held[0])).awaited is None


async def test_what_waits_for_the_end_of_a_pause_is_nothing_to_do(database: Database) -> None:
    paused = await insert_journey(database, status=JourneyStatus.PAUSADA)
    (held,) = await begun(database, paused)
    await save_locked(database, held.put_off())
    arrival = "insert into journey_arrivals (organization_id, env, journey_id, contact_id) values ($1, $2, $3, $4)"
    await database.execute(arrival, ORGANIZATION, ENV, paused.id, held.contact_id)
    assert not any(await executions.waiting(database.hot, NOW))
    await database.execute("update journeys set status = 'ativa'")
    waiting = await executions.waiting(database.hot, NOW)
    assert (waiting.pauses, waiting.arrivals, waiting.executions) == (True, True, False)


async def test_whoever_cancels_waits_for_the_turn_and_sees_what_became_of_it(database: Database) -> None:
    journey = await insert_journey(database)
    (execution,) = await begun(database, journey)

    async def look() -> Execution | None:
        async with database.transaction() as other:
            return await executions.lock(other, execution.key)

    async with database.transaction() as connection:
        (held,) = await executions.claim_due(connection, NOW, each=1, most=1)
        waiting = asyncio.create_task(look())
        await until_locked_out(database)
        await executions.save(connection, [held.ended(EndReason.FINISHED, NOW)], [passed(held)])
    seen = await waiting
    assert seen is not None
    assert seen.motivo is EndReason.FINISHED


async def test_what_a_deleted_contact_entered_with_is_erased_in_blocks(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executions, "ERASE_BLOCK", 2)
    first = await insert_journey(database)
    (ana,), (bia,) = await begun(database, first), await begun(database, first)
    journeys = [await insert_journey(database) for _ in range(4)]
    entries = [new_entry(ana.contact_id, journey, order="A-1") for journey in journeys]
    entries.append(new_entry(bia.contact_id, journeys[0], order="B-1"))
    for entry in entries:
        await entered(database, entry)
    await executions.erase_contact(database, ORGANIZATION, ENV, ana.contact_id)
    kept = "select contact_id::text, entrada::text from executions where entrada::text <> '{}'"
    assert [tuple(row) for row in await database.fetch(kept)] == [(bia.contact_id, '{"order":"B-1"}')]


async def test_a_thousand_signals_at_once_are_heard_to_the_last(database: Database) -> None:
    journey = await insert_journey(database)
    ways = await begun(database, journey, 30)
    await save_locked(database, *(each.waiting(Awaited.TIME, NOW + MINUTE) for each in ways))
    told = "select organization_id, env, contact_id from executions cross join generate_series(1, 40)"
    await database.execute(f"insert into execution_signals (organization_id, env, contact_id) {told}")
    heard = HeardSignals(1)
    while heard.count:
        async with database.transaction() as connection:
            heard = await executions.hear(connection, NOW, each=1_000, most=1_000)
    assert await database.fetchval("select count(*) from execution_signals") == 0
    assert len(await due(database)) == 30
