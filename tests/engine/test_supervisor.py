"""Supervision: who is restarted, when, how often, what is kept, and what operators see."""

import asyncio
import logging
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recado.engine.actor import Actor
from recado.engine.backoff import Backoff
from recado.engine.child import State
from recado.engine.clock import VirtualClock
from recado.engine.errors import ActorDeadError
from recado.engine.failure import Crash
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Strategy, Supervisor

STEADY = Backoff(first=1.0, ceiling=8.0, jitter=0.0)


class Worker(Actor):
    """Writes its life into a shared diary."""

    def __init__(self, diary, name="worker"):
        super().__init__()
        self.diary = diary
        self.name = name
        self.count = 0

    async def started(self):
        self.diary.append(f"{self.name} started")

    async def stopping(self):
        self.diary.append(f"{self.name} stopping")

    async def handle(self, message):
        if message == "break":
            raise LookupError("text of the customer")
        if message == "count":
            self.count += 1
            return self.count
        if isinstance(message, asyncio.Event):
            await message.wait()
            return None
        self.diary.append(message)
        return None


def supervise(runtime, diary, strategy, names="abc", **limits):
    root = Supervisor("root", strategy, runtime=runtime, backoff=STEADY, **limits)
    refs = {name: root.add_actor(name, lambda name=name: Worker(diary, name)) for name in names}
    return root, refs


def states(root):
    return {node.key: node.state for node in root.tree()}


async def test_a_failed_actor_comes_back_at_the_same_address_with_fresh_state_and_its_mail(runtime, clock):
    diary = []
    root, refs = supervise(runtime, diary, Strategy.ONE_FOR_ONE, "a")
    await root.start()
    assert await refs["a"].ask("count") == 1
    refs["a"].tell("break")
    refs["a"].tell("kept")
    await clock.settle()
    assert states(root)["a"] is State.BACKING_OFF
    refs["a"].tell("told while backing off")
    counted = refs["a"].ask("count")
    await clock.advance(1)
    assert await counted == 1
    assert diary == ["a started", "a started", "kept", "told while backing off"]
    await root.stop()


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (Strategy.ONE_FOR_ONE, ["b started"]),
        (Strategy.REST_FOR_ONE, ["c stopping", "b started", "c started"]),
        (Strategy.ONE_FOR_ALL, ["c stopping", "a stopping", "a started", "b started", "c started"]),
    ],
)
async def test_the_strategy_decides_who_is_restarted_and_in_which_order(runtime, clock, strategy, expected):
    diary = []
    root, refs = supervise(runtime, diary, strategy)
    await root.start()
    diary.clear()
    refs["b"].tell("break")
    await clock.advance(1)
    assert diary == expected
    assert set(states(root).values()) == {State.RUNNING}
    await root.stop()


async def test_a_group_restart_keeps_the_mail_of_the_healthy_ones(runtime, clock):
    diary = []
    root, refs = supervise(runtime, diary, Strategy.ONE_FOR_ALL, "ab")
    await root.start()
    gate = asyncio.Event()
    refs["a"].tell(gate)
    await clock.settle()
    refs["a"].tell("first")
    refs["b"].tell("break")
    await clock.settle()
    refs["a"].tell("second")
    gate.set()
    await clock.advance(1)
    assert diary == ["a started", "b started", "a stopping", "a started", "first", "second", "b started"]
    await root.stop()


async def test_two_failures_at_once_in_a_group_restart_it_once(runtime, clock):
    diary = []
    root, refs = supervise(runtime, diary, Strategy.ONE_FOR_ALL)
    await root.start()
    refs["a"].tell("break")
    refs["b"].tell("break")
    await clock.advance(10)
    assert {node.key: node.restarts for node in root.tree()} == {"root": 0, "a": 1, "b": 1, "c": 1}
    assert set(states(root).values()) == {State.RUNNING}
    await root.stop()


