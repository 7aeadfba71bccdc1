"""What each message waited for is stored with its departure, in milliseconds by reason (C34.4)."""

import asyncio
from dataclasses import replace
from datetime import time, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from tests.actors.dispatch.number.test_owners import own

from recado.actors.dispatch.lane_messages import Look, TemplateMoved
from recado.actors.dispatch.waits import Waits
from recado.channels.core.provider import Accepted, Down, OutboundMessage, Outcome, Retry, SlowDown
from recado.domain.dispatch.placement import SHARDS
from recado.domain.messages.message import BULK
from recado.domain.templates.template import TemplateStatus
from recado.fronts import held
from recado.services.dispatch.hints import OwnerMoved
from recado.storage.dispatch import dispatch
from recado.storage.messages import message_reads

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

SOON = 1_200  # milliseconds between the end of a hold and a departure, at most: due rows are looked for each second


async def waits(line: "Line", message_id: str) -> dict[str, int]:
    """As they are stored; never longer in all than from when the message was due until it left."""
    message = await message_reads.get(line.db, line.organization.id, "test", message_id)
    assert message is not None
    assert message.sent_at is not None
    due_at = message.scheduled_at or message.created_at
    found = dict(message.waits or {})
    assert sum(found.values()) <= (message.sent_at - due_at) // timedelta(milliseconds=1)
    return found


def accepted(message: OutboundMessage) -> Outcome:
    return Accepted(f"provider-{message.id}")


async def look(line: "Line", after: float) -> None:
    """So many seconds later, what is due is looked for, and has a moment to leave."""
    await line.goes_on(after, step=0.1)
    await dispatch.release_due(line.db, line.clock.now())
    line.tell(Look())
    await line.goes_on(0.5)


async def test_one_that_leaves_at_once_waited_for_nothing(line: "Line") -> None:
    await line.goes_on(2.0)
    [message] = await line.queue(1)
    await line.goes_on(1.0)

    assert await waits(line, message) == {}


async def test_one_that_waits_for_the_pace_says_how_long(line: "Line") -> None:
    await line.goes_on(2.0)
    await line.set_number(per_second=1)
    messages = await line.queue(4)
    await line.goes_on(6.0)

    told = [await waits(line, message) for message in messages]
    assert [each["rate"] for each in told[1:]] == pytest.approx([2_000, 3_000, 4_000], abs=200)
    assert all(set(each) == {"rate"} for each in told)


async def test_a_pause_of_the_number_is_told_from_its_beginning_though_its_lane_left_memory(line: "Line") -> None:
    await line.goes_on(2.0)
    await line.set_number(operator_paused_at=line.clock.now())
    [message] = await line.queue(1)
    await line.goes_on(200.0, step=5.0)
    assert not line.in_memory
    await line.set_number(operator_paused_at=None)
    await line.queue(1)
    await line.goes_on(2.0)

    assert await waits(line, message) == {"operator_paused": pytest.approx(200_000, abs=SOON)}


async def test_of_an_opened_circuit_its_probes_count_too(line: "Line") -> None:
    await line.goes_on(2.0)
    line.provider.answer = lambda message: Down("connect_failed")
    await line.set_number(per_second=10)
    messages = await line.queue(8)
    await line.goes_on(8.0)  # the first probe fails
    line.provider.answer = accepted
    await line.goes_on(12.0)

    for message in messages:
        assert (await waits(line, message))["no_connection"] == pytest.approx(15_000, abs=SOON)


async def test_a_pause_that_the_provider_asks_for_is_told_as_one(line: "Line") -> None:
    await line.goes_on(2.0)
    outcomes: list[Outcome] = [SlowDown(7.0)]
    line.provider.answer = lambda message: outcomes.pop() if outcomes else accepted(message)
    [message] = await line.queue(1)
    await line.goes_on(10.0)

    assert await waits(line, message) == {"number_paused": pytest.approx(7_000, abs=200)}


async def test_a_pause_of_its_batch_is_told_for_those_that_the_lane_never_held_as_well(line: "Line") -> None:
    await line.goes_on(2.0)
    await line.set_number(per_second=1)
    messages = await line.queue(3)
    owner = await own(line, messages)
    line.context.records.owners.paused(owner, line.clock.now())
    await line.goes_on(20.0)
    line.context.records.owners.resumed(owner, held_ms=20_000)
    line.tell(OwnerMoved(owner))
    await line.goes_on(6.0)

    told = [await waits(line, message) for message in messages[1:]]  # of three, one was claimed when the pause began
    assert [each["owner_paused"] for each in told] == pytest.approx([20_000] * 2, abs=SOON)
    assert told[1]["rate"] >= 1_000


