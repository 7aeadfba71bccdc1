"""What operators see of a number while its actor works (C34.2)."""

from datetime import timedelta
from typing import Any

import pytest

from recado.actors.ops.number_state import NumberState
from recado.actors.ops.number_states import NumberStates
from recado.channels.core.provider import Down, Refused, SlowDown
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.messages.message import WaitReason
from recado.domain.ops.trouble import Trouble
from recado.engine.child import State
from recado.storage.ops.scope import INSTALLATION, Scope


@pytest.fixture
def states(line: Any) -> NumberStates:
    return NumberStates(
        line.db, clock=line.clock, context=line.context, lanes=line.registry._supervisor,
        activity=line.context.sending.activity,
    )  # fmt: skip


async def seen(line: Any, states: NumberStates) -> NumberState:
    found = await states.one(line.organization.id, "test", line.number.id)
    assert found is not None
    return found


async def test_a_number_that_sends_shows_its_pace_and_what_is_left(line: Any, states: NumberStates) -> None:
    await line.queue(400)
    await line.goes_on(3)
    state = await seen(line, states)
    assert (state.actor, state.restarts, state.breaker) == (State.RUNNING, 0, BreakerState.CLOSED)
    assert (state.per_second, state.sent_last_second) == (80.0, 80)
    assert state.sent_last_minute == len(line.provider.sent) == state.day_used
    assert state.due + state.queue.under_way == 400 - len(line.provider.sent)
    assert state.holding is not None
    assert state.holding.reason is WaitReason.RATE
    assert state.lately == (len(line.provider.sent), 0)
    assert state.trouble is Trouble.NONE
    assert state.activity is not None
    minute = int(line.clock.now().timestamp()) // 60
    assert state.activity.series(minute)[-1].p95_ms is not None


async def test_a_refused_message_shows_as_a_failure_of_its_number(line: Any, states: NumberStates) -> None:
    line.provider.answer = lambda message: Refused("invalid_recipient", "no")
    (message_id,) = await line.queue(1)
    await line.goes_on(2)
    state = await seen(line, states)
    assert state.lately == (1, 1)
    assert state.activity is not None
    assert [each.message_id for each in state.activity.failures] == [message_id]
    assert sum(state.errors.values()) == 1
    assert state.trouble is Trouble.DOUBTED
    (calls,) = line.context.sending.activity.connections.values()
    assert calls.success_rate() == 0.0


async def test_a_circuit_that_opens_shows_with_the_moment_of_its_probe(line: Any, states: NumberStates) -> None:
    line.provider.answer = lambda message: Down("connect_failed")
    await line.queue(10)
    await line.goes_on(2)
    state = await seen(line, states)
    assert (state.breaker, state.trouble) == (BreakerState.OPEN, Trouble.DOWN)
    assert state.holding is not None
    assert state.holding.reason is WaitReason.NO_CONNECTION
    assert timedelta() < state.holding.until - line.clock.now() <= timedelta(seconds=5)
    assert state.due == 10


async def test_a_pause_that_the_provider_asks_for_shows(line: Any, states: NumberStates) -> None:
    line.provider.answer = lambda message: SlowDown(30.0)
    await line.queue(3)
    await line.goes_on(2)
    state = await seen(line, states)
    assert state.holding is not None
    assert (state.holding.reason, state.trouble) == (WaitReason.NUMBER_PAUSED, Trouble.HELD)


async def test_an_operators_pause_holds_what_waits_and_its_end_lets_it_go(line: Any, states: NumberStates) -> None:
    await line.set_number(operator_paused_at=line.clock.now())
    await line.queue(5)
    await line.goes_on(2)
    state = await seen(line, states)
    assert state.holding is not None
    assert (state.holding.reason, state.due, line.provider.sent) == (WaitReason.OPERATOR_PAUSED, 5, [])
    await line.set_number(operator_paused_at=None, held_ms=2_000)
    await line.goes_on(2)
    state = await seen(line, states)
    assert (state.holding, state.due, len(line.provider.sent)) == (None, 0, 5)


async def test_a_number_out_of_memory_shows_what_its_actor_knew(line: Any, states: NumberStates) -> None:
    await line.queue(7)
    await line.goes_on(2)
    await line.goes_on(200, step=1.0)
    assert not line.in_memory
    state = await seen(line, states)
    assert (state.actor, state.day_used, state.due) == (State.STOPPED, 7, 0)


async def test_all_numbers_at_once_show_the_same_as_each_alone(line: Any, states: NumberStates) -> None:
    await line.queue(300)
    await line.goes_on(1.5)
    alone = await seen(line, states)
    for scope in (INSTALLATION, Scope(line.organization.id, "test")):
        (every,) = [each for each in (await states.look(scope)).states if each.id == line.number.id]
        names = ("per_second", "sent_last_minute", "day_used", "due", "in_flight", "breaker", "actor", "lately")
        assert [getattr(every, name) for name in names] == [getattr(alone, name) for name in names]
    assert (await states.look(Scope(line.organization.id, "live"))).states == []


async def test_queues_are_noted_for_the_series(line: Any, states: NumberStates) -> None:
    await line.queue(3, due_in=3_600, tell=False)
    await states.note_queues()
    state = await seen(line, states)
    assert state.activity is not None
    assert state.activity.series(int(line.clock.now().timestamp()) // 60)[-1].queued == 3
    assert (state.queue.scheduled, state.due) == (3, 0)
