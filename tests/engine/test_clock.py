"""Virtual time moves only when told to, in order; system time is never early."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest
import uvloop

from recado.engine.clock import SystemClock, VirtualClock


async def test_timers_fire_in_time_order_each_at_its_own_instant(clock):
    fired = []
    for delay in (3.0, 1.0, 2.0):
        clock.call_at(delay, lambda: fired.append(clock.monotonic()))

    await clock.advance(2.5)
    assert fired == [1.0, 2.0]
    assert clock.monotonic() == 2.5

    await clock.advance(0.5)
    assert fired == [1.0, 2.0, 3.0]


async def test_timers_of_one_instant_fire_in_the_order_they_were_set(clock):
    fired = []
    for name in "abc":
        clock.call_at(1.0, lambda name=name: fired.append(name))
    await clock.advance(1)
    assert fired == ["a", "b", "c"]


async def test_what_a_sleeper_sets_on_waking_fires_within_the_same_advance(clock):
    seen = []

    async def ticks():
        for _ in range(4):
            await clock.sleep(10)
            seen.append(clock.now())

    task = asyncio.create_task(ticks())
    await clock.advance(60)
    assert seen == [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=s) for s in (10, 20, 30, 40)]
    await task


async def test_the_loop_settles_between_instants(clock):
    order = []

    async def chain(name):
        await clock.sleep(1 if name == "early" else 2)
        for _ in range(5):
            await asyncio.sleep(0)
        order.append(name)

    tasks = [asyncio.create_task(chain(name)) for name in ("late", "early")]
    clock.call_at(2.0, lambda: order.append("instant two"))
    await clock.advance(3)
    assert order == ["early", "instant two", "late"]
    await asyncio.gather(*tasks)


async def test_ninety_days_pass_at_once(clock):
    woken = asyncio.create_task(clock.sleep(90 * 86_400))
    await clock.advance(90 * 86_400 - 1)
    assert not woken.done()
    await clock.advance(1)
    assert woken.done()


async def test_a_cancelled_timer_does_not_fire(clock):
    fired = []
    clock.call_at(1.0, lambda: fired.append(1)).cancel()
    await clock.advance(2)
    assert fired == []


async def test_a_cancelled_sleep_leaves_nothing_behind_that_wakes(clock):
    task = asyncio.create_task(clock.sleep(5))
    await clock.settle()
    task.cancel()
    await clock.advance(10)
    assert task.cancelled()


async def test_a_past_instant_fires_without_an_advance(clock):
    await clock.advance(5)
    fired = asyncio.Event()
    clock.call_at(4.0, fired.set)
    await clock.sleep(0)
    await clock.settle()
    assert fired.is_set()


async def test_time_does_not_go_back(clock):
    with pytest.raises(ValueError, match="back"):
        await clock.advance(-1)


def test_a_clock_without_a_zone_is_refused():
    with pytest.raises(ValueError, match="zone"):
        VirtualClock(datetime(2026, 1, 1))


async def test_system_time_is_aware_and_in_utc():
    assert SystemClock().now().utcoffset() == timedelta(0)


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_system_timers_are_never_early_on_either_loop(run):
    clock = SystemClock()

    async def fire_all():
        early = []
        done = asyncio.Event()
        left = 50

        def fire(when):
            nonlocal left
            early.append(time.monotonic() < when)
            left -= 1
            if not left:
                done.set()

        for index in range(left):
            when = clock.monotonic() + 0.0003 * index
            clock.call_at(when, lambda when=when: fire(when))
        await done.wait()
        await clock.sleep(0)
        return early

    assert not any(run(fire_all()))


async def test_a_system_timer_can_be_called_off():
    clock = SystemClock()
    fired = []
    clock.call_at(clock.monotonic() + 0.001, lambda: fired.append(1)).cancel()
    await clock.sleep(0.005)
    assert fired == []
