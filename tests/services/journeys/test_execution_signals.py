"""What happens to a message, or to a contact, reaches the executions that it is about, and no others (C9.6, C9.12)."""

from datetime import timedelta
from typing import Any

import pytest
from tests.services.journeys.conftest import BORN, END, ENDS, HOUR, Way, on, sms, wait

from recado.domain.journeys.execution import Awaited, EndReason, ExecutionStatus
from recado.storage.journeys import executions

SECOND = timedelta(seconds=1)


async def asking(way: Way, signal: str, **fields: Any) -> tuple[Any, str]:
    """An execution that waits for a signal of its message, and the id of that."""
    execution = await way.begin(await way.journey(sms("hello", "ask"), on(signal, "hello", **fields), *ENDS))
    await way.work()
    message_id = way.accepted[-1].id
    waiting = await way.read(execution.key)
    assert (waiting.step_id, waiting.awaited, waiting.awaited_until) == ("ask", Awaited.SIGNAL, None)
    return waiting, message_id


async def left(way: Way, message_id: str, **columns: Any) -> None:
    """The message has left now; `columns` besides."""
    now = way.clock.now()
    await way.db.execute("delete from dispatch where id = $1", message_id)
    changes = {"status": "sent", "sent_at": now, "updated_at": now, **columns}
    assigned = ", ".join(f"{name} = ${place}" for place, name in enumerate(changes, 2))
    await way.db.execute(f"update messages set {assigned} where id = $1", message_id, *changes.values())


async def answer(way: Way, execution: Any) -> tuple[str, str] | None:
    """The condition's line of the trail."""
    found = {step: (result, step) for step, result, _ in await way.trail(execution)}
    return found.get("ask")


async def test_a_signal_within_the_window_is_a_yes_at_once(way: Way) -> None:
    execution, message_id = await asking(way, "entregue")
    await left(way, message_id, delivered_at=way.clock.now() + timedelta(minutes=59))
    await way.clock.advance(59 * 60)
    await way.work()
    assert await answer(way, execution) == ("sim", "ask")


async def test_a_test_hears_of_its_messages_too(way: Way) -> None:
    journey = await way.journey(sms("hello", "ask"), on("entregue", "hello"), *ENDS)
    execution = await way.tried(journey)
    await way.work()
    assert (await way.read(execution.key)).awaited is Awaited.SIGNAL
    await left(way, way.accepted[-1].id, delivered_at=way.clock.now())
    await way.work()
    assert await answer(way, execution) == ("sim", "ask")


async def test_the_window_runs_from_the_departure_and_its_end_is_a_no(way: Way) -> None:
    execution, message_id = await asking(way, "entregue")
    await way.clock.advance(600)
    await left(way, message_id)
    await way.work()
    waiting = await way.read(execution.key)
    assert waiting.awaited_until == waiting.wake_at == BORN + timedelta(minutes=70)
    await way.work(timedelta(minutes=59))
    assert await answer(way, execution) is None
    await way.work(timedelta(minutes=1))
    assert await answer(way, execution) == ("nao", "ask")


async def test_a_message_that_failed_for_certain_is_a_no_and_one_that_may_have_left_is_neither(way: Way) -> None:
    failed, failed_id = await asking(way, "entregue")
    unknown, unknown_id = await asking(way, "entregue")
    now = way.clock.now()
    await left(way, failed_id, status="failed", sent_at=None, failed_at=now, outcome_certain=True)
    await left(way, unknown_id, status="failed", sent_at=None, failed_at=now, called_at=now, outcome_certain=False)
    await way.work()
    assert await answer(way, failed) == ("nao", "ask")
    await way.work(24 * HOUR)
    assert await answer(way, unknown) is None
    await way.work(HOUR)
    assert (await way.read(unknown.key)).motivo is EndReason.SEND_UNDETERMINED
    assert await answer(way, unknown) == ("erro", "ask")


async def test_a_message_under_way_is_no_no(way: Way) -> None:
    execution, message_id = await asking(way, "entregue")
    await way.db.execute("update dispatch set claimed_epoch = 1, claimed_at = $2 where id = $1", message_id, BORN)
    await way.db.execute("update messages set status = 'sending' where id = $1", message_id)
    await way.work()
    assert (await way.read(execution.key)).wake_at == BORN + HOUR
    await way.work(HOUR)
    assert (await way.read(execution.key)).wake_at == BORN + 25 * HOUR


async def test_an_answer_on_the_channel_after_the_departure_is_a_signal(way: Way) -> None:
    execution, message_id = await asking(way, "respondeu")
    early = await way.ids_of_inbound(execution.contact_id, BORN - SECOND)
    await left(way, message_id)
    await way.work()
    assert await answer(way, execution) is None
    await way.clock.advance(60)
    late = await way.ids_of_inbound(execution.contact_id, way.clock.now())
    await way.work()
    assert await answer(way, execution) == ("sim", "ask")
    assert early < late


async def test_what_was_opened_is_read(way: Way) -> None:
    execution, message_id = await asking(way, "lido")
    await left(way, message_id)
    await way.work()
    assert await answer(way, execution) is None
    await way.db.execute("update messages set opened_at = $2 where id = $1", message_id, BORN + SECOND)
    await way.clock.advance(2)
    await way.work()
    assert await answer(way, execution) == ("sim", "ask")


async def test_a_click_is_a_signal_and_the_links_of_a_send_that_is_asked_for_them_are_tracked(way: Way) -> None:
    first = sms("hello", "ask", "See https://example.org/a/very/long/path")
    execution = await way.begin(await way.journey(first, on("clicou", "hello"), *ENDS))
    await way.work()
    await left(way, way.accepted[-1].id)
    assert await way.db.fetchval("select count(*) from tracked_links") == 1
    await way.db.execute("update tracked_links set clicks = 1, first_clicked_at = $1", BORN + SECOND)
    await way.clock.advance(2)
    await way.work()
    assert await answer(way, execution) == ("sim", "ask")