async def test_failures_in_a_row_wait_longer_and_steady_work_is_forgiven(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a", period=60.0)
    await root.start()
    for expected in (1, 2, 4, 8, 8):
        refs["a"].tell("break")
        await clock.advance(expected - 0.01)
        assert states(root)["a"] is State.BACKING_OFF
        await clock.advance(0.01)
        assert states(root)["a"] is State.RUNNING
    await clock.advance(60)
    refs["a"].tell("break")
    await clock.advance(1)
    assert states(root)["a"] is State.RUNNING
    await root.stop()


async def test_a_failure_with_the_first_message_after_a_restart_is_not_taken_for_a_failed_start(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a")
    await root.start()
    for _ in range(3):
        refs["a"].tell("break")
    await clock.advance(1 + 2 + 4)
    assert [(node.state, node.restarts) for node in root.tree()[1:]] == [(State.RUNNING, 3)]
    await root.stop()


async def test_an_operators_restart_during_a_group_restart_leaves_none_of_the_group_behind(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ALL)
    await root.start()
    refs["a"].tell("break")
    await clock.settle()
    restart = asyncio.create_task(root.restart("root/a"))
    await clock.advance(1)
    await restart
    assert set(states(root).values()) == {State.RUNNING}
    await root.stop()


async def test_one_child_that_backs_off_delays_no_other(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "ab")
    await root.start()
    refs["a"].tell("break")
    await clock.settle()
    assert await refs["b"].ask("count") == 1
    await root.stop()


async def test_too_many_restarts_make_the_root_give_up_visibly(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "ab", intensity=2, period=60.0)
    await root.start()
    for _ in range(3):
        refs["a"].tell("break")
        await clock.advance(8)
    failure = await root.failed
    assert failure.type == "LookupError"
    assert states(root) == {"root": State.STOPPED, "a": State.BACKING_OFF, "b": State.BACKING_OFF}
    orphan = refs["b"].ask("count")
    await root.stop()
    with pytest.raises(ActorDeadError):
        await orphan


async def test_restarts_spread_over_more_than_the_period_are_borne(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a", intensity=2, period=60.0)
    await root.start()
    for _ in range(10):
        refs["a"].tell("break")
        await clock.advance(31)
    assert states(root)["a"] is State.RUNNING
    assert not root.failed.done()
    await root.stop()


async def test_a_supervisor_that_gives_up_is_restarted_by_its_parent_with_its_children(runtime, clock):
    diary = []
    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    numbers = root.add_supervisor(Supervisor("numbers", runtime=runtime, backoff=STEADY, intensity=1))
    ref = numbers.add_actor("a", lambda: Worker(diary, "a"))
    spawned = numbers.spawn("b", lambda: Worker(diary, "b"))
    await root.start()
    ref.tell("break")
    await clock.advance(1)
    ref.tell("break")
    await clock.settle()
    spawned.tell("kept")
    assert states(root) == {"root": State.RUNNING} | dict.fromkeys(["numbers", "a", "b"], State.BACKING_OFF)
    await clock.advance(1)
    assert set(states(root).values()) == {State.RUNNING}
    assert diary[-1] == "kept"
    assert next(node.restarts for node in root.tree() if node.key == "numbers") == 1
    await root.stop()


async def test_the_crash_hook_learns_which_message_was_in_hand_before_the_restart(runtime, clock):
    diary = []
    crashes: list[Crash] = []

    async def on_crash(crash):
        crashes.append(crash)
        diary.append("hook")

    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    ref = root.add_actor("a", lambda: Worker(diary, "a"), on_crash=on_crash)
    await root.start()
    for _ in range(3):
        ref.tell("break")
        await clock.advance(8)
    assert [crash.message for crash in crashes] == ["break"] * 3
    assert crashes[0].path == "root/a"
    assert isinstance(crashes[0].error, LookupError)
    assert diary == ["a started", "hook", "a started", "hook", "a started", "hook", "a started"]
    assert "break" not in repr(crashes[0])
    await root.stop()


async def test_a_failing_crash_hook_does_not_stop_the_restart(runtime, clock):
    async def on_crash(crash):
        raise RuntimeError("the hook itself")

    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    ref = root.add_actor("a", lambda: Worker([]), on_crash=on_crash)
    await root.start()
    ref.tell("break")
    await clock.advance(1)
    assert await ref.ask("count") == 1
    await root.stop()


async def test_the_visible_failure_and_the_log_hold_type_and_place_but_no_content(runtime, clock, caplog):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a")
    await root.start()
    await clock.advance(7)
    with caplog.at_level(logging.DEBUG):
        refs["a"].tell("break")
        await clock.settle()
    node = next(node for node in root.tree() if node.key == "a")
    assert node.last_failure is not None
    assert node.last_failure.type == "LookupError"
    assert ".Worker.handle:" in node.last_failure.where
    assert node.last_failure.at == clock.now()
    assert "LookupError" in caplog.text
    assert "customer" not in caplog.text + repr(root.tree())
    await root.stop()


async def test_the_tree_shows_every_child_and_its_figures(runtime, clock):
    diary = []
    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    numbers = root.add_supervisor(Supervisor("numbers", runtime=runtime, backoff=STEADY))
    ref = numbers.spawn("num_1", lambda: Worker(diary))
    await root.start()
    started = clock.now()
    await ref.ask("count")
    gate = asyncio.Event()
    ref.tell(gate)
    await clock.settle()
    ref.tell("one")
    ref.tell("two")
    assert [(n.path, n.kind, n.state, n.mailbox, n.handled, n.restarts, n.up_since) for n in root.tree()] == [
        ("root", "Supervisor", State.RUNNING, 0, 0, 0, started),
        ("root/numbers", "Supervisor", State.RUNNING, 0, 0, 0, started),
        ("root/numbers/num_1", "Worker", State.RUNNING, 2, 1, 0, started),
    ]
    gate.set()
    await root.stop()
    assert states(root) == {"root": State.STOPPED, "numbers": State.STOPPED}


async def test_an_actor_that_fails_to_start_at_first_fails_the_start_and_unwinds(runtime):
    class Unable(Worker):
        async def started(self):
            raise OSError("no")

    diary = []
    root, refs = supervise(runtime, diary, Strategy.ONE_FOR_ONE, "a")
    root.add_actor("unable", lambda: Unable(diary))
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
    ref = root.add_actor("moody", lambda: Moody([]))
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
    assert diary == ["a started", "b started", "b stopping", "told before", "a stopping"]
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
    assert states(root)["a"] is State.STOPPED


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


async def test_operators_restart_a_child_by_its_path(runtime, clock):
    diary = []
    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    numbers = root.add_supervisor(Supervisor("numbers", runtime=runtime, backoff=STEADY))
    ref = numbers.add_actor("a", lambda: Worker(diary, "a"))
    await root.start()
    await ref.ask("count")
    await root.restart("root/numbers/a")
    assert await ref.ask("count") == 1
    assert diary == ["a started", "a stopping", "a started"]
    ref.tell("break")
    await clock.settle()
    await root.restart("root/numbers/a")  # does not wait for the back-off
    assert await ref.ask("count") == 1
    await clock.advance(60)
    assert diary.count("a started") == 3
    with pytest.raises(LookupError):
        await root.restart("root/numbers/none")
    await root.stop()


async def test_a_broken_service_is_restarted_like_an_actor(runtime, clock):
    class Listener:
        starts = stops = 0

        async def start(self):
            self.starts += 1

        async def stop(self):
            self.stops += 1

    listener = Listener()
    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    root.add_service("listener", listener)
    await root.start()
    root.service_failed("listener", ConnectionError("gone"))
    assert states(root)["listener"] is State.BACKING_OFF
    await clock.advance(1)
    assert states(root)["listener"] is State.RUNNING
    assert (listener.starts, listener.stops, root.tree()[1].kind) == (2, 1, "Listener")
    await root.stop()
    await root.stop()


async def test_cancelling_an_actors_task_from_outside_is_a_failure_of_that_actor_only(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE, "ab")
    await root.start()
    before = asyncio.all_tasks()
    refs["a"].tell(asyncio.Event())
    await clock.settle()
    (task,) = asyncio.all_tasks() - before
    task.cancel()
    await clock.advance(1)
    assert await refs["a"].ask("count") == 1
    assert {node.key: node.restarts for node in root.tree()} == {"root": 0, "a": 1, "b": 0}
    await root.stop()


async def test_an_actor_can_be_added_once_only_and_permanent_children_before_the_start_only(runtime):
    root, _ = supervise(runtime, [], Strategy.ONE_FOR_ONE, "a")
    with pytest.raises(ValueError, match="already"):
        root.spawn("a", lambda: Worker([]))
    await root.start()
    with pytest.raises(RuntimeError, match="before"):
        root.add_actor("late", lambda: Worker([]))
    await root.stop()


async def test_a_restart_during_someones_stop_waits_for_its_farewell_and_lets_it_end(runtime):
    gate = asyncio.Event()

    class Slow(Worker):
        async def stopping(self):
            await gate.wait()
            self.diary.append("gone")

    diary = []
    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    ref = root.spawn("slow", lambda: Slow(diary))
    await root.start()
    stopped = ref.stop()
    restarted = asyncio.create_task(root.restart("root/slow"))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not restarted.done()
    gate.set()
    await restarted
    assert await stopped is True
    assert diary == ["worker started", "gone"]
    assert [node.key for node in root.tree()] == ["root"]
    await root.stop()


OPERATIONS = st.one_of(
    st.tuples(st.just("break"), st.sampled_from("abc")),
    st.tuples(st.just("ask"), st.sampled_from("abc")),
    st.tuples(st.just("restart"), st.sampled_from(["", "/a", "/b", "/c"])),
    st.tuples(st.just("advance"), st.sampled_from([0, 0.5, 1, 5])),
    st.tuples(st.just("pass"), st.none()),
)


@pytest.mark.parametrize("strategy", list(Strategy))
@settings(max_examples=60, deadline=None)
@given(operations=st.lists(OPERATIONS, max_size=30), intensity=st.sampled_from([1, 1_000]))
def test_whatever_happens_a_tree_ends_running_or_given_up_and_stops_leaving_no_task(strategy, operations, intensity):
    async def play():
        clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
        runtime = Runtime(clock, random.Random(1))
        root = Supervisor("root", runtime=runtime, backoff=STEADY, intensity=2)
        middle = root.add_supervisor(
            Supervisor("middle", strategy, runtime=runtime, backoff=STEADY, intensity=intensity)
        )
        refs = {name: middle.add_actor(name, lambda: Worker([])) for name in "abc"}
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
        await asyncio.wait_for(root.stop(), 5)
        await asyncio.gather(*asks, return_exceptions=True)
        await asyncio.sleep(0)
        assert set(states(root).values()) == {State.STOPPED}
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(play())
