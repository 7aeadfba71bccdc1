"""The watch over the event loop: what it measures, and whom it names (C31)."""

import asyncio
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from tests.captured import capture_logs

from recado.domain.core.clock import TimerHandle
from recado.domain.core.log_rate import QUIET
from recado.engine.process.loop_watch import BOUNDS, EVERY, LoopWatch


class Timer:
    def cancel(self) -> None:
        """Nothing waits."""


class LateClock:
    """Runs what is due when the test says so, as late as it says."""

    def __init__(self) -> None:
        self.at = 0.0
        self.due = 0.0
        self.callback: Callable[[], object] = lambda: None

    def now(self) -> datetime:
        return datetime(2026, 3, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.at

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError

    def call_at(self, when: float, callback: Callable[[], object]) -> TimerHandle:
        self.due, self.callback = when, callback
        return Timer()

    def run_late(self, seconds: float) -> None:
        self.at = self.due + seconds
        self.callback()


@pytest.fixture
def clock() -> LateClock:
    return LateClock()


async def started(clock: LateClock) -> LoopWatch:
    watch = LoopWatch(clock)
    await watch.start()
    await watch.start()
    return watch


async def test_every_delay_is_counted(clock: LateClock) -> None:
    watch = await started(clock)
    for late in (0.0, 0.0004, 0.003, 0.2, 11.0):
        clock.run_late(late)
    await watch.stop()
    found = {bound: count for bound, count in zip((*BOUNDS, None), watch.counts, strict=True) if count}
    assert found == {0.001: 2, 0.005: 1, 0.25: 1, None: 1}
    assert watch.seconds == pytest.approx(11.2034)


async def test_a_long_delay_is_logged_with_who_held_the_loop_and_not_too_often(clock: LateClock) -> None:
    watch = await started(clock)
    with capture_logs() as logs:
        clock.run_late(0.2)
        assert logs == []
        clock.at = clock.due + 0.3
        watch.look()
        clock.run_late(0.4)
        clock.run_late(0.4)
        clock.run_late(0.4)
        clock.run_late(QUIET)
    await watch.stop()
    first, second = logs
    assert first.pop("by") == "recado.engine.process.loop_watch.LoopWatch.look"
    assert first == {
        "event": "event_loop_held",
        "log_level": "warning",
        "seconds": 0.4,
        "left_out": 0,
    }
    assert second["left_out"] == 2


async def test_a_loop_that_runs_in_time_is_not_looked_at(clock: LateClock) -> None:
    watch = await started(clock)
    with capture_logs() as logs:
        clock.at = clock.due + EVERY
        watch.look()
        clock.run_late(0.4)
    await watch.stop()
    assert [entry["by"] for entry in logs] == [None]


async def test_the_names_of_task_and_function_are_seen_while_they_hold_the_loop(clock: LateClock) -> None:
    watch = await started(clock)
    clock.at = clock.due + 0.3

    async def hold_the_loop(secret: str) -> None:
        looking = threading.Thread(target=watch.look)
        looking.start()
        looking.join()
        assert secret

    with capture_logs() as logs:
        await asyncio.create_task(hold_the_loop("+5511999990000"), name="replaceListMembers")
        clock.run_late(0.3)
    await watch.stop()
    by = logs[0]["by"]
    assert by.startswith("replaceListMembers: ")
    assert "hold_the_loop" in by
    assert "5511" not in by


async def test_the_signal_is_handled_as_before_when_the_watch_has_stopped(clock: LateClock) -> None:
    before = signal.getsignal(signal.SIGURG)
    watch = await started(clock)
    assert signal.getsignal(signal.SIGURG) != before
    await watch.stop()
    await watch.stop()
    assert signal.getsignal(signal.SIGURG) == before


def test_a_loop_of_another_thread_is_measured_all_the_same(clock: LateClock) -> None:
    async def measure() -> LoopWatch:
        watch = await started(clock)
        clock.run_late(0.3)
        await watch.stop()
        return watch

    with ThreadPoolExecutor(1) as threads:
        watch = threads.submit(asyncio.run, measure()).result()
    assert watch.seconds == pytest.approx(0.3)
