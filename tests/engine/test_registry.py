"""Keyed actors: one per key, gone when idle, back with the next message, and no tell lost on the way."""

import asyncio
import gc
import random
import tracemalloc
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.engine.actor import Actor
from recado.engine.clock import VirtualClock
from recado.engine.errors import ActorDeadError
from recado.engine.registry import SWEEP_PAUSE, SWEPT_AT_ONCE, Registry
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor


class Counter(Actor):
    """Counts into a shared ledger; says goodbye slowly when it is given a gate."""

    def __init__(self, key, ledger, gate=None):
        super().__init__()
        self.key = key
        self.ledger = ledger
        self.gate = gate
        self.own = 0

    async def stopping(self):
        if self.gate is not None:
            await self.gate.wait()

    async def handle(self, message):
        if message == "rest":
            self.context.passivate()
            return None
        if message == "own":
            return self.own
        if message == "remind":
            self.context.tell_later(500, "reminder")
            return None
        self.own += 1
        self.ledger.append((self.key, message))
        return None


class Plain(Actor):
    async def handle(self, message):
        return message


@pytest.fixture
async def root(runtime):
    root = Supervisor("root", runtime=runtime)
    await root.start()
    yield root
    await root.stop()


async def test_a_key_has_one_actor(root):
    registry = Registry(root)
    assert registry.get("a") is None
    ref = registry.get_or_spawn("a", lambda key: Plain())
    assert registry.get_or_spawn("a", lambda key: Plain()) is ref
    assert registry.get("a") is ref
    assert len(registry) == 1


async def test_an_idle_actor_leaves_memory_and_comes_back_with_the_next_message(root, clock, signals):
    registry = Registry(root, idle_after=60)
    await registry.start()
    ledger = []
    ref = registry.get_or_spawn("a", lambda key: Counter(key, ledger))
    ref.tell(1)
    await clock.advance(130)
    assert await signals.wait("actor.passivated") == "root/a"
    assert registry.get("a") is None
    assert not ref.is_alive()
    ref.tell(2)  # the old address still leads there
    assert registry.get("a") is not None
    assert ref.is_alive()
    assert await ref.ask("own") == 1
    assert ledger == [("a", 1), ("a", 2)]
    await registry.stop()


async def test_a_busy_or_reminded_actor_stays(root, clock):
    registry = Registry(root, idle_after=60)
    await registry.start()
    ledger = []
    busy = registry.get_or_spawn("busy", lambda key: Counter(key, ledger))
    reminded = registry.get_or_spawn("reminded", lambda key: Counter(key, ledger))
    await reminded.ask("remind")
    for tick in range(8):
        busy.tell(tick)
        await clock.advance(55)
    assert busy.is_alive()
    assert reminded.is_alive()
    await clock.advance(250)
    assert not busy.is_alive()
    assert ("reminded", "reminder") in ledger
    assert not reminded.is_alive()
    await registry.stop()


async def test_an_actor_may_refuse_to_leave(root, clock):
    class Stubborn(Plain):
        def may_passivate(self):
            return False

    registry = Registry(root, idle_after=10)
    await registry.start()
    ref = registry.get_or_spawn("a", lambda key: Stubborn())
    await clock.advance(100)
    assert ref.is_alive()
    await registry.stop()
    await registry.stop()


async def test_a_tell_during_the_farewell_goes_to_the_next_incarnation(root):
    gate = asyncio.Event()
    ledger = []
    registry = Registry(root)
    ref = registry.get_or_spawn("a", lambda key: Counter(key, ledger, gate))
    ref.tell(1)
    await ref.ask("rest")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    ref.tell(2)
    registry.get_or_spawn("a", lambda key: Counter(key, ledger, gate)).tell(3)
    own = ref.ask("own")
    gate.set()
    assert await own == 2
    assert ledger == [("a", 1), ("a", 2), ("a", 3)]


async def test_a_message_already_waiting_keeps_the_actor(root):
    ledger = []
    registry = Registry(root)
    ref = registry.get_or_spawn("a", lambda key: Counter(key, ledger))
    ref.tell(1)
    ref.tell("rest")
    assert await ref.ask("own") == 1


