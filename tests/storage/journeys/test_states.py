"""Journeys are moved by what happens to their executions, only in the states that know it (C9.12)."""

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recado.domain.core.ids import JOURNEY, IdSource
from recado.domain.journeys.graph import Reentry
from recado.domain.journeys.journey import AutomaticPause, Hindrance, JourneyStatus
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.engine.clock import VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import withdrawals
from recado.storage.journeys import states
from recado.storage.journeys.journeys import JOURNEYS, Journey

ORGANIZATION = "org_" + "1" * 21
START = datetime(2026, 11, 20, 12, tzinfo=UTC)
LATER = START + timedelta(hours=1)
CAUSE = AutomaticPause(Hindrance.NO_BALANCE, "send", LATER)
_ids = IdSource(VirtualClock(START), random.Random(5))


async def stored(database: Database, status: JourneyStatus, **fields: Any) -> Journey:
    journey_id = _ids.new(JOURNEY)
    new = Journey(
        organization_id=ORGANIZATION, env="test", id=journey_id, chain_id=journey_id, status=status, name="a",
        fuso_horario="UTC", gatilho={}, inicio="a", reentrada=Reentry.NUNCA, intervalo_reentrada_horas=24, passos=(),
        updated_at=START,
    )  # fmt: skip
    async with database.transaction() as connection:
        return await JOURNEYS.insert(connection, replace(new, **fields))


async def now(database: Database, journey: Journey) -> Journey:
    found = await JOURNEYS.get(database, ORGANIZATION, "test", journey.id)
    assert found is not None
    return found


@pytest.mark.parametrize("status", JourneyStatus)
async def test_only_one_that_runs_pauses_itself(database: Database, status: JourneyStatus) -> None:
    before = await stored(database, status)
    runs = status is JourneyStatus.ATIVA
    stands = await states.pause_itself(database, (ORGANIZATION, "test", before.id), CAUSE)
    assert stands == (OwnerPauses(ORGANIZATION, "test", before.id, 2, LATER) if runs else None)
    after = await now(database, before)
    paused = {"motivo": "saldo_insuficiente", "passo": "send", "em": "2026-11-20T13:00:00.000Z"}
    assert after == (
        replace(
            before, status=JourneyStatus.PAUSADA, pausada_em=LATER, pausada_por=paused, revision=2, updated_at=LATER
        )
        if runs
        else before
    )


async def test_it_pauses_itself_once(database: Database) -> None:
    before = await stored(database, JourneyStatus.ATIVA)
    key = (ORGANIZATION, "test", before.id)
    assert await states.pause_itself(database, key, CAUSE)
    other = AutomaticPause(Hindrance.NUMBER_UNAVAILABLE, "other", LATER)
    assert not await states.pause_itself(database, key, other)
    assert (await now(database, before)).pausada_por == CAUSE.document()


async def test_a_credit_lets_those_go_on_that_lacked_it(database: Database) -> None:
    lacked = [await stored(database, JourneyStatus.ATIVA) for _ in range(2)]
    for each in lacked:
        await states.pause_itself(database, (ORGANIZATION, "test", each.id), CAUSE)
    by_a_person = await stored(database, JourneyStatus.PAUSADA, pausada_em=START)
    for_another_cause = await stored(database, JourneyStatus.ATIVA)
    other = AutomaticPause(Hindrance.CONSECUTIVE_FAILURES, "send", LATER)
    await states.pause_itself(database, (ORGANIZATION, "test", for_another_cause.id), other)
    archived = await stored(database, JourneyStatus.ARQUIVADA, pausada_por=CAUSE.document())
    foreign = await stored(database, JourneyStatus.PAUSADA, pausada_por=CAUSE.document(), env="live")
    credited = LATER + timedelta(hours=1)
    theirs = [(ORGANIZATION, "test", each.id) for each in (*lacked, by_a_person, for_another_cause, archived)]
    assert await states.go_on_credited(database, theirs, credited) == theirs[:2]
    for each in lacked:
        assert await now(database, each) == replace(each, pausas=(LATER, credited), revision=3, updated_at=credited)
    assert await now(database, by_a_person) == by_a_person
    assert (await now(database, for_another_cause)).status is JourneyStatus.PAUSADA
    assert await now(database, archived) == archived
    assert await JOURNEYS.get(database, ORGANIZATION, "live", foreign.id) == foreign
    assert await states.go_on_credited(database, theirs, credited) == []


