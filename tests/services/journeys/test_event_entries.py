"""Customer events bring their contacts into the journeys that they trigger (C9.7, C21.7)."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.people import insert_people
from tests.services.journeys.conftest import END, Way
from tests.storage.journeys.rows import insert_journey
from tests.waiting import until_locked_out

from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CONTACT, CUSTOMER_EVENT
from recado.domain.events.customer_event import ContactKeys, NewCustomerEvent
from recado.domain.journeys.entries import TOOK_OVER
from recado.domain.journeys.graph import Reentry
from recado.domain.journeys.journey import JourneyStatus
from recado.services.journeys.event_entries import EventEntries
from recado.services.journeys.execution_turns import Turn
from recado.storage.core.connections.postgres import Connection
from recado.storage.events import customer_events
from recado.storage.journeys import entries, event_entries, states
from recado.storage.journeys.entries import Begin
from recado.storage.journeys.event_entries import EventEntry
from recado.storage.journeys.journeys import JOURNEYS, Journey

LIVE = "live"
HOUR = timedelta(hours=1)


class Shop:
    """An organization that tells what its customers do."""

    def __init__(self, way: Way) -> None:
        self.way = way
        self.entries = EventEntries(way.db, clock=way.clock, ids=way.ids, taking=way.turns)

    async def customer(self) -> str:
        known = await self.way.db.fetchval("select count(*) from contacts")
        given = [{"id": self.way.ids.new(CONTACT)}]
        (contact_id,) = await insert_people(self.way.db, self.way.organization.id, LIVE, given, first=known + 1)
        return contact_id

    async def journey(self, event: str = "paid", **changes: Any) -> Journey:
        fields = {
            "env": LIVE,
            "gatilho": {"tipo": "evento", "nome": event},
            "ativada_em": self.way.clock.now(),
            **changes,
        }
        return await self.way.journey(END, **fields)

    async def tell(self, contact_id: str | None, event: str = "paid", **changes: Any) -> NewCustomerEvent:
        """An event, a second after what was before."""
        await self.way.clock.advance(1)
        event_id = self.way.ids.new(CUSTOMER_EVENT)
        new = NewCustomerEvent(
            **{
                "organization_id": self.way.organization.id, "env": LIVE, "id": event_id, "event_id": f"of {event_id}",
                "name": event, "contact": ContactKeys(contact_id=contact_id), "occurred_at": self.way.clock.now(),
                "window": HOUR, "value": None, "currency": "BRL", "properties": None, **changes,
            }
        )  # fmt: skip
        async with self.way.db.hot.transaction() as connection:
            await customer_events.store(connection, [new])
        return new

    async def work(self) -> None:
        turn = Turn(1)
        while turn.count or turn.after:
            turn = await self.entries.take(turn.after)

    async def entered(self) -> list[tuple[str, str]]:
        """Journey and contact of each execution, in their order."""
        rows = await self.way.db.fetch("select journey_id, contact_id from executions order by id")
        return [(row["journey_id"], row["contact_id"]) for row in rows]

    async def left(self) -> int:
        count: int = await self.way.db.fetchval("select count(*) from event_entries")
        return count


@pytest.fixture
def shop(way: Way) -> Shop:
    return Shop(way)


async def test_an_event_brings_its_contact_in_once_with_what_it_tells(way: Way, shop: Shop) -> None:
    journey, contact_id = await shop.journey(), await shop.customer()
    told = await shop.tell(contact_id, properties='{"sku":"A-7","name":"x"}', value=12)
    await shop.work()
    await shop.work()
    assert await shop.entered() == [(journey.id, contact_id)]
    row = await way.db.fetchrow("select * from executions")
    assert (row["origem"], row["versao"], row["motivo"], row["ended_at"]) == ("evento", 1, "fim", way.clock.now())
    execution = await way.read((way.organization.id, LIVE, journey.id, row["id"]))
    assert execution.entrada == {
        "sku": "A-7", "name": "paid", "value": 12.0, "currency": "BRL", "eventId": told.event_id,
    }  # fmt: skip
    assert await shop.left() == 0


async def test_one_event_opens_several_journeys_and_each_by_its_rules(way: Way, shop: Shop) -> None:
    contact_id = await shop.customer()
    once = await shop.journey()
    again = await shop.journey(reentrada=Reentry.APOS_CONCLUIR, intervalo_reentrada_horas=1)
    await shop.journey("seen")
    await shop.tell(contact_id)
    await shop.work()
    both = sorted([(once.id, contact_id), (again.id, contact_id)])
    assert sorted(await shop.entered()) == both
    await way.db.execute("update executions set status = 'concluida', wake_at = null")
    await way.clock.advance(3_600)
    await shop.tell(contact_id)
    await shop.work()
    assert sorted(await shop.entered()) == sorted([*both, (again.id, contact_id)])


async def test_what_brings_nobody_in(way: Way, shop: Shop) -> None:
    contact_id = await shop.customer()
    await way.clock.advance(100 * 3_600)
    began = way.clock.now()
    await shop.journey(ativada_em=began - 90 * HOUR)
    await shop.tell(contact_id, occurred_at=began - 73 * HOUR)
    await shop.tell(contact_id, "other")
    await shop.tell(None, contact=ContactKeys(external_id="nobody"))
    await way.journey(END, gatilho={"tipo": "evento", "nome": "paid"}, ativada_em=began)
    await shop.tell(await way.person(), env="test")
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([], 0)
    later = await shop.journey("later")
    await shop.tell(contact_id, "later", occurred_at=later.ativada_em)
    await shop.work()
    assert await shop.entered() == []
    await shop.tell(contact_id, "later")
    await shop.work()
    assert await shop.entered() == [(later.id, contact_id)]


@pytest.mark.parametrize(
    ("changes", "enters"),
    [
        ({"status": JourneyStatus.RASCUNHO, "ativada_em": None}, False),
        ({"status": JourneyStatus.PAUSADA}, False),
        ({"status": JourneyStatus.PAUSADA, "pausada_por": {"motivo": "saldo_insuficiente"}}, True),
        ({"entradas_encerradas": True}, False),
        ({"status": JourneyStatus.ARQUIVADA}, False),
    ],
)
@pytest.mark.parametrize("at", ["the event", "its turn"])
async def test_the_state_of_the_journey_decides(
    way: Way, shop: Shop, changes: dict[str, Any], enters: bool, at: str
) -> None:
    contact_id = await shop.customer()
    if at == "the event":
        await shop.journey(**changes)
        await shop.tell(contact_id)
    else:
        journey = await shop.journey()
        await shop.tell(contact_id)
        other = await shop.journey("other", **changes)
        await way.db.execute(
            "update journeys j set status = o.status, pausada_por = o.pausada_por,"
            " entradas_encerradas = o.entradas_encerradas from journeys o where j.id = $1 and o.id = $2",
            journey.id, other.id,
        )  # fmt: skip
    await shop.work()
    assert (len(await shop.entered()), await shop.left()) == (enters, 0)


class Versions:
    """A journey and the draft that is to take its place."""

    def __init__(self, shop: Shop, old: Journey, new: Journey) -> None:
        self.shop, self.old, self.new = shop, old, new

    async def take_over(self) -> None:
        way = self.shop.way
        async with way.db.transaction() as connection:
            await states.lock_chain(connection, self.new)
            before = await JOURNEYS.get_locked(connection, way.organization.id, LIVE, self.new.id)
            assert before is not None
            await states.activate(connection, before, way.clock.now())


@pytest.fixture
async def versions(shop: Shop) -> Versions:
    old = await shop.journey()
    new = await shop.journey(
        chain_id=old.id, versao=2, versao_de=old.id, status=JourneyStatus.RASCUNHO, ativada_em=None
    )
    return Versions(shop, old, new)


async def test_an_event_that_was_told_of_a_version_enters_the_one_that_took_its_place(
    shop: Shop, versions: Versions
) -> None:
    contact_id = await shop.customer()
    await shop.tell(contact_id)
    await shop.way.clock.advance(1)
    await versions.take_over()
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([(versions.new.id, contact_id)], 0)


async def test_an_event_of_which_a_version_takes_over_during_its_turn_enters_once(
    shop: Shop, versions: Versions, monkeypatch: pytest.MonkeyPatch
) -> None:
    contact_id, looked_up = await shop.customer(), event_entries.journeys_of
    await shop.tell(contact_id)

    async def taken_over(*asked: Any) -> Any:
        found = await looked_up(*asked)
        monkeypatch.setattr(event_entries, "journeys_of", looked_up)
        await versions.take_over()
        return found

    monkeypatch.setattr(event_entries, "journeys_of", taken_over)
    assert (await shop.entries.take()).count == 0
    assert (await shop.entered(), await shop.left()) == ([], 1)
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([(versions.new.id, contact_id)], 0)


@pytest.mark.parametrize(
    ("seconds", "enters"), [(0, True), (TOOK_OVER.total_seconds() - 2, True), (TOOK_OVER.total_seconds(), False)]
)
async def test_what_occurred_before_a_version_took_over_enters_it_if_it_is_told_by_then(
    shop: Shop, versions: Versions, seconds: float, enters: bool
) -> None:
    contact_id = await shop.customer()
    await shop.way.clock.advance(10)
    occurred_at = shop.way.clock.now()
    await versions.take_over()
    await shop.way.clock.advance(seconds)
    await shop.tell(contact_id, occurred_at=occurred_at)
    await shop.work()
    assert (len(await shop.entered()), await shop.left()) == (enters, 0)


@pytest.mark.parametrize("before", ["its activation", "a person's pause"])
async def test_what_the_version_before_would_not_have_taken_enters_the_next_one_neither(
    shop: Shop, versions: Versions, before: str
) -> None:
    contact_id = await shop.customer()
    if before == "its activation":
        await shop.tell(contact_id, occurred_at=versions.old.ativada_em)
    else:
        await shop.tell(contact_id)
        await shop.way.db.execute("update journeys set status = 'pausada' where id = $1", versions.old.id)
    await versions.take_over()
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([], 0)


@pytest.mark.parametrize("trigger", ['{"tipo": "evento", "nome": "left"}', '{"tipo": "api"}'])
async def test_what_occurred_under_a_version_with_another_trigger_enters_nothing(
    shop: Shop, versions: Versions, trigger: str
) -> None:
    contact_id = await shop.customer()
    await shop.way.db.execute("update journeys set gatilho = $2 where id = $1", versions.old.id, trigger)
    await shop.way.clock.advance(10)
    occurred_at = shop.way.clock.now()
    await versions.take_over()
    await shop.tell(contact_id, occurred_at=occurred_at)
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([], 0)


async def test_who_has_entered_a_version_enters_the_next_one_by_no_event_of_before(
    shop: Shop, versions: Versions
) -> None:
    contact_id = await shop.customer()
    await shop.tell(contact_id)
    await shop.work()
    await shop.tell(contact_id)
    await versions.take_over()
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([(versions.old.id, contact_id)], 0)


async def test_events_of_a_suspended_organization_wait(shop: Shop) -> None:
    journey, contact_id = await shop.journey(), await shop.customer()
    await shop.tell(contact_id)
    await shop.way.suspend()
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([], 1)
    await shop.way.suspend(lifted=True)
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([(journey.id, contact_id)], 0)


async def test_more_journeys_than_a_turn_opens_are_all_asked_in_the_order_of_the_events(
    way: Way, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventEntries, "most", 4)
    journeys = [await shop.journey() for _ in range(7)]
    people = [await shop.customer() for _ in range(3)]
    for contact_id in people:
        await shop.tell(contact_id)
    assert (await shop.entries.take()).count == 1
    assert len(await shop.entered()) == 4
    assert await shop.left() == 3
    await shop.work()
    wanted = [(journey.id, contact_id) for contact_id in people for journey in journeys]
    assert (await shop.entered(), await shop.left()) == (wanted, 0)


async def test_an_event_that_fails_keeps_no_other_from_its_turn(
    way: Way, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    journey, bad, good = await shop.journey(), await shop.customer(), await shop.customer()
    for contact_id in (bad, good):
        await shop.tell(contact_id)
    enter = entries.enter

    async def failing(connection: Any, organization_id: str, env: str, wanted: Sequence[Any], begin: Any) -> Any:
        if bad in [each.contact_id for each in wanted]:
            raise ValueError("an entry of this test")
        return await enter(connection, organization_id, env, wanted, begin)

    monkeypatch.setattr(entries, "enter", failing)
    with capture_logs() as logs:
        await shop.work()
    assert (await shop.entered(), await shop.left()) == ([(journey.id, good)], 0)
    assert [line["event"] for line in logs] == ["entries_taken_one_by_one", "entry_failed"]


async def test_each_organization_has_its_share_of_the_entries_of_a_turn(
    way: Way, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(EventEntries, "most", 4)
    crowd = [await shop.journey() for _ in range(6)]
    people = [await shop.customer() for _ in range(3)]
    other = "org_~" + "0" * 20  # behind it
    behind = await insert_journey(
        way.db, organization_id=other, env=LIVE, gatilho={"tipo": "evento", "nome": "paid"}, ativada_em=way.clock.now()
    )
    (single,) = await insert_people(way.db, other, LIVE, [{"id": way.ids.new(CONTACT)}], first=100)
    for contact_id in people:
        await shop.tell(contact_id)
    await shop.tell(single, organization_id=other)
    await shop.entries.take()
    entered = await shop.entered()
    assert (behind.id, single) in entered
    assert len(entered) == 3
    await shop.work()
    assert (len(await shop.entered()), await shop.left()) == (len(crowd) * len(people) + 1, 0)


async def test_an_event_does_not_wait_for_a_journey_that_is_being_moved(way: Way, shop: Shop) -> None:
    contact_id = await shop.customer()
    moved, free = await shop.journey(), await shop.journey()
    await shop.tell(contact_id)
    async with way.db.transaction() as connection:
        await connection.execute("select from journeys where id = $1 for update", moved.id)
        assert (await shop.entries.take()).count == 0
        assert await shop.entered() == [(free.id, contact_id)]
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([(free.id, contact_id), (moved.id, contact_id)], 0)


async def test_many_events_of_one_contact_at_once_bring_it_in_once(way: Way, shop: Shop) -> None:
    journey, contact_id, other = await shop.journey(), await shop.customer(), await shop.customer()
    for _ in range(12):
        await shop.tell(contact_id)
    await shop.tell(other)
    await shop.work()
    assert (await shop.entered(), await shop.left()) == ([(journey.id, contact_id), (journey.id, other)], 0)


class OneEvent(EventEntries):
    """Turns of one event. Between `entered` and `commit` nothing of it is seen by others; `undone`: it never is."""

    def __init__(self, way: Way, number: int, *, undone: bool = False) -> None:
        super().__init__(way.db, clock=way.clock, ids=way.ids, taking=way.turns)
        self._number = number
        self._undone = undone
        self.entered = asyncio.Event()
        self.commit = asyncio.Event()

    async def claim(self, connection: Connection, after: str) -> list[EventEntry]:
        return await self.claim_one(connection, self._number)

    async def enter(self, connection: Connection, claimed: Sequence[EventEntry], begin: Begin) -> int:
        done = await super().enter(connection, claimed, begin)
        self.entered.set()
        await self.commit.wait()
        if self._undone:
            raise Unavailable
        return done


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("undone", [False, True])
async def test_of_two_events_whose_turns_are_under_way_at_once_one_brings_the_contact_in(
    way: Way, shop: Shop, order: tuple[int, int], again: bool, undone: bool
) -> None:
    """Whichever began first, and the other one where that is undone; also where the contact has entered before."""
    journey = await shop.journey(reentrada=Reentry.APOS_CONCLUIR, intervalo_reentrada_horas=1)
    contact_id = await shop.customer()
    if again:
        await shop.tell(contact_id)
        await shop.work()
        await way.db.execute("update executions set status = 'concluida', wake_at = null")
        await way.clock.advance(3_600)
    told = [await shop.tell(contact_id), await shop.tell(contact_id)]
    numbers = {row["event_id"]: row["id"] for row in await way.db.fetch("select id, event_id from event_entries")}
    held, other = (numbers[told[place].event_id] for place in order)
    first, second = OneEvent(way, held, undone=undone), OneEvent(way, other)
    second.commit.set()
    turn = asyncio.create_task(first.take())
    await first.entered.wait()
    racing = asyncio.create_task(second.take())
    await until_locked_out(way.db)
    assert not racing.done()
    first.commit.set()
    await asyncio.gather(turn, racing, return_exceptions=undone)
    assert await shop.entered() == [(journey.id, contact_id)] * (2 if again else 1)
    entry = await way.db.fetchval("select entrada ->> 'eventId' from executions order by id desc limit 1")
    assert entry == told[order[1 if undone else 0]].event_id
    assert await shop.left() == undone
    await shop.work()
    assert (len(await shop.entered()), await shop.left()) == (2 if again else 1, 0)