async def test_an_old_address_leads_to_whoever_has_the_key_now(root):
    ledger = []
    registry = Registry(root)
    old = registry.get_or_spawn("a", lambda key: Counter(key, ledger))
    await old.ask("rest")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert registry.get("a") is None
    new = registry.get_or_spawn("a", lambda key: Counter("new", ledger))
    assert new is not old
    old.tell(1)
    assert await new.ask("own") == 1


async def test_getting_an_actor_that_is_being_stopped_waits_for_its_farewell(root):
    gate = asyncio.Event()
    ledger = []
    registry = Registry(root)
    ref = registry.get_or_spawn("a", lambda key: Counter(key, ledger, gate))
    ref.tell(1)
    stopped = ref.stop()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    again = registry.get_or_spawn("a", lambda key: Counter(key, ledger, gate))
    again.tell(2)
    assert ledger == [("a", 1)]
    gate.set()
    assert await stopped is True
    assert await again.ask("own") == 1


async def test_after_the_supervisors_stop_nothing_is_spawned_and_old_addresses_are_dead(runtime):
    root = Supervisor("root", runtime=runtime)
    await root.start()
    registry = Registry(root)
    gone = registry.get_or_spawn("gone", lambda key: Counter(key, []))
    await gone.ask("rest")
    await asyncio.sleep(0)
    await root.stop()
    with pytest.raises(ActorDeadError):
        registry.get_or_spawn("a", lambda key: Plain())
    with pytest.raises(ActorDeadError):
        gone.tell(1)


async def test_an_actor_told_at_its_farewell_does_not_outlive_its_supervisor(runtime):
    root = Supervisor("root", runtime=runtime)
    await root.start()
    gate, ledger = asyncio.Event(), []
    registry = Registry(root)
    await registry.get_or_spawn("a", lambda key: Counter(key, ledger, gate)).ask("own")
    stopping = asyncio.create_task(root.stop())
    for _ in range(5):
        await asyncio.sleep(0)
    late = registry.get_or_spawn("a", lambda key: Counter("next", ledger))
    with pytest.raises(ActorDeadError):
        late.tell(1)
    gate.set()
    await stopping
    assert registry.get("a") is None
    assert ledger == []


async def test_a_maker_that_fails_leaves_no_trace(root):
    def refuse(key):
        raise RuntimeError("no")

    registry = Registry(root)
    with pytest.raises(RuntimeError):
        registry.get_or_spawn("a", refuse)
    assert registry.get("a") is None


@settings(max_examples=examples(60), deadline=None)
@given(steps=st.lists(st.one_of(st.integers(0, 2), st.sampled_from(["rest", "run", "old"])), max_size=60))
def test_no_tell_is_lost_or_reordered_whatever_the_timing_of_passivation(steps):
    async def play():
        clock = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC))
        root = Supervisor("root", runtime=Runtime(clock, random.Random(1)))
        await root.start()
        registry = Registry(root)
        ledger, sent, refs = [], [], []
        for number, step in enumerate(steps):
            if step == "run":
                await asyncio.sleep(0)
                continue
            if step == "old" and refs:
                ref = refs[0]
            else:
                ref = registry.get_or_spawn("a", lambda key: Counter(key, ledger))
                refs.append(ref)
            if step == "rest":
                ref.tell("rest")
            else:
                ref.tell(number)
                sent.append(("a", number))
        await clock.settle()
        await root.stop()
        return ledger, sent

    ledger, sent = asyncio.run(play())
    assert ledger == sent


async def test_ten_thousand_idle_actors_take_under_four_kilobytes_each_and_no_task(root):
    registry = Registry(root)
    tasks = asyncio.all_tasks()
    tracemalloc.start()
    try:
        for number in range(10_000):
            registry.get_or_spawn(number, lambda key: Plain()).tell("hello")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(cell.handled for cell in registry) == 10_000
    assert held / 10_000 < 4_096
    assert asyncio.all_tasks() <= tasks


async def test_thousands_that_leave_at_once_leave_a_few_at_a_time(root, clock):
    registry = Registry(root, idle_after=10)
    await registry.start()
    for key in range(3 * SWEPT_AT_ONCE):
        registry.get_or_spawn(key, lambda key: Plain())
    await clock.advance(20)  # the second look at which nothing has been handled
    assert len(registry) == 2 * SWEPT_AT_ONCE
    await clock.advance(SWEEP_PAUSE)
    assert len(registry) == SWEPT_AT_ONCE
    await clock.advance(10)
    assert len(registry) == 0
    await registry.stop()