async def test_an_event_of_the_contact_converts(way: Way) -> None:
    execution, message_id = await asking(way, "converteu", evento="paid")
    await left(way, message_id)
    for name, at in (("paid", BORN - SECOND), ("other", BORN + SECOND)):
        await way.event(execution.contact_id, name, at)
    await way.clock.advance(60)
    await way.work()
    assert await answer(way, execution) is None
    await way.event(execution.contact_id, "paid", BORN + SECOND)
    await way.work()
    assert await answer(way, execution) == ("sim", "ask")


async def test_a_send_that_was_left_out_gives_no_signal(way: Way) -> None:
    send = {"id": "hello", "tipo": "enviar", "canal": "rcs", "rcs": {"conteudo": {"text": "Hi"}}, "proximo": "ask"}
    execution = await way.begin(await way.journey(send, on("entregue", "hello"), *ENDS))
    await way.work()
    assert await answer(way, execution) == ("nao", "ask")


@pytest.mark.parametrize("paid", [True, False])
async def test_who_was_sent_nothing_has_the_window_to_convert(way: Way, paid: bool) -> None:
    """Both steps are passed in one turn: nothing tells of the first one but that turn."""
    send = {"id": "hello", "tipo": "enviar", "canal": "rcs", "rcs": {"conteudo": {"text": "Hi"}}, "proximo": "ask"}
    execution = await way.begin(await way.journey(send, on("converteu", "hello", evento="paid"), *ENDS))
    await way.work()
    waiting = await way.read(execution.key)
    assert (waiting.step_id, waiting.awaited, waiting.awaited_until) == ("ask", Awaited.SIGNAL, BORN + HOUR)
    if paid:
        await way.clock.advance(60)
        await way.event(execution.contact_id, "paid", way.clock.now())
        await way.work()
        assert await answer(way, execution) == ("sim", "ask")
    else:
        await way.work(HOUR - SECOND)
        assert await answer(way, execution) is None
        await way.work(SECOND)
        assert await answer(way, execution) == ("nao", "ask")


# What happens to the contact -----------------------------------------------------------------------------------------


async def test_the_goal_ends_the_way_at_once_and_withdraws_what_is_queued(way: Way) -> None:
    journey = await way.journey(sms("hello", "wait"), wait("wait", "end"), END, meta_evento="paid")
    execution, other = await way.begin(journey), await way.begin(journey)
    await way.event(execution.contact_id, "paid", BORN - SECOND)
    await way.event(execution.contact_id, "other", BORN)
    await way.work()
    assert (await way.read(execution.key)).step_id == "wait"
    await way.event(execution.contact_id, "paid", BORN)
    await way.work()
    over = await way.read(execution.key)
    assert (over.status, over.motivo) == (ExecutionStatus.CONCLUIDA, EndReason.GOAL_REACHED)
    assert (await way.read(other.key)).status is ExecutionStatus.ATIVA
    assert await way.db.fetchval("select array_agg(contact_id::text) from messages where status = 'queued'") == [
        other.contact_id
    ]


@pytest.mark.parametrize("status", ["ativa", "pausada"])
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("update contacts set opt_in_status = 'denied' where id = $1", EndReason.OPTED_OUT),
        ("delete from contacts where id = $1", EndReason.CONTACT_DELETED),
    ],
)
async def test_whoever_refuses_or_is_deleted_does_not_wait_for_a_timer(
    way: Way, change: str, reason: EndReason, status: str
) -> None:
    journey = await way.journey(wait("wait", "end"), END)
    execution, other = await way.begin(journey), await way.begin(journey)
    await way.work()
    await way.db.execute("update journeys set status = $1", status)
    await way.db.execute(change, execution.contact_id)
    await way.work()
    assert (await way.read(execution.key)).motivo is reason
    assert (await way.read(other.key)).awaited is Awaited.TIME


async def test_a_wait_is_no_shorter_for_what_its_contact_does(way: Way) -> None:
    execution = await way.begin(await way.journey(wait("wait", "end"), END))
    await way.work()
    await way.ids_of_inbound(execution.contact_id, BORN)
    await way.work(HOUR - SECOND)
    waiting = await way.read(execution.key)
    assert (waiting.step_id, waiting.wake_at) == ("wait", BORN + HOUR)


async def test_nothing_is_noted_of_what_belongs_to_no_journey(way: Way) -> None:
    contact_id = await way.person()
    await way.ids_of_inbound(contact_id, BORN)
    await way.event(contact_id, "paid", BORN)
    await way.db.execute("update messages set status = 'read'")
    await way.db.execute("update contacts set opt_in_status = 'denied'")
    await way.db.execute("delete from contacts")
    assert await way.db.fetchval("select count(*) from execution_signals") == 0


async def test_a_signal_of_an_execution_in_hand_waits_for_that_turn(way: Way) -> None:
    execution, message_id = await asking(way, "entregue")
    async with way.db.transaction() as connection:
        held = await executions.lock(connection, execution.key)
        assert held is not None
        await left(way, message_id, status="delivered", delivered_at=way.clock.now())
        assert (await way.turns.hear()).count == 0
        await executions.save(connection, [held.waiting(Awaited.SIGNAL, None)], [])
    await way.work()
    assert await answer(way, execution) == ("sim", "ask")
    assert await way.db.fetchval("select count(*) from execution_signals") == 0
