"""Steps are counted as executions pass them, and their messages by what comes of them: once, and no test (C9.10)."""

from datetime import timedelta
from typing import Any

from tests.services.journeys.conftest import BORN, END, ENDS, ENV, HOUR, Way, on, sms, wait
from tests.services.journeys.test_execution_signals import left
from tests.storage.journeys.rows import new_entry

from recado.domain.core.ids import CUSTOMER_EVENT
from recado.domain.journeys.execution import EndReason, ExecutionOrigin
from recado.domain.journeys.step_numbers import StepNumbers
from recado.storage.journeys import executions, step_counts
from recado.storage.journeys.entries import begin_test
from recado.storage.journeys.journeys import Journey

MINUTE = timedelta(minutes=1)
_EVENT = """
insert into customer_events (organization_id, env, event_id, id, name, contact_id, occurred_at, currency, journey_id,
    journey_step_id)
values ($1, $2, $3::text, $3::text, 'paid', $4, $5, 'BRL', $6, $7)
"""


async def numbers(way: Way, journey: Journey, step_id: str) -> StepNumbers:
    found = await step_counts.of_journey(way.db, (journey.organization_id, ENV, journey.id))
    return StepNumbers(found.get(step_id, {}))


async def shown(way: Way, journey: Journey, step_id: str) -> tuple[int, int, int, int, int]:
    """Who came, stands there, passed it, left it out, and failed there."""
    found = await numbers(way, journey, step_id)
    return (found.entered, found.waiting, found.passed, found.skipped, found.errors)


async def messages(way: Way, journey: Journey, step_id: str = "hello") -> dict[str, int]:
    """What came of the messages, without what did not."""
    found = (await numbers(way, journey, step_id)).messages()
    return {name: count for name, count in found.items() if count}


async def changed(way: Way, message_id: str, **columns: Any) -> None:
    assigned = ", ".join(f"{name} = ${place}" for place, name in enumerate(columns, 2))
    await way.db.execute(f"update messages set {assigned} where id = $1", message_id, *columns.values())
    await way.work()


async def test_a_step_counts_who_came_and_what_became_of_them(way: Way) -> None:
    journey = await way.journey(sms("hello", "wait"), wait("wait", "end"), END)
    ways = [await way.begin(journey) for _ in range(3)]
    assert await shown(way, journey, "hello") == (3, 3, 0, 0, 0)
    await way.work()
    assert await shown(way, journey, "hello") == (3, 0, 3, 0, 0)
    assert await shown(way, journey, "wait") == (3, 3, 0, 0, 0)
    assert await shown(way, journey, "end") == (0, 0, 0, 0, 0)
    async with way.db.transaction() as connection:
        execution = await executions.lock(connection, ways[0].key)
        assert execution is not None
        await executions.save(connection, [execution.ended(EndReason.CANCELED_BY_CALLER, BORN)], [])
    assert await shown(way, journey, "wait") == (3, 2, 0, 0, 0)
    await step_counts.fold(way.db, block=2)
    assert await way.db.fetchval("select count(*) from step_count_changes") == 0
    await way.work(HOUR)
    assert await shown(way, journey, "wait") == (3, 0, 2, 0, 0)
    assert await shown(way, journey, "end") == (2, 0, 2, 0, 0)


async def test_ways_and_steps_that_are_left_out_are_counted(way: Way) -> None:
    branches = [{"nome": "erro", "peso": 1, "proximo": "hello"}, {"nome": "b", "peso": 1, "proximo": "hello"}]
    split = {"id": "split", "tipo": "dividir", "ramos": branches}
    city = {"id": "ask", "tipo": "condicao", "campo": "name", "operador": "igual", "valor": "Ana"}
    send = {"id": "hello", "tipo": "enviar", "canal": "rcs", "rcs": {"conteudo": {"text": "Hi"}}, "proximo": "ask"}
    journey = await way.journey(split, send, {**city, "sim": "yes", "nao": "no"}, *ENDS)
    for name in ("Ana", "Ana", "Eva"):
        await way.begin(journey, await way.person(name=name))
    await way.work()
    taken = await numbers(way, journey, "split")
    assert taken.branch("erro") + taken.branch("b") == 3
    assert await shown(way, journey, "split") == (3, 0, 3, 0, 0)
    assert await shown(way, journey, "hello") == (3, 0, 0, 3, 0)
    asked = await numbers(way, journey, "ask")
    assert (asked.result("sim"), asked.result("nao")) == (2, 1)
    assert (await shown(way, journey, "yes"), await shown(way, journey, "no")) == ((2, 0, 2, 0, 0), (1, 0, 1, 0, 0))


