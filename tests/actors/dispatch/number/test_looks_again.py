"""A look at numbers that were looked at before shows what a first look would, and costs what has moved (C34.1)."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from recado.actors.ops import number_states as module
from recado.actors.ops.number_state import NumberReader
from recado.actors.ops.number_states import NumberStates
from recado.actors.ops.scope_numbers import ScopeLook
from recado.channels.core.provider import Accepted, Down, OutboundMessage, Refused, SlowDown
from recado.domain.messages.message import BULK, Cause, FailureCode
from recado.domain.senders.number import MessagingTier
from recado.http.routes.ops.ops_views import number_state_view
from recado.services.ops.activity import LAST_FALLEN
from recado.storage.access import organizations
from recado.storage.dispatch.settlements import Failed
from recado.storage.ops.scope import INSTALLATION, Scope
from recado.storage.senders import numbers


def takes(message: OutboundMessage) -> Accepted:
    return Accepted(f"provider-{message.id}")


class Watcher:
    """Looks again and again, and beside that each time for the first time."""

    def __init__(self, line: Any, scope: Scope) -> None:
        self.line = line
        self.scope = scope
        self.again = self.first_time()

    def first_time(self) -> NumberStates:
        line = self.line
        return NumberStates(
            line.db, clock=line.clock, context=line.context, lanes=line.registry._supervisor,
            activity=line.context.sending.activity,
        )  # fmt: skip

    async def agree(self) -> None:
        await self.line.goes_on(0)  # what it does just now would show in one of them alone
        self.again.queues.forget(self.scope)
        self.again.forget(self.scope)
        again, first = await self.again.look(self.scope), await self.first_time().look(self.scope)
        assert self.shown(again) == self.shown(first)
        assert again.sums == first.sums

    def shown(self, look: ScopeLook) -> list[dict[str, Any]]:
        now = self.line.clock.now()
        return [number_state_view(state, now) for state in look.states]

    async def goes_on(self, seconds: int, step: int = 1) -> None:
        for _ in range(0, seconds, step):
            await self.agree()
            await self.line.goes_on(step, step=0.25 if step == 1 else step)
        await self.agree()


@pytest.fixture(params=["environment", "installation"])
def watcher(line: Any, request: pytest.FixtureRequest) -> Watcher:
    return Watcher(line, INSTALLATION if request.param == "installation" else Scope(line.organization.id, "test"))


async def sends_and_rests(line: Any, watcher: Watcher) -> None:
    await line.queue(200)
    await watcher.goes_on(5)
    await line.queue(3)
    await watcher.goes_on(66, step=3)
    await watcher.goes_on(200, step=20)
    assert not line.in_memory
    await line.queue(2)
    await watcher.goes_on(3)


async def fails(line: Any, watcher: Watcher) -> None:
    line.provider.answer = lambda message: Refused("invalid_recipient", "no")
    await line.queue(3)
    await watcher.goes_on(3)
    await watcher.goes_on(330, step=30)


async def fails_late(line: Any, watcher: Watcher) -> None:
    await line.queue(1)
    await watcher.goes_on(70, step=10)
    cause = Cause(FailureCode.PROVIDER_ERROR, "a report said so")
    failed = Failed(
        line.organization.id, "test", "chatapp", "msg_1", cause, line.clock.now(), False, sender_id=line.number.id
    )
    line.context.sending.activity.ended_late([failed])
    await watcher.goes_on(2)
    line.context.sending.activity.ended_late([failed] * (LAST_FALLEN + 1))
    await watcher.goes_on(2)


async def loses_its_provider(line: Any, watcher: Watcher) -> None:
    line.provider.answer = lambda message: Down("connect_failed")
    await line.queue(6)
    await watcher.goes_on(12)
    line.provider.answer = takes
    await watcher.goes_on(12)


async def is_asked_to_slow_down(line: Any, watcher: Watcher) -> None:
    line.provider.answer = lambda message: SlowDown(5.0)
    await line.queue(3)
    await watcher.goes_on(3)
    line.provider.answer = takes
    await watcher.goes_on(8)


async def is_changed(line: Any, watcher: Watcher) -> None:
    await line.queue(4)
    await watcher.goes_on(3)
    await line.set_number(operator_paused_at=line.clock.now(), display_phone="+5511333334444")
    await watcher.goes_on(2)
    await line.queue(4)
    await watcher.goes_on(2)
    await line.set_number(operator_paused_at=None, per_second=1, messaging_tier=MessagingTier.TIER_250)
    await watcher.goes_on(8)


async def is_suspended(line: Any, watcher: Watcher) -> None:
    await watcher.goes_on(2)
    for status in (organizations.SUSPENDED, organizations.ACTIVE):
        line.organization = await organizations.save(
            line.db, line.organization, replace(line.organization, status=status), line.clock.now()
        )
        line.directories.organizations.clear()
        await watcher.goes_on(2)


async def is_restarted(line: Any, watcher: Watcher) -> None:
    await line.queue(2)
    await watcher.goes_on(65, step=5)
    await line.registry._supervisor.restart_child(line.registry._supervisor.find(line.key))
    await watcher.goes_on(3)


async def comes_and_goes(line: Any, watcher: Watcher) -> None:
    await watcher.goes_on(1)
    await line.db.execute(
        "insert into numbers select (jsonb_populate_record(n, jsonb_build_object('id', 'num_' || repeat('0', 21)))).*"
        " from numbers n where id = $1",
        line.number.id,
    )
    await watcher.goes_on(1)
    assert (await watcher.again.look(watcher.scope)).sums[0] == 2
    await numbers.delete(line.db, line.number, line.clock.now())
    await watcher.goes_on(2)
    assert (await watcher.again.look(watcher.scope)).sums[0] == 1


async def waits(line: Any, watcher: Watcher) -> None:
    await line.queue(2, due_in=5)
    await line.queue(2, klass=BULK, due_in=8, tell=False)
    await watcher.goes_on(12)


async def leaves_its_day_out_of_memory(line: Any, watcher: Watcher) -> None:
    await line.queue(3)
    await watcher.goes_on(200, step=20)
    assert not line.in_memory
    await line.db.execute("update sender_minutes set minute = minute - interval '1 day' + interval '50 seconds'")
    for _ in range(3):  # what is stored is at most a minute old
        await line.goes_on(61, step=1.0)
        await watcher.agree()


async def leaves_its_day_in_memory(line: Any, watcher: Watcher) -> None:
    await line.queue(3)
    await watcher.goes_on(5)
    await line.goes_on(86_380, step=30.0)
    await line.queue(1)  # it is in memory when what it sent first leaves the day
    await watcher.goes_on(100, step=5)
    assert (await watcher.again.look(watcher.scope)).states[0].day_used == 1


STORIES = [
    sends_and_rests, fails, fails_late, loses_its_provider, is_asked_to_slow_down, is_changed, is_suspended,
    is_restarted, comes_and_goes, waits, leaves_its_day_out_of_memory, leaves_its_day_in_memory,
]  # fmt: skip


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
async def test_a_look_again_shows_what_a_first_one_would(
    line: Any, watcher: Watcher, story: Callable[[Any, Watcher], Awaitable[None]]
) -> None:
    await story(line, watcher)


async def test_who_rests_is_not_looked_at_again(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher(line, INSTALLATION)
    looked_at: list[str] = []
    state = NumberReader.state

    def noted(self: NumberReader, row: Any, *rest: Any, **more: Any) -> Any:
        looked_at.append(row["id"])
        return state(self, row, *rest, **more)

    monkeypatch.setattr(NumberReader, "state", noted)
    await line.queue(5)
    await line.goes_on(70, step=1.0)
    await watcher.again.look(INSTALLATION)
    looked_at.clear()
    for _ in range(5):
        await line.goes_on(1)
        await watcher.again.look(INSTALLATION)
    assert looked_at == []
    await line.queue(1)
    await line.goes_on(1)
    await watcher.again.look(INSTALLATION)
    assert looked_at == [line.number.id]


async def test_a_look_that_fails_leaves_nothing_behind(line: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    watcher = Watcher(line, INSTALLATION)
    await watcher.agree()
    await line.queue(5)
    await line.goes_on(1)

    def broken(*_: Any, **__: Any) -> Any:
        raise ValueError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(NumberReader, "state", broken)
        with pytest.raises(ValueError, match="broken"):
            await watcher.again.look(INSTALLATION)
    await watcher.goes_on(2)


async def test_numbers_are_forgotten_a_minute_after_the_last_look(line: Any) -> None:
    states = Watcher(line, INSTALLATION).again
    await states.look(INSTALLATION)
    await line.goes_on(30, step=1.0)
    await states.note_queues()
    assert list(states._scopes) == [INSTALLATION]
    await line.goes_on(31, step=1.0)
    await states.note_queues()
    assert not states._scopes
    assert line.registry._supervisor.stirring is None
    await line.queue(1)
    await line.goes_on(3)
    watcher = Watcher(line, INSTALLATION)
    await watcher.goes_on(3)


async def test_of_many_scopes_those_are_known_that_were_looked_at_last(
    line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_KNOWN", 1)
    states = Watcher(line, INSTALLATION).again
    mine = Scope(line.organization.id, "test")
    for scope in (INSTALLATION, mine, INSTALLATION):
        assert len((await states.look(scope)).states) == 1
        assert list(states._scopes) == [scope]
