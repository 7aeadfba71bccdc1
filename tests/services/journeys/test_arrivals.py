"""Whoever is in the list of a journey at its activation enters it, and whoever joins later (C9.7)."""

import asyncio
from typing import Any

import pytest
from tests.services.journeys.conftest import END, ENV, Way
from tests.waiting import until_locked_out

from recado.domain.core.ids import LIST
from recado.domain.journeys.journey import JourneyStatus
from recado.services.journeys import arrivals as turns
from recado.services.journeys.arrivals import JourneyArrivals
from recado.services.journeys.execution_turns import Turn
from recado.storage.audience import lists
from recado.storage.audience.lists import StaticList
from recado.storage.journeys import states
from recado.storage.journeys.journeys import JOURNEYS, Journey
from recado.storage.journeys.uses import hold_used


class Club:
    """A list of an organization, and the journeys that it leads into."""

    def __init__(self, way: Way, list_id: str) -> None:
        self.way = way
        self.list_id = list_id
        self.arrivals = JourneyArrivals(way.db, clock=way.clock, ids=way.ids, taking=way.turns)

    async def join(self, *contact_ids: str) -> None:
        async with self.way.db.transaction() as connection:
            await lists.join(connection, self.way.organization.id, ENV, self.list_id, contact_ids, self.way.clock.now())
        await self.way.clock.advance(1)

    async def journey(self, **changes: Any) -> Journey:
        given = {"gatilho": {"tipo": "lista", "listId": self.list_id}, "status": JourneyStatus.RASCUNHO, **changes}
        return await self.way.journey(END, **given)

    async def move(self, journey: Journey, move: Any) -> None:
        async with self.way.db.transaction() as connection:
            await hold_used(connection, journey)
            before = await JOURNEYS.get_locked(connection, journey.organization_id, ENV, journey.id)
            await move(connection, before, self.way.clock.now())

    async def work(self) -> None:
        await self.arrivals.spread()
        turn = Turn(1)
        while turn.count or turn.after:
            turn = await self.arrivals.take(turn.after)

    async def entered(self, journey: Journey) -> list[str]:
        rows = await self.way.db.fetch(
            "select contact_id from executions where journey_id = $1 order by id", journey.id
        )
        return [row["contact_id"] for row in rows]

    async def waiting(self) -> int:
        tables = ("journey_arrivals", "list_arrivals", "journey_armings")
        return sum([await self.way.db.fetchval(f"select count(*) from {table}") for table in tables])


@pytest.fixture
async def club(way: Way) -> Club:
    list_id = way.ids.new(LIST)
    new = StaticList(
        organization_id=way.organization.id, env=ENV, id=list_id, name="Clients", updated_at=way.clock.now()
    )
    await lists.insert(way.db, new)
    return Club(way, list_id)


async def test_members_enter_at_the_activation_in_the_order_of_joining_and_later_ones_too(
    way: Way, club: Club, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "EACH", 2)
    people = [await way.person() for _ in range(6)]
    await club.join(people[3])
    await club.join(people[0], people[4])
    await club.join(people[1])
    journey = await club.journey()
    await club.join(people[2])
    assert await club.waiting() == 0  # a draft takes nobody in
    await club.move(journey, states.activate)
    await club.work()
    first = [people[3], people[0], people[4], people[1], people[2]]
    assert await club.entered(journey) == first
    await club.join(people[5], people[0])
    await club.work()
    assert await club.entered(journey) == [*first, people[5]]
    row = await way.db.fetchrow("select distinct origem, entrada::text from executions")
    assert (row["origem"], row["entrada"], await club.waiting()) == ("lista", "{}", 0)


async def test_who_joins_during_a_pause_enters_when_the_journey_goes_on(way: Way, club: Club) -> None:
    journey = await club.journey()
    await club.move(journey, states.activate)
    await club.work()
    await club.move(journey, states.pause)
    contact_id = await way.person()
    await club.join(contact_id)
    await club.work()
    assert (await club.entered(journey), await club.waiting()) == ([], 1)
    await club.move(journey, states.activate)
    await club.work()
    assert (await club.entered(journey), await club.waiting()) == ([contact_id], 0)


