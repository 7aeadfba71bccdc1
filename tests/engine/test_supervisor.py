"""Supervision: who is restarted, when, how often, and what is kept."""

import asyncio

import pytest
from tests.engine.workers import STEADY, Worker, states, supervise

from recado.engine.child import State
from recado.engine.errors import ActorDeadError
from recado.engine.supervisor import Strategy, Supervisor


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
    ref = numbers.spawn("a", lambda: Worker(diary, "a"))
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


async def test_a_service_is_restarted_on_order_like_an_actor(runtime):
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
    await root.restart("root/listener")
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
