"""What operators and crash hooks learn from a supervisor, and what they can do: without any content."""

import asyncio
import logging

import pytest
from tests.engine.workers import STEADY, Worker, states, supervise

from recado.engine.actor_cell import ActorCell
from recado.engine.child import Child, State
from recado.engine.failure import Crash
from recado.engine.supervisor import Strategy, Supervisor


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


async def test_the_crash_hook_learns_which_message_was_in_hand_before_the_restart(runtime, clock):
    diary = []
    crashes: list[Crash] = []

    async def on_crash(crash):
        crashes.append(crash)
        diary.append("hook")

    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    ref = root.spawn("a", lambda: Worker(diary, "a"), on_crash=on_crash)
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
    ref = root.spawn("a", lambda: Worker([]), on_crash=on_crash)
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


async def test_operators_restart_a_child_by_its_path(runtime, clock):
    diary = []
    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    numbers = root.add_supervisor(Supervisor("numbers", runtime=runtime, backoff=STEADY))
    ref = numbers.spawn("a", lambda: Worker(diary, "a"))
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


async def test_a_child_is_looked_up_by_its_path_among_however_many(runtime, monkeypatch):
    looked_at = []

    def name(child):
        looked_at.append(child)
        return Child.name.fget(child)

    monkeypatch.setattr(ActorCell, "name", property(name), raising=False)
    root = Supervisor("root", runtime=runtime)
    numbers = root.add_supervisor(Supervisor("numbers", runtime=runtime))
    keys = ["a:b", ("org_1", "hook"), ("org_1", "a:b"), ("org_1", "live", "email", "a@b:1"), ("org_1", "live", "a/b")]
    for key in [*keys, *map(str, range(100))]:
        numbers.spawn(key, lambda: Worker([]))
        root.spawn(key, lambda: Worker([]))
    for parent in (root, numbers):
        for key in keys:
            path = parent.find(key).path
            looked_at.clear()
            assert root.parent_of(path) is parent
            assert parent.named(path) is parent.find(key)
            assert len(looked_at) == 1
    for path in ("root/none", "root/numbers/none:none:none:none", "root/numbers/", "root/", "root/100/1"):
        assert root.parent_of(path).named(path) is None
    for path in ("root", "numbers/1", ""):
        assert root.parent_of(path) is None
    assert root.parent_of("root/numbers") is root
    assert root.named("root/numbers") is numbers
    await root.stop()


async def test_a_service_that_fails_to_end_is_started_again_by_an_operators_order(runtime):
    class Stuck:
        starts = 0

        async def start(self):
            self.starts += 1

        async def stop(self):
            raise OSError("its file is gone")

    stuck = Stuck()
    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    root.add_service("stuck", stuck)
    await root.start()
    await root.restart("root/stuck")
    assert stuck.starts == 2
    _, node = root.tree()
    assert (node.state, node.last_failure.type) == (State.RUNNING, "OSError")
    await root.stop()


@pytest.mark.parametrize("passes", range(6))
async def test_a_restart_beside_the_stop_of_all_keeps_nobody_waiting(runtime, passes):
    """`passes`: of the loop, after which the stop comes."""

    class Slow(Worker):
        async def stopping(self):
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    root = Supervisor("root", runtime=runtime, backoff=STEADY)
    root.spawn("slow", lambda: Slow([]))
    await root.start()
    await asyncio.sleep(0)
    restarted = asyncio.create_task(root.restart("root/slow"))
    for _ in range(passes):
        await asyncio.sleep(0)
    stopping = asyncio.create_task(root.stop())
    _, waiting = await asyncio.wait([restarted, stopping], timeout=5)
    assert not waiting
    assert [node.key for node in root.tree()] == ["root"]


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
