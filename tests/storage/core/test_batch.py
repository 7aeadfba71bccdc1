"""The batcher: callers are answered after the commit, each with the result of its own row, and its queue is bounded."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from tests.storage.batching import INSERT, START, Recorder, make_table, stored

from recado.domain.core.clock import TimerHandle
from recado.domain.core.errors import Unavailable
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections import batch
from recado.storage.core.connections.batch import ANSWERED_AT_ONCE, LAST_ANSWER, Batcher
from recado.storage.core.connections.postgres import Database


async def test_each_caller_gets_the_result_of_its_own_row() -> None:
    batcher = Batcher("test", Recorder(), clock=VirtualClock(START))
    await batcher.start()
    assert await asyncio.gather(*(batcher.put(row) for row in range(1200))) == [row * 10 for row in range(1200)]
    assert (batcher.rows, batcher.batches, batcher.queued) == (1200, 3, 0)
    await batcher.stop()


async def test_callers_are_answered_after_the_commit_and_not_before(database: Database) -> None:
    await make_table(database)
    executed, may_commit = asyncio.Event(), asyncio.Event()

    async def run(rows: Sequence[int]) -> Sequence[int]:
        async with database.hot.transaction() as connection:
            await connection.execute(INSERT, list(rows))
            executed.set()
            await may_commit.wait()
        return rows

    batcher = Batcher("test", run, clock=SystemClock())
    await batcher.start()
    answer = batcher.put(1)
    await executed.wait()
    assert await stored(database) == []
    assert not answer.done()
    may_commit.set()
    assert await answer == 1
    assert await stored(database) == [1]
    await batcher.stop()


async def test_what_gathers_behind_a_batch_in_flight_leaves_as_one() -> None:
    run = Recorder()
    run.gate.clear()
    batcher = Batcher("test", run, clock=VirtualClock(START), concurrency=1, max_rows=4)
    await batcher.start()
    answers = [batcher.put(0)]
    await run.batches_begun(1)
    answers += [batcher.put(row) for row in range(1, 7)]
    run.gate.set()
    await asyncio.gather(*answers)
    assert run.batches == [[0], [1, 2, 3, 4], [5, 6]]
    await batcher.stop()


async def test_one_flusher_waits_for_more_rows_and_not_two(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, run, waits = VirtualClock(START), Recorder(), []
    call_at = clock.call_at

    def counted(when: float, callback: Callable[[], object]) -> TimerHandle:
        waits.append(round(when - clock.monotonic(), 6))
        return call_at(when, callback)

    monkeypatch.setattr(clock, "call_at", counted)
    batcher = Batcher("test", run, clock=clock, concurrency=2, max_rows=8, linger=0.01)
    await batcher.start()
    await asyncio.gather(*(batcher.put(row) for row in range(4)))  # traffic is dense now
    answers = [batcher.put(4)]
    await clock.advance(0.005)
    answers += [batcher.put(row) for row in (5, 6, 7)]
    await clock.advance(0.005)
    await asyncio.gather(*answers)
    assert run.batches[1:] == [[4, 5, 6, 7]]
    assert waits == [0.01]
    await batcher.stop()


async def test_what_is_more_than_the_batch_that_was_waited_for_leaves_at_once_too() -> None:
    clock, run = VirtualClock(START), Recorder()
    batcher = Batcher("test", run, clock=clock, concurrency=2, max_rows=4, linger=0.01)
    await batcher.start()
    await asyncio.gather(*(batcher.put(row) for row in range(4)))
    run.gate.clear()
    answers = [batcher.put(row) for row in range(4, 7)]
    await clock.advance(0.005)
    answers += [batcher.put(row) for row in range(7, 12)]
    await clock.advance(0.005)
    await run.batches_begun(3)
    assert run.batches[1:] == [[4, 5, 6, 7], [8, 9, 10, 11]]
    run.gate.set()
    await asyncio.gather(*answers)
    await batcher.stop()


async def test_rows_that_are_enough_for_a_batch_wait_for_no_more() -> None:
    clock, run = VirtualClock(START), Recorder()
    batcher = Batcher("test", run, clock=clock, concurrency=1, max_rows=8, linger=0.01, enough=4)
    await batcher.start()
    await asyncio.gather(*(batcher.put(row) for row in range(4)))  # traffic is dense now
    answers = [batcher.put(row) for row in range(4, 7)]
    await clock.advance(0.005)
    assert len(run.batches) == 1
    answers.append(batcher.put(7))  # no time passes
    await asyncio.gather(*answers)
    assert run.batches[1:] == [[4, 5, 6, 7]]
    await batcher.stop()


async def test_a_row_that_somebody_waits_for_ends_the_wait_for_more() -> None:
    clock, run = VirtualClock(START), Recorder()
    batcher = Batcher("test", run, clock=clock, concurrency=1, max_rows=8, linger=0.01)
    await batcher.start()
    await asyncio.gather(*(batcher.put(row) for row in range(4)))  # traffic is dense now
    answers = [batcher.put(4)]
    await clock.advance(0.005)
    assert len(run.batches) == 1
    await asyncio.gather(*answers, batcher.put(5, hurries=True))  # no time passes
    assert run.batches[1:] == [[4, 5]]
    run.gate.clear()
    answers = [batcher.put(row) for row in range(6, 10)]
    await run.batches_begun(3)
    answers.append(batcher.put(10, hurries=True))  # behind a batch in flight
    run.gate.set()
    await asyncio.gather(*answers)
    assert run.batches[2:] == [[6, 7, 8, 9], [10]]
    await batcher.stop()


def hundred(row: int) -> str:
    """Whose a row is in these tests."""
    return str(row // 100)


async def test_a_crowd_leaves_a_flusher_to_everybody_else() -> None:
    run = Recorder()
    run.gate.clear()
    batcher = Batcher("test", run, clock=VirtualClock(START), concurrency=2, max_rows=4, owner=hundred)
    await batcher.start()
    answers = [batcher.put(row) for row in range(1, 13)]
    await run.batches_begun(1)
    answers += [batcher.put(row) for row in (101, 201)]
    await run.batches_begun(2)
    assert run.batches == [[1, 2, 3, 4], [101, 201]]
    run.gate.set()
    await asyncio.gather(*answers)
    assert run.batches[2:] == [[5, 6, 7, 8], [9, 10, 11, 12]]
    await batcher.stop()


async def test_owners_take_turns_and_a_crowd_shares_no_batch() -> None:
    run = Recorder()
    batcher = Batcher("test", run, clock=VirtualClock(START), concurrency=1, max_rows=4, owner=hundred)
    await batcher.start()
    answers = [batcher.put(row) for row in (*range(1, 13), *range(101, 106), 201)]
    await asyncio.gather(*answers)
    assert run.batches == [[1, 2, 3, 4], [101, 102, 103, 104], [201, 105], [5, 6, 7, 8], [9, 10, 11, 12]]
    assert batcher.queued == batcher.pending == 0
    await batcher.stop()


@pytest.mark.parametrize(("rows", "most"), [(range(100), 100), (range(1, 101), ANSWERED_AT_ONCE)])
async def test_beside_others_the_callers_of_a_large_batch_do_not_all_go_on_in_one_pass_of_the_loop(
    rows: range, most: int
) -> None:
    batcher = Batcher("test", Recorder(), clock=VirtualClock(START), max_rows=100, owner=hundred)
    await batcher.start()
    loop = asyncio.get_running_loop()
    went_on: list[int] = [0]

    def next_pass() -> None:
        went_on.append(0)
        nonlocal passing
        passing = loop.call_soon(next_pass)

    def go_on(_: "asyncio.Future[int]") -> None:
        went_on[-1] += 1

    passing = loop.call_soon(next_pass)
    answers = [batcher.put(row) for row in rows]
    for answer in answers:
        answer.add_done_callback(go_on)
    await asyncio.gather(*answers)
    passing.cancel()
    assert sum(went_on) == 100
    assert most <= max(went_on) <= most + 1  # the other owner has a batch, too
    await batcher.stop()


async def test_no_more_batches_are_in_flight_than_allowed() -> None:
    run = Recorder()
    run.gate.clear()
    clock = VirtualClock(START)
    batcher = Batcher("test", run, clock=clock, concurrency=2, max_rows=1)
    await batcher.start()
    answers = [batcher.put(row) for row in range(5)]
    await clock.settle()
    assert run.batches == [[0], [1]]
    run.gate.set()
    await asyncio.gather(*answers)
    assert len(run.batches) == 5
    await batcher.stop()


async def test_a_full_queue_refuses_at_once_and_takes_rows_again_later() -> None:
    run = Recorder()
    run.gate.clear()
    batcher = Batcher("test", run, clock=VirtualClock(START), concurrency=1, max_rows=2, max_queue=3)
    await batcher.start()
    answers = [batcher.put(0)]
    await run.batches_begun(1)
    answers += [batcher.put(row) for row in (1, 2, 3)]
    with pytest.raises(Unavailable):
        batcher.put(4)
    run.gate.set()
    assert await asyncio.gather(*answers) == [0, 10, 20, 30]
    assert await batcher.put(5) == 50
    await batcher.stop()


async def test_stop_flushes_what_was_taken_and_refuses_what_comes_later() -> None:
    batcher = Batcher("test", Recorder(), clock=VirtualClock(START), max_rows=2)
    await batcher.start()
    answers = [batcher.put(row) for row in range(9)]
    await batcher.stop()
    assert [answer.result() for answer in answers] == [row * 10 for row in range(9)]
    await batcher.stop()
    with pytest.raises(Unavailable):
        batcher.put(1)


async def test_a_batcher_that_was_stopped_can_start_again() -> None:
    batcher = Batcher("test", Recorder(), clock=VirtualClock(START))
    for row in (1, 2):
        await batcher.start()
        await batcher.start()
        assert await batcher.put(row) == row * 10
        await batcher.stop()


async def test_when_stop_itself_is_cut_off_nobody_is_left_without_an_answer() -> None:
    run = Recorder()
    run.gate.clear()
    clock = VirtualClock(START)
    batcher = Batcher("test", run, clock=clock, concurrency=1, max_rows=1)
    await batcher.start()
    answers = [batcher.put(row) for row in range(3)]
    await run.batches_begun(1)
    stop = asyncio.create_task(batcher.stop())
    await clock.settle()
    stop.cancel()
    await clock.settle()
    assert not stop.done()
    await clock.advance(LAST_ANSWER)
    with pytest.raises(asyncio.CancelledError):
        await stop
    outcomes = await asyncio.gather(*answers, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [Unavailable] * 3


async def test_when_stop_is_cut_off_callers_still_hear_of_a_commit_that_is_on_its_way(database: Database) -> None:
    await make_table(database)
    committed, may_answer = asyncio.Event(), asyncio.Event()

    async def run(rows: Sequence[int]) -> Sequence[int]:
        await database.hot.fetch(INSERT, list(rows))
        committed.set()
        await may_answer.wait()
        return rows

    batcher = Batcher("test", run, clock=SystemClock(), concurrency=1, max_rows=1)
    await batcher.start()
    answers = [batcher.put(row) for row in (1, 2)]
    await committed.wait()
    stop = asyncio.create_task(batcher.stop())
    clock = VirtualClock(START)
    await clock.settle()
    stop.cancel()
    await clock.settle()
    may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await stop
    outcomes = await asyncio.gather(*answers, return_exceptions=True)
    assert (outcomes[0], type(outcomes[1])) == (1, Unavailable)
    assert await stored(database) == [1]


async def test_a_large_batch_that_is_being_answered_when_stop_is_cut_off_is_answered_whole() -> None:
    """Beside others its callers are told in several passes of the loop."""
    rows, run, clock = 4 * ANSWERED_AT_ONCE, Recorder(), VirtualClock(START)
    run.gate.clear()
    batcher = Batcher("test", run, clock=clock, concurrency=1, max_rows=rows, owner=str)
    await batcher.start()
    answers = [batcher.put(row) for row in range(rows)]
    await run.batches_begun(1)
    stop = asyncio.create_task(batcher.stop())
    await clock.settle()
    stop.cancel()
    await clock.settle()
    run.gate.set()
    with pytest.raises(asyncio.CancelledError):
        await stop
    assert await asyncio.gather(*answers) == [row * 10 for row in range(rows)]


async def test_the_half_of_a_batch_that_is_committed_is_not_refused_with_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batch, "LAST_ANSWER", 0.0)
    half, begun, never = 20 * ANSWERED_AT_ONCE, asyncio.Event(), asyncio.Event()

    async def run(rows: Sequence[int]) -> Sequence[int]:
        if len(rows) > half:
            raise ValueError("some row is at fault")
        if rows[0] == half:
            begun.set()
            await never.wait()
        return rows

    batcher = Batcher("test", run, clock=VirtualClock(START), concurrency=1, max_rows=2 * half, owner=str)
    await batcher.start()
    answers = [batcher.put(row) for row in range(2 * half)]
    await begun.wait()
    [flusher] = batcher._flushers
    flusher.cancel()
    outcomes = await asyncio.gather(*answers, return_exceptions=True)
    assert outcomes[:half] == list(range(half))
    assert {type(outcome) for outcome in outcomes[half:]} == {Unavailable}


async def test_a_row_whose_caller_left_in_time_is_not_written() -> None:
    run = Recorder()
    run.gate.clear()
    batcher = Batcher("test", run, clock=VirtualClock(START), concurrency=1)
    await batcher.start()
    first = batcher.put(0)
    await run.batches_begun(1)
    second, third = batcher.put(1), batcher.put(2)
    first.cancel()
    second.cancel()
    run.gate.set()
    assert await third == 20
    assert run.batches == [[0], [2]]
    await batcher.stop()


async def test_an_exception_among_the_results_is_raised_to_its_caller_alone() -> None:
    async def run(rows: Sequence[int]) -> list[int | Exception]:
        return [LookupError("two") if row == 2 else row for row in rows]

    batcher = Batcher("test", run, clock=VirtualClock(START))
    await batcher.start()
    one, two, three = (batcher.put(row) for row in (1, 2, 3))
    assert (await one, await three) == (1, 3)
    with pytest.raises(LookupError, match="two"):
        await two
    await batcher.stop()


async def test_a_run_that_answers_too_few_results_is_an_error_for_all() -> None:
    async def run(rows: Sequence[int]) -> Sequence[int]:
        return rows[:-1]

    batcher = Batcher("test", run, clock=VirtualClock(START))
    await batcher.start()
    outcomes = await asyncio.gather(batcher.put(1), batcher.put(2), return_exceptions=True)
    assert [str(outcome) for outcome in outcomes] == ["the batch test answered 1 of 2 rows"] * 2
    await batcher.stop()


async def test_rows_that_come_later_are_not_waited_for() -> None:
    run = Recorder()
    run.gate.clear()
    clock = VirtualClock(START)
    batcher = Batcher("test", run, clock=clock, concurrency=1, max_rows=1)
    await batcher.start()
    answers = [batcher.put(row) for row in range(2)]
    await run.batches_begun(1)
    settled = asyncio.ensure_future(batcher.settled())
    await clock.settle()
    run.gate.set()
    await answers[0]
    assert not settled.done()
    run.gate.clear()
    later = batcher.put(2)
    run.gate.set()
    await settled
    assert answers[1].done()
    await later
    await batcher.settled()
    await batcher.stop()
