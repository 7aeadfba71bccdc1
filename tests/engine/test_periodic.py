"""Periodic work: its rhythm, hints, failures and end."""

import asyncio
import logging

import pytest

from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic


class Work:
    def __init__(self, clock):
        self.clock = clock
        self.runs = []
        self.error = None
        self.gate = None

    async def __call__(self):
        self.runs.append(self.clock.monotonic())
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error


@pytest.fixture
def work(clock):
    return Work(clock)


async def test_work_runs_at_its_rhythm_until_the_stop(clock, work, signals):
    periodic = Periodic("sweep", 10, work, clock, signals=signals)
    await periodic.start()
    await periodic.start()
    await clock.advance(35)
    assert work.runs == [10, 20, 30]
    assert await signals.wait("periodic.ran") == "sweep"
    await periodic.stop()
    await periodic.stop()
    await clock.advance(100)
    assert len(work.runs) == 3


async def test_the_first_run_may_come_with_the_start(clock, work):
    periodic = Periodic("sweep", 10, work, clock, at_once=True)
    await periodic.start()
    await clock.advance(10)
    assert work.runs == [0, 10]
    await periodic.stop()


async def test_a_hint_runs_now_and_begins_the_pause_anew(clock, work):
    periodic = Periodic("sweep", 10, work, clock)
    await periodic.start()
    await clock.advance(4)
    periodic.hint()
    periodic.hint()
    await clock.advance(10)
    assert work.runs == [4, 14]
    await periodic.stop()


async def test_a_hint_during_a_run_is_not_lost(clock, work):
    work.gate = asyncio.Event()
    periodic = Periodic("sweep", 10, work, clock)
    await periodic.start()
    await clock.advance(10)
    periodic.hint()
    work.gate.set()
    await clock.settle()
    assert work.runs == [10, 10]
    await periodic.stop()


async def test_failures_are_shown_without_their_text_and_slow_the_rhythm_until_a_success(clock, work, caplog):
    periodic = Periodic("sweep", 10, work, clock, ceiling=40)
    await periodic.start()
    work.error = LookupError("text of the customer")
    await clock.advance(10 + 10 + 20 + 40)
    assert work.runs == [10, 20, 40, 80]
    assert periodic.last_failure is not None
    assert periodic.last_failure.type == "LookupError"
    assert "customer" not in caplog.text
    work.error = None
    await clock.advance(40 + 10)
    assert work.runs[4:] == [120, 130]
    await periodic.stop()


async def test_a_hint_does_not_shorten_the_pause_after_a_failure(clock, work):
    periodic = Periodic("sweep", 10, work, clock)
    await periodic.start()
    work.error = LookupError()
    await clock.advance(10)
    periodic.hint()
    await clock.advance(9)
    assert work.runs == [10]
    await clock.advance(1)
    assert work.runs == [10, 20]
    await periodic.stop()


async def test_work_that_waited_for_something_cancelled_has_failed_and_runs_again(clock, work):
    periodic = Periodic("sweep", 10, work, clock)
    await periodic.start()
    work.error = asyncio.CancelledError()
    await clock.advance(10)
    assert periodic.last_failure.type == "CancelledError"
    work.error = None
    await clock.advance(10)
    assert len(work.runs) == 2
    await periodic.stop()


async def test_a_stop_lets_the_run_under_way_finish(clock, work):
    work.gate = asyncio.Event()
    periodic = Periodic("sweep", 10, work, clock)
    await periodic.start()
    await clock.advance(10)
    stopping = asyncio.create_task(periodic.stop())
    await clock.settle()
    assert not stopping.done()
    work.gate.set()
    await stopping
    assert periodic.last_failure is None


async def test_a_stop_does_not_wait_for_the_pause_after_the_failure_of_the_run_under_way(clock, work):
    periodic = Periodic("sweep", 10, work, clock, at_once=True, grace=5)
    work.gate, work.error = asyncio.Event(), RuntimeError("away")
    await periodic.start()
    await clock.advance(1)
    stopping = asyncio.ensure_future(periodic.stop())
    await clock.advance(1)
    work.gate.set()
    await clock.advance(0)
    assert stopping.done()
    assert work.runs == [0]


async def test_a_stop_cuts_a_run_that_does_not_finish(clock, work):
    work.gate = asyncio.Event()
    periodic = Periodic("sweep", 10, work, clock, grace=3)
    await periodic.start()
    await clock.advance(10)
    stopping = asyncio.create_task(periodic.stop())
    await clock.advance(2.9)
    assert not stopping.done()
    await clock.advance(0.1)
    await stopping


async def test_it_can_be_started_again(clock, work):
    periodic = Periodic("sweep", 10, work, clock)
    await periodic.start()
    await periodic.stop()
    await periodic.start()
    await clock.advance(10)
    assert work.runs == [10]
    await periodic.stop()


async def test_work_of_a_long_period_that_failed_does_not_wait_for_its_next_turn(clock, work):
    periodic = Periodic("once a day", 86_400, work, clock, at_once=True, ceiling=60)
    work.error = LookupError()
    await periodic.start()
    await clock.advance(60)
    work.error = None
    await clock.advance(120)
    assert work.runs == [0, 60, 180]
    await periodic.stop()


async def test_after_a_long_outage_what_comes_round_every_second_is_back_within_five(clock, work):
    periodic = Periodic("look", 1, work, clock)
    work.error = ConnectionError()
    await periodic.start()
    await clock.advance(3_600)
    away = len(work.runs)
    assert 3_600 / 5 <= away < 3_600 / 2  # it had slowed down, too
    work.error = None
    await clock.advance(5)
    assert len(work.runs) > away
    runs = len(work.runs)
    await clock.advance(3)
    assert len(work.runs) == runs + 3
    await periodic.stop()


async def test_work_that_comes_round_every_minute_keeps_its_rhythm_while_it_fails(clock, work):
    periodic = Periodic("sweep", 60, work, clock)
    work.error = ConnectionError()
    await periodic.start()
    await clock.advance(240)
    assert work.runs == [60, 120, 180, 240]
    await periodic.stop()


@pytest.mark.parametrize(
    ("error", "told"), [(Unavailable(), []), (ValueError("secret"), ["periodic sweep failed (ValueError in "])]
)
async def test_a_server_that_is_away_is_told_by_whoever_calls_it_and_not_by_each_work(clock, work, caplog, error, told):
    caplog.set_level(logging.INFO)
    periodic = Periodic("sweep", 10, work, clock)
    work.error = error
    await periodic.start()
    await clock.advance(10)
    await periodic.stop()
    assert periodic.last_failure.type == type(error).__name__
    assert [record.getMessage()[: len(told[0])] for record in caplog.records] == told
