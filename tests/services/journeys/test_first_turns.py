"""Who enters by a list has its first turn in the commit of its entry, and is stored as it stands then (C9.15)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.services.journeys.conftest import BORN, END, ENV, HOUR, Way, sms, wait
from tests.waiting import until_locked_out

from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import LIST
from recado.domain.journeys.execution import Awaited, EndReason, ExecutionStatus
from recado.domain.journeys.journey import JourneyStatus
from recado.services.journeys import execution_turns
from recado.services.journeys.arrivals import JourneyArrivals
from recado.storage.audience import lists
from recado.storage.audience.lists import StaticList
from recado.storage.journeys import execution_counts, executions, step_counts
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.journeys import Journey

ASK = {"id": "ask", "tipo": "condicao", "campo": "attributes.vip", "operador": "existe", "sim": "end", "nao": "wait"}


class Club:
    """A list that leads into a journey."""

    def __init__(self, way: Way, list_id: str) -> None:
        self.way = way
        self.list_id = list_id
        self.arrivals = JourneyArrivals(way.db, clock=way.clock, ids=way.ids, taking=way.turns)

    async def journey(self, *steps: Any, **changes: Any) -> Journey:
        return await self.way.journey(*steps, gatilho={"tipo": "lista", "listId": self.list_id}, **changes)

    async def join(self, *contact_ids: str) -> None:
        async with self.way.db.transaction() as connection:
            await lists.join(connection, self.way.organization.id, ENV, self.list_id, contact_ids, self.way.clock.now())
        await self.arrivals.spread()

    async def executions(self) -> list[Execution]:
        rows = await self.way.db.fetch("select * from executions order by contact_id")
        return [executions.read(row) for row in rows]

    async def due(self) -> int:
        count: int = await self.way.db.fetchval("select count(*) from executions where wake_at <= $1", BORN)
        return count


@pytest.fixture
async def club(way: Way) -> Club:
    list_id = way.ids.new(LIST)
    new = StaticList(organization_id=way.organization.id, env=ENV, id=list_id, name="Clients", updated_at=BORN)
    await lists.insert(way.db, new)
    return Club(way, list_id)


async def test_who_enters_stands_at_its_wait_with_its_trail_and_all_is_counted(way: Way, club: Club) -> None:
    journey = await club.journey(ASK, wait("wait", "end"), END)
    plain, vip = await way.person(), await way.person(attributes={"vip": True})
    await club.join(plain, vip)
    assert (await club.arrivals.take()).count == 2
    waiting, over = await club.executions()
    assert (waiting.step_id, waiting.awaited, waiting.wake_at, waiting.passed) == ("wait", Awaited.TIME, BORN + HOUR, 1)
    assert (waiting.arrived_at, waiting.started_at, waiting.status) == (BORN, BORN, ExecutionStatus.ATIVA)
    assert (over.motivo, over.ended_at, over.wake_at) == (EndReason.FINISHED, BORN, None)
    assert await way.trail(waiting) == [("ask", "nao", None)]
    assert await way.trail(over) == [("ask", "sim", None), ("end", "fim", None)]
    assert await club.due() == 0
    counts = await execution_counts.of_journeys(way.db, way.organization.id, ENV, [journey.id])
    assert counts == {journey.id: {"ativa": 1, "concluida": 1, "cancelada": 0, "erro": 0}}
    assert await step_counts.of_journey(way.db, (way.organization.id, ENV, journey.id)) == {
        "ask": {"entrou": 2, "resultado nao": 1, "resultado sim": 1},
        "wait": {"entrou": 1},
        "end": {"entrou": 1, "resultado fim": 1},
    }
    await way.work(HOUR)
    assert (await way.read(waiting.key)).motivo is EndReason.FINISHED


async def test_its_message_leaves_with_its_entry_and_it_goes_on_to_what_follows(way: Way, club: Club) -> None:
    answered = {"id": "answered", "tipo": "condicao", "sobre": "hello", "sinal": "entregue", "sim": "end", "nao": "end"}
    await club.journey(sms("hello", "answered"), answered, END)
    await club.join(await way.person())
    await club.arrivals.take()
    (execution,) = await club.executions()
    assert len(way.accepted) == 1
    assert (execution.step_id, execution.awaited, execution.wake_at) == ("answered", Awaited.SIGNAL, None)
    assert await way.trail(execution) == [("hello", "enviado", None)]
    await way.db.execute("update messages set status = 'delivered', sent_at = $1, delivered_at = $1", way.clock.now())
    await way.db.execute("delete from dispatch")
    await way.work()
    assert (await way.read(execution.key)).motivo is EndReason.FINISHED


async def test_who_cannot_be_paid_waits_with_its_journey_that_pauses(way: Way, club: Club) -> None:
    await club.journey(sms("hello", "end"), END)
    await way.db.execute("update wallets set balance_coins = 0")
    await club.join(await way.person())
    await club.arrivals.take()
    (execution,) = await club.executions()
    assert (execution.overslept, execution.awaited, way.accepted) == (True, Awaited.RESUME, [])
    assert await way.db.fetchval("select pausada_por ->> 'motivo' from journeys") == "saldo_insuficiente"


async def test_who_enters_a_journey_that_paused_itself_waits_for_it(way: Way, club: Club) -> None:
    await club.journey(END, status=JourneyStatus.PAUSADA, pausada_por={"motivo": "saldo_insuficiente"})
    await club.join(await way.person())
    await club.arrivals.take()
    (execution,) = await club.executions()
    assert (execution.overslept, execution.awaited, execution.wake_at) == (True, Awaited.RESUME, None)


async def test_one_whose_contact_somebody_changes_is_due_and_does_not_wait_for_that(way: Way, club: Club) -> None:
    await club.journey(wait("wait", "end"), END)
    changing, other = await way.person(), await way.person()
    await club.join(changing, other)
    async with way.db.transaction() as connection:
        await connection.execute("update contacts set opt_in_status = 'denied' where id = $1", changing)
        await club.arrivals.take()
    assert [each.awaited for each in await club.executions()] == [None, Awaited.TIME]
    await way.work()
    assert [each.motivo for each in await club.executions()] == [EndReason.OPTED_OUT, None]


async def test_its_second_turn_waits_for_that_as_the_change_may_have_found_no_execution(way: Way, club: Club) -> None:
    await club.journey(wait("wait", "end"), END)
    changing = await way.person()
    await club.join(changing)
    async with way.db.transaction() as connection:
        await connection.execute("update contacts set opt_in_status = 'denied' where id = $1", changing)
        await club.arrivals.take()
        await way.turns.take()
    (execution,) = await club.executions()
    assert (execution.awaited, execution.passed) == (None, 0)
    await way.work(timedelta(seconds=1))
    assert [each.motivo for each in await club.executions()] == [EndReason.OPTED_OUT]


async def test_a_refusal_that_comes_meanwhile_finds_the_execution(
    way: Way, club: Club, monkeypatch: pytest.MonkeyPatch
) -> None:
    await club.journey(wait("wait", "end"), END)
    contact_id = await way.person()
    await club.join(contact_id)
    begin, refusing = executions.begin, []

    async def late(*given: Any) -> None:
        refused = way.db.execute("update contacts set opt_in_status = 'denied' where id = $1", contact_id)
        refusing.append(asyncio.create_task(refused))
        await until_locked_out(way.db)
        await begin(*given)

    monkeypatch.setattr(executions, "begin", late)
    await club.arrivals.take()
    await refusing[0]
    await way.work()
    assert [each.motivo for each in await club.executions()] == [EndReason.OPTED_OUT]


async def test_who_enters_a_journey_with_a_goal_has_its_first_turn_when_events_find_it(way: Way, club: Club) -> None:
    await club.journey(wait("wait", "end"), END, meta_evento="paid")
    await club.join(await way.person())
    await club.arrivals.take()
    assert await club.due() == 1
    await way.work()
    assert [each.awaited for each in await club.executions()] == [Awaited.TIME]


@pytest.mark.parametrize("error", [ZeroDivisionError(), TimeoutError()])
async def test_a_first_turn_that_fails_lets_all_enter_without_it(
    way: Way, club: Club, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    await club.journey(wait("wait", "end"), END)
    await club.join(await way.person(), await way.person())

    async def failing(*given: Any, **named: Any) -> Any:
        raise error

    monkeypatch.setattr(execution_turns, "read_people", failing)
    with capture_logs() as logs:
        await club.arrivals.take()
    assert [line["event"] for line in logs] == ["entries_taken_one_by_one"]
    assert await club.due() == 2
    monkeypatch.undo()
    await way.work()
    assert {each.awaited for each in await club.executions()} == {Awaited.TIME}


async def test_a_commit_that_is_lost_has_let_nobody_in(way: Way, club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    await club.journey(sms("hello", "end"), END)
    await club.join(await way.person())
    begin, losses = executions.begin, [1]

    async def losing(*given: Any) -> None:
        await begin(*given)
        if losses and given[1]:
            losses.pop()
            raise ConnectionResetError

    monkeypatch.setattr(executions, "begin", losing)
    with pytest.raises(Unavailable):
        await club.arrivals.take()
    assert (await club.executions(), way.accepted) == ([], [])
    assert await way.db.fetchval("select count(*) from messages") == 0
    await club.arrivals.take()
    await club.arrivals.take()
    assert [each.motivo for each in await club.executions()] == [EndReason.FINISHED]
    assert len(way.accepted) == await way.db.fetchval("select count(*) from messages") == 1


async def test_two_turns_at_once_keep_a_cap_of_frequency(way: Way, monkeypatch: pytest.MonkeyPatch) -> None:
    cap = {"mensagens": 1, "dias": 1}
    contact_id = await way.person()
    began = [
        await way.begin(await way.journey(sms("hello", "end"), END, teto_de_frequencia=cap), contact_id)
        for _ in range(2)
    ]
    monkeypatch.setattr(execution_turns, "MOST", 1)
    await asyncio.gather(way.turns.take(), way.turns.take())
    await way.work()
    results = [(await way.trail(each))[0] for each in began]
    assert sorted(results) == [("hello", "enviado", None), ("hello", "pulado", "teto_de_frequencia")]


async def test_one_that_takes_too_long_fails_by_itself_after_smaller_turns(
    way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    slow = await way.begin(journey)
    others = [await way.begin(journey) for _ in range(4)]
    make = way.step_messages.make

    async def stuck(standing: Any, decision: Any) -> Any:
        if standing.execution.id == slow.id:
            raise Unavailable("no answer in time") from TimeoutError()
        return await make(standing, decision)

    monkeypatch.setattr(way.step_messages, "make", stuck)
    with capture_logs() as logs:
        await way.work()
    assert [line["executions"] for line in logs if line["event"] == "turn_took_too_long"] == [5, 1]
    assert {(await way.read(each.key)).motivo for each in others} == {EndReason.FINISHED}
    held = await way.read(slow.key)
    assert (held.failures, held.wake_at) == (1, BORN + timedelta(seconds=5))
