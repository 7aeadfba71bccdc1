"""What operators see of a number while its actor works (C34.2)."""

from datetime import timedelta
from random import Random
from typing import Any

import orjson
import pytest

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.kept import Kept
from recado.actors.ops.live_number import LiveNumber, live_of, said_of
from recado.actors.ops.number_state import NumberState
from recado.actors.ops.number_states import NumberStates
from recado.actors.ops.provider_states import ProviderState, ProviderStates, accounts_of, said_of_accounts
from recado.channels.core.provider import Down, Refused, SlowDown
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.messages.message import WaitReason
from recado.domain.ops.trouble import Trouble
from recado.domain.senders.sender import SenderKey
from recado.engine.child import State
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor
from recado.services.ops.activity import Activity
from recado.storage.ops.ops import SenderId, SenderQueue
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
    assert state.lately == (len(line.provider.sent), 0, 0)
    assert state.trouble is Trouble.NONE
    minute = int(line.clock.now().timestamp()) // 60
    assert state.hour.series(minute)[-1].p95_ms is not None


async def test_a_refused_message_shows_as_a_failure_of_its_number(line: Any, states: NumberStates) -> None:
    line.provider.answer = lambda message: Refused("invalid_recipient", "no")
    (message_id,) = await line.queue(1)
    await line.goes_on(2)
    state = await seen(line, states)
    assert state.lately == (0, 1, 0)
    assert [each.message_id for each in state.hour.failures] == [message_id]
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
    assert state.hour.series(int(line.clock.now().timestamp()) // 60)[-1].queued == 3
    assert (state.queue.scheduled, state.due) == (3, 0)


class Away:
    """Another process, as a link brings what it says."""

    def __init__(self, states: NumberStates) -> None:
        self._states = states

    async def number(self, sender: SenderKey) -> LiveNumber | None:
        return live_of(orjson.loads(orjson.dumps(said_of(self._states.live_with_hour(sender)))))

    async def numbers(self) -> dict[SenderKey, LiveNumber]:
        return {each: found for each in self._states.lives() if (found := await self.number(each)) is not None}


@pytest.fixture
def elsewhere(line: Any, states: NumberStates) -> NumberStates:
    """Looks from a process that has none of the lanes."""
    nothing: Any = None
    context = LaneContext(line.context.records, nothing, nothing, line.context.moments, 0.0)
    found = NumberStates(
        line.db, clock=line.clock, context=context, activity=Activity(line.clock),
        lanes=Supervisor("lanes", runtime=Runtime(clock=line.clock, random=Random(1))),
    )  # fmt: skip
    found.have_away(Away(states))
    return found


def shown(state: NumberState) -> dict[str, Any]:
    """All of it."""
    return {each: getattr(state, each) for each in NumberState.__slots__ if each != "shown"}


@pytest.mark.parametrize(
    "answer",
    [None, Down("http_503"), SlowDown(), Refused("invalid_recipient", "no")],
    ids=lambda each: type(each).__name__,
)
async def test_a_number_of_another_process_shows_as_it_does_there(
    line: Any, states: NumberStates, elsewhere: NumberStates, answer: Any
) -> None:
    if answer is not None:
        line.provider.answer = lambda message: answer
    await line.queue(400)
    await line.goes_on(3)
    scope = Scope(line.organization.id, "test")
    expected = shown(await seen(line, states))
    assert expected["sent_last_minute"] or answer is not None
    assert shown(await seen(line, elsewhere)) == expected
    (listed,) = (await elsewhere.look(scope)).states
    before = shown(listed)
    assert before == shown((await states.look(scope)).states[0])
    await line.goes_on(2)
    (listed,) = (await elsewhere.look(scope)).states
    assert shown(listed) == shown((await states.look(scope)).states[0])
    assert shown(listed) != before or answer is not None


async def test_a_number_that_left_memory_there_still_shows_its_errors(
    line: Any, states: NumberStates, elsewhere: NumberStates
) -> None:
    line.provider.answer = lambda message: Refused("invalid_recipient", "no")
    await line.queue(5)
    await line.goes_on(2)
    await line.goes_on(120, step=1.0)
    assert not line.in_memory
    scope = Scope(line.organization.id, "test")
    (listed,) = (await elsewhere.look(scope)).states
    assert sum(listed.errors.values()) == 5
    assert shown(listed) == shown((await states.look(scope)).states[0])


class AccountsAway:
    """Another process, likewise."""

    def __init__(self, states: ProviderStates) -> None:
        self._states = states

    async def accounts(self, scope: Scope, most: int) -> list[list[ProviderState]]:
        said = [said_of_accounts(each) for each in await self._states.accounts(scope, most)]
        return [[accounts_of(each) for each in orjson.loads(orjson.dumps(said))]]


@pytest.mark.parametrize("answer", [None, Down("http_503")], ids=lambda each: type(each).__name__)
async def test_accounts_of_another_process_count_with_those_here(line: Any, answer: Any) -> None:
    async def no_queues(_: Scope) -> dict[SenderId, SenderQueue]:
        return {}

    def looks(context: LaneContext, lanes: Supervisor, activity: Activity) -> ProviderStates:
        queues = Kept(no_queues, clock=line.clock)
        return ProviderStates(line.context.records, context=context, lanes=lanes, activity=activity, queues=queues)

    def shown(states: list[ProviderState]) -> list[Any]:
        return [
            (each.channel, each.in_flight, each.circuit, each.troubled, len(each.calls), each.calls.success_rate())
            for each in states
        ]

    if answer is not None:
        line.provider.answer = lambda message: answer
    await line.queue(5)
    await line.goes_on(2)
    there = looks(line.context, line.registry._supervisor, line.context.sending.activity)
    nothing: Any = None
    here = looks(
        LaneContext(line.context.records, nothing, nothing, line.context.moments, 0.0),
        Supervisor("lanes", runtime=Runtime(clock=line.clock, random=Random(1))),
        Activity(line.clock),
    )
    scope = Scope(line.organization.id, "test")
    before = shown(await here.of(scope))
    here.have_away(AccountsAway(there))
    assert shown(await here.of(scope)) == shown(await there.of(scope)) != before
    assert shown(await here.of(Scope("org_other", "test"))) == before
    there.have_away(AccountsAway(there))
    twice, _ = await there.of(scope)
    (once,) = await there.accounts(scope, 10_000)
    assert (len(twice.calls), twice.troubled) == (2 * len(once.calls), 2 * once.troubled)
    assert twice.troubled or answer is None