async def test_what_comes_of_a_message_is_counted_once_however_often_it_is_told(way: Way) -> None:
    journey = await way.journey(sms("hello", "wait"), wait("wait", "end"), END)
    for _ in range(2):
        await way.begin(journey)
    await way.work()
    first, second = (new.id for new in way.accepted)
    await left(way, first)
    await way.work()
    assert await messages(way, journey) == {"enviadas": 1}
    await left(way, second)
    await changed(way, first, status="delivered", delivered_at=BORN)
    assert await messages(way, journey) == {"enviadas": 2, "entregues": 1}
    await changed(way, first, status="read", read_at=BORN)
    await changed(way, first, status="read")
    assert await messages(way, journey) == {"enviadas": 2, "entregues": 1, "lidas": 1}


async def test_a_failure_that_was_none_is_taken_back(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    await way.begin(journey)
    await way.work()
    message_id = way.accepted[-1].id
    await left(way, message_id, status="failed", sent_at=None, failed_at=BORN, outcome_certain=False)
    await way.work()
    assert await messages(way, journey) == {"falhas": 1}
    await changed(way, message_id, status="sent", failed_at=None, sent_at=BORN)
    assert await messages(way, journey) == {"enviadas": 1}


async def test_a_click_counts(way: Way) -> None:
    text = "See https://example.org/a/very/long/path"
    journey = await way.journey(sms("hello", "ask", text), on("clicou", "hello"), *ENDS)
    await way.begin(journey)
    await way.work()
    await left(way, way.accepted[-1].id)
    await way.db.execute("update tracked_links set clicks = 1, first_clicked_at = $1", BORN)
    await way.work()
    assert await messages(way, journey) == {"enviadas": 1, "clicadas": 1}


async def test_an_answer_counts_once_also_when_the_execution_is_over(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    execution, other = await way.begin(journey), await way.begin(journey)
    await way.work()
    assert (await way.read(execution.key)).motivo is EndReason.FINISHED
    message_ids = {new.contact_id: new.id for new in way.accepted}
    await way.ids_of_inbound(execution.contact_id, BORN - MINUTE)
    for contact_id in (execution.contact_id, other.contact_id):
        await left(way, message_ids[contact_id])
    await way.work()
    assert await messages(way, journey) == {"enviadas": 2}
    await way.clock.advance(60)
    for _ in range(2):
        await way.ids_of_inbound(execution.contact_id, way.clock.now())
        await way.work()
    assert await messages(way, journey) == {"enviadas": 2, "respondidas": 1}
    await changed(way, message_ids[execution.contact_id], status="delivered", delivered_at=BORN)
    assert await messages(way, journey) == {"enviadas": 2, "entregues": 1, "respondidas": 1}
    await way.clock.advance(timedelta(days=31).total_seconds())
    await way.ids_of_inbound(other.contact_id, way.clock.now())
    await way.work()
    assert (await messages(way, journey))["respondidas"] == 1


async def test_each_event_that_is_attributed_to_a_message_is_a_conversion(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    execution = await way.begin(journey)
    for attributed in ((journey.id, "hello"), (journey.id, "hello"), (None, None)):
        event_id = way.ids.new(CUSTOMER_EVENT)
        await way.db.execute(_EVENT, way.organization.id, ENV, event_id, execution.contact_id, BORN, *attributed)
    assert await messages(way, journey) == {"conversoes": 2}


async def test_nothing_of_a_test_is_counted(way: Way) -> None:
    journey = await way.journey(sms("hello", "end"), END)
    contact_id = await way.person()
    entry = new_entry(contact_id, journey, at=BORN, origin=ExecutionOrigin.TEST)
    await begin_test(way.db, way.organization.id, ENV, entry, hurried=True)
    await way.work()
    message_id = way.accepted[-1].id
    await left(way, message_id)
    await way.clock.advance(60)
    await way.ids_of_inbound(contact_id, way.clock.now())
    await way.work()
    assert await step_counts.of_journey(way.db, (way.organization.id, ENV, journey.id)) == {}