async def test_who_joins_while_a_journey_paused_itself_enters_and_waits(way: Way, club: Club) -> None:
    journey = await club.journey(status=JourneyStatus.PAUSADA, pausada_por={"motivo": "saldo_insuficiente"})
    contact_id = await way.person()
    await club.join(contact_id)
    await club.work()
    assert await club.entered(journey) == [contact_id]


@pytest.mark.parametrize("change", ["status = 'arquivada'", "entradas_encerradas = true"])
async def test_a_journey_that_is_over_for_entries_takes_nobody_in(way: Way, club: Club, change: str) -> None:
    journey = await club.journey(status=JourneyStatus.ATIVA)
    await club.join(await way.person())
    await way.db.execute(f"update journeys set {change}")
    await club.join(await way.person())
    await club.work()
    assert (await club.entered(journey), await club.waiting()) == ([], 0)


async def test_one_list_leads_into_several_journeys_and_each_organization_has_its_turn(way: Way, club: Club) -> None:
    journeys = [await club.journey(status=JourneyStatus.ATIVA) for _ in range(2)]
    await club.journey(status=JourneyStatus.ATIVA, gatilho={"tipo": "lista", "listId": way.ids.new(LIST)})
    people = [await way.person() for _ in range(3)]
    await club.join(*people)
    await club.work()
    assert [await club.entered(journey) for journey in journeys] == [people, people]
    assert await way.db.fetchval("select count(*) from executions") == 6


async def test_who_joins_while_a_journey_is_activated_enters_once(way: Way, club: Club) -> None:
    journey = await club.journey()
    contact_id = await way.person()
    async with way.db.transaction() as connection:
        await lists.join(connection, way.organization.id, ENV, club.list_id, [contact_id], way.clock.now())
        moving = asyncio.create_task(club.move(journey, states.activate))
        await until_locked_out(way.db)
    await moving
    await club.work()
    assert (await club.entered(journey), await club.waiting()) == ([contact_id], 0)


async def test_a_long_list_arrives_in_blocks(way: Way, club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "MEMBERS", 2)
    monkeypatch.setattr(turns, "JOINED_EACH", 1)
    people = [await way.person() for _ in range(5)]
    await club.join(*people)
    first, second = await club.journey(), await club.journey()
    for journey in (first, second):
        await club.move(journey, states.activate)
    more = [await way.person() for _ in range(3)]
    await club.join(*more)
    await club.work()
    for journey in (first, second):
        assert set(await club.entered(journey)) == {*people, *more}
    assert await club.waiting() == 0


async def test_nobody_waits_for_a_journey_that_is_being_moved(way: Way, club: Club) -> None:
    moved, free = [await club.journey(status=JourneyStatus.ATIVA) for _ in range(2)]
    contact_id = await way.person()
    await club.join(contact_id)
    async with way.db.transaction() as connection:
        await connection.execute("select from journeys where id = $1 for update", moved.id)
        await club.work()
        assert [await club.entered(journey) for journey in (moved, free)] == [[], [contact_id]]
    await club.work()
    assert [await club.entered(journey) for journey in (moved, free)] == [[contact_id], [contact_id]]


async def test_who_joins_again_and_again_during_a_pause_enters_once(way: Way, club: Club) -> None:
    journey = await club.journey()
    await club.move(journey, states.activate)
    await club.move(journey, states.pause)
    contact_id = await way.person()
    for _ in range(8):
        await club.join(contact_id)
        async with way.db.transaction() as connection:
            await lists.leave(connection, way.organization.id, ENV, [contact_id])
    await club.move(journey, states.activate)
    await club.work()
    assert (await club.entered(journey), await club.waiting()) == ([contact_id], 0)


async def test_who_arrives_at_a_suspended_organization_waits(way: Way, club: Club) -> None:
    journey, contact_id = await club.journey(), await way.person()
    await club.join(contact_id)
    await club.move(journey, states.activate)
    await way.suspend()
    await club.work()
    assert (await club.entered(journey), await club.waiting()) == ([], 1)
    await way.suspend(lifted=True)
    await club.work()
    assert (await club.entered(journey), await club.waiting()) == ([contact_id], 0)
