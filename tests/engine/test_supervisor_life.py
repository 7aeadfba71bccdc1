"""The start and the stop of a tree: what fails unwinds, what does not finish is cut, and nothing is left."""

import asyncio
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engine.workers import STEADY, Worker, states, supervise
from tests.examples import examples

from recado.engine.child import State
from recado.engine.clock import VirtualClock
from recado.engine.errors import ActorDeadError
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Strategy, Supervisor


async def test_an_actor_that_fails_to_start_at_first_fails_the_start_and_unwinds(runtime):
    class Unable(Worker):
        async def started(self):
            raise OSError("no")

    diary = []
    root, refs = supervise(runtime, diary, Strategy.ONE_FOR_ONE, "a")
    root.spawn("unable", lambda: Unable(diary))
    with pytest.raises(OSError, match="no"):
        await root.start()
    assert diary == ["a started", "a stopping"]
    await root.stop()
    await root.stop()
    assert not refs["a"].is_alive()


async def test_an_actor_that_fails_to_start_again_backs_off_until_it_can(runtime, clock):
    class Moody(Worker):
        moods = iter([None, OSError(), OSError(), None])

        async def started(self):
            mood = next(Moody.moods)
            if mood is not None:
                raise mood

    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    ref = root.spawn("moody", lambda: Moody([]))
    await root.start()
    ref.tell("break")
    counted = ref.ask("count")
    await clock.advance(1 + 2 + 3.9)
    assert not counted.done()
    await clock.advance(0.1)
    assert await counted == 1
    assert root.tree()[1].restarts == 3
    await root.stop()


async def test_stop_handles_what_was_told_and_refuses_what_comes_after(runtime):
    diary = []
    root, refs = supervise(runtime, diary, Strategy.ONE_FOR_ONE, "ab")
    await root.start()
    refs["a"].tell("told before")
    await root.stop()
    assert diary[:2] == ["a started", "b started"]
    assert sorted(diary[2:]) == ["a stopping", "b stopping", "told before"]
    assert diary.index("told before") < diary.index("a stopping")
    with pytest.raises(ActorDeadError):
        refs["a"].tell("after")
    with pytest.raises(ActorDeadError):
        root.spawn("c", lambda: Worker(diary))


async def test_a_stop_during_back_off_does_not_wait_for_it(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a")
    await root.start()
    refs["a"].tell("break")
    await clock.settle()
    waiting = refs["a"].ask("count")
    await root.stop()
    with pytest.raises(ActorDeadError):
        await waiting
    assert states(root) == {"root": State.STOPPED}


async def test_an_actor_that_does_not_finish_is_cut_after_the_grace(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a", grace=5.0)
    await root.start()
    refs["a"].tell(asyncio.Event())
    await clock.settle()
    stopping = asyncio.create_task(root.stop())
    await clock.advance(4.9)
    assert not stopping.done()
    await clock.advance(0.1)
    await stopping
    assert not refs["a"].is_alive()


async def test_a_failure_during_the_stop_ends_the_actor_and_the_stop_goes_on(runtime):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a")
    await root.start()
    refs["a"].tell("break")
    await root.stop()
    assert not refs["a"].is_alive()


async def test_an_actor_that_is_cut_while_its_supervisor_halts_is_no_failure(runtime, caplog):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a")
    await root.start()
    (child,) = root.children()
    await root.halt()
    for error, told in ((asyncio.CancelledError(), 0), (LookupError(), 1)):
        root.child_failed(child, error)
        assert caplog.text.count("child failed") == told
    await root.stop()
    assert not refs["a"].is_alive()


async def test_an_actor_can_be_added_once_only_and_lasting_children_before_the_start_only(runtime):
    root, _ = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a")
    with pytest.raises(ValueError, match="already"):
        root.spawn("a", lambda: Worker([]))
    await root.start()
    with pytest.raises(RuntimeError, match="before"):
        root.add_supervisor(Supervisor("late", runtime=runtime))
    await root.stop()


OPERATIONS = st.one_of(
    st.tuples(st.just("break"), st.sampled_from("abc")),
    st.tuples(st.just("ask"), st.sampled_from("abc")),
    st.tuples(st.just("restart"), st.sampled_from(["", "/a", "/b", "/c"])),
    st.tuples(st.just("advance"), st.sampled_from([0, 0.5, 1, 5])),
    st.tuples(st.just("pass"), st.none()),
)


@pytest.mark.parametrize("strategy", list(Strategy))
@settings(max_examples=examples(60), deadline=None)
@given(operations=st.lists(OPERATIONS, max_size=30), intensity=st.sampled_from([1, 1_000]))
def test_whatever_happens_a_tree_ends_running_or_given_up_and_stops_leaving_no_task(strategy, operations, intensity):
    async def play():
        clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
        runtime = Runtime(clock, random.Random(1))
        root = Supervisor("root", runtime=runtime, backoff=STEADY, intensity=2)
        middle = root.add_supervisor(
            Supervisor("middle", strategy, runtime=runtime, backoff=STEADY, intensity=intensity)
        )
        refs = {name: middle.spawn(name, lambda: Worker([])) for name in "abc"}
        await root.start()
        asks, restarts = [], []
        for operation, argument in operations:
            match operation:
                case "break":
                    refs[argument].tell("break")
                case "ask":
                    asks.append(refs[argument].ask("count"))
                case "restart":
                    restarts.append(asyncio.create_task(root.restart(f"root/middle{argument}")))
                case "advance":
                    await clock.advance(argument)
                case _:
                    await asyncio.sleep(0)
        await clock.advance(1_000)
        assert all(task.done() for task in restarts)
        await asyncio.gather(*restarts)
        if root.failed.done():
            assert intensity == 1
        else:
            assert set(states(root).values()) == {State.RUNNING}
            assert all(reply.done() for reply in asks)
        await asyncio.wait_for(root.stop(), 30)
        await asyncio.gather(*asks, return_exceptions=True)
        await asyncio.sleep(0)
        assert set(states(root).values()) == {State.STOPPED}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())