async def test_a_credit_waits_for_nobody_who_moves_the_journey(database: Database) -> None:
    lacked, locked = [await stored(database, JourneyStatus.ATIVA) for _ in range(2)]
    keys = [(ORGANIZATION, "test", each.id) for each in (lacked, locked)]
    for key in keys:
        await states.pause_itself(database, key, CAUSE)
    async with database.transaction() as connection:
        await JOURNEYS.get_locked(connection, *keys[1])
        assert await states.go_on_credited(database, keys, LATER) == keys[:1]
    assert await states.go_on_credited(database, keys, LATER) == keys[1:]


async def test_one_that_was_moved_since_an_execution_was_hindered_does_not_pause_itself(database: Database) -> None:
    before = await stored(database, JourneyStatus.ATIVA)
    key = (ORGANIZATION, "test", before.id)
    assert not await states.pause_itself(database, key, CAUSE, revision=before.revision - 1)
    assert await now(database, before) == before
    assert await states.pause_itself(database, key, CAUSE, revision=before.revision)


@pytest.mark.parametrize("status", JourneyStatus)
@pytest.mark.parametrize("superseded", [True, False])
async def test_only_one_that_runs_and_takes_no_entries_is_over_with_its_last_execution(
    database: Database, status: JourneyStatus, superseded: bool
) -> None:
    before = await stored(database, status, entradas_encerradas=superseded)
    over = superseded and status is JourneyStatus.ATIVA
    assert await states.archive_emptied(database, (ORGANIZATION, "test", before.id), LATER) is over
    after = await now(database, before)
    archived = replace(before, status=JourneyStatus.ARQUIVADA, arquivada_em=LATER, revision=2, updated_at=LATER)
    assert after == (archived if over else before)


async def test_the_last_pauses_are_kept_with_their_journey(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "KEPT", 2)
    monkeypatch.setattr("recado.domain.messages.owner_pauses.KEPT", 2)
    journey = await stored(database, JourneyStatus.ATIVA, ativada_em=START)
    moments = [START + timedelta(minutes=n) for n in range(6)]
    for began, ended in zip(moments[::2], moments[1::2], strict=True):
        async with database.transaction() as connection:
            paused = await states.pause(connection, journey, began)
            assert paused.pauses.paused_at == began
            journey, _ = await states.activate(connection, paused, ended)
        assert journey.pauses.paused_at is None
    assert journey.pausas == tuple(moments[2:])
    for n in range(2):
        lacked = replace(CAUSE, at=moments[-1] + timedelta(minutes=2 * n + 1))
        assert await states.pause_itself(database, (ORGANIZATION, "test", journey.id), lacked)
        await states.go_on_credited(database, [(ORGANIZATION, "test", journey.id)], lacked.at + timedelta(minutes=1))
    minutes = [timedelta(minutes=n) for n in (1, 2, 3, 4)]
    assert (await now(database, journey)).pausas == tuple(moments[-1] + each for each in minutes)


async def test_an_archived_one_holds_nothing_back_and_has_its_messages_withdrawn(database: Database) -> None:
    before = await stored(database, JourneyStatus.PAUSADA, pausada_em=START, pausas=(START, START))
    assert not before.withdrawn
    async with database.transaction() as connection:
        after = await states.archive(connection, before, LATER)
    assert (after.pausas, after.pauses.paused_at, after.withdrawn) == ((), None, True)
    (noted,) = await withdrawals.noted(database)
    assert noted == withdrawals.of_archived(ORGANIZATION, "test", before.id)


@pytest.mark.parametrize("status", JourneyStatus)
@pytest.mark.parametrize("superseded", [True, False])
async def test_only_one_that_runs_and_takes_no_entries_is_over_when_none_is_under_way(
    database: Database, status: JourneyStatus, superseded: bool
) -> None:
    before = await stored(database, status, entradas_encerradas=superseded)
    over = superseded and status is JourneyStatus.ATIVA
    found, after = await states.archive_idle(database, LATER, limit=9)
    assert (found, after) == ([before.id] if over else [], states.FIRST)
    archived = replace(before, status=JourneyStatus.ARQUIVADA, arquivada_em=LATER, revision=2, updated_at=LATER)
    assert await now(database, before) == (archived if over else before)


async def test_one_that_another_moves_is_left_to_a_later_look(database: Database) -> None:
    first, second = [await stored(database, JourneyStatus.ATIVA, entradas_encerradas=True) for _ in range(2)]
    async with database.transaction() as connection:
        await JOURNEYS.get_locked(connection, ORGANIZATION, "test", first.id)
        assert await states.archive_idle(database, LATER, limit=9) == ([second.id], states.FIRST)
    assert await states.archive_idle(database, LATER, limit=1) == ([first.id], (ORGANIZATION, "test", first.id))