async def test_retries_and_what_held_it_between_them_are_summed_up(line: "Line") -> None:
    await line.goes_on(2.0)
    line.provider.answer = lambda message: Retry()
    [message] = await line.queue(1)
    await look(line, 5.1)
    await line.goes_on(10.0, step=0.1)
    await line.set_number(operator_paused_at=line.clock.now())
    await line.goes_on(60.0, step=0.5)
    line.provider.answer = accepted
    await line.set_number(operator_paused_at=None)
    await look(line, 0.1)

    assert [attempt for _, _, attempt in line.provider.calls] == [1, 2, 3]
    assert await waits(line, message) == {
        "operator_paused": pytest.approx(60_000, abs=SOON),
        "retry": pytest.approx(15_000, abs=SOON),
    }


async def test_what_waits_for_the_next_try_says_so(line: "Line") -> None:
    await line.goes_on(2.0)
    line.provider.answer = lambda message: Retry(9.0) if not line.provider.calls[1:] else accepted(message)
    [message] = await line.queue(1)
    await look(line, 9.5)

    assert len(line.provider.calls) == 2
    assert await waits(line, message) == {"retry": pytest.approx(9_000, abs=200)}


async def test_quiet_hours_of_a_class_are_told_for_all_of_it(line: "Line") -> None:
    await line.goes_on(2.0)
    await line.quiet_hours(time(10), time(12))
    messages = await line.queue(3, klass=BULK)
    await line.goes_on(3_650.0, step=5.0)

    for message in messages:
        assert (await waits(line, message))["quiet_hours"] == pytest.approx(3_598_000, abs=2_000)


async def test_a_template_that_is_paused_is_told_for_all_that_wait_for_it(line: "Line") -> None:
    await line.goes_on(2.0)
    await line.set_number(per_second=1)
    messages = await line.queue(3)
    await line.goes_on(0.2)
    await move_template(line, TemplateStatus.PAUSED)
    await line.goes_on(30.0)
    await move_template(line, TemplateStatus.APPROVED)
    await line.goes_on(6.0)

    for message in messages[1:]:
        assert (await waits(line, message))["template_state"] == pytest.approx(30_000, abs=SOON)


async def test_beyond_its_bounds_who_holds_most_forgets_its_oldest(line: "Line") -> None:
    context: Any = line.context
    context.waits = type(context.waits)(most=3, of_one=2)
    line.provider.answer = lambda message: Retry(9.0) if len(line.provider.calls) <= 3 else accepted(message)
    await line.goes_on(2.0)
    messages = await line.queue(3)
    await look(line, 9.5)

    told = [await waits(line, message) for message in messages]
    assert sorted("retry" in each for each in told) == [False, True, True]
    assert all(each.keys() <= {"retry", "rate"} for each in told)


async def moves_to_another_process(line: "Line") -> None:
    """As when its lane is given up here, what is remembered is said over a link, and its next lane begins there."""
    before, context = line.context.waits, line.context
    closed = before.closed_among(range(SHARDS))
    lane = line.registry.get(line.key)
    assert lane is not None
    stopping = asyncio.ensure_future(lane.stop())
    while not stopping.done():
        await line.goes_on(0.1)
    handed, context.waits = before.take(range(SHARDS), closed), Waits()
    for part in held.parts(handed):
        held.add(context.waits, *orjson.loads(orjson.dumps(part)))
    assert not before.any_held
    assert not before.remembers(line.number.id)
    line.tell(Look())


async def test_what_was_closed_for_many_is_told_after_their_number_went_to_another_process(line: "Line") -> None:
    await line.goes_on(2.0)
    await line.set_number(per_second=1)
    messages = await line.queue(3)
    await line.goes_on(0.2)
    await move_template(line, TemplateStatus.PAUSED)
    await line.goes_on(20.0)
    await moves_to_another_process(line)
    await line.goes_on(10.0)
    await move_template(line, TemplateStatus.APPROVED)
    await line.goes_on(6.0)

    for message in messages[1:]:
        assert (await waits(line, message))["template_state"] == pytest.approx(30_000, abs=SOON)


async def test_what_has_ended_and_still_has_a_backlog_is_told_there_too(line: "Line") -> None:
    line.provider.answer = lambda message: SlowDown(20.0) if len(line.provider.calls) == 1 else accepted(message)
    await line.goes_on(2.0)
    messages = await line.queue(400)
    await line.goes_on(23.0)
    await moves_to_another_process(line)
    await line.goes_on(8.0)

    told = await waits(line, messages[-1])
    assert told["number_paused"] == pytest.approx(20_000, abs=SOON)
    assert told.keys() <= {"number_paused", "rate"}


async def test_what_a_message_waited_for_by_itself_goes_with_its_number(line: "Line") -> None:
    line.provider.answer = lambda message: Retry(9.0) if len(line.provider.calls) == 1 else accepted(message)
    await line.goes_on(2.0)
    [message] = await line.queue(1)
    await line.goes_on(3.0)
    await moves_to_another_process(line)
    await look(line, 6.5)

    assert (await waits(line, message))["retry"] == pytest.approx(9_000, abs=SOON)


async def move_template(line: "Line", status: TemplateStatus) -> None:
    await line.db.execute("update templates set status = $2 where id = $1", line.template.id, status.value)
    line.template = replace(line.template, status=status)
    line.directories.templates.clear()
    line.tell(TemplateMoved(line.template.id))
