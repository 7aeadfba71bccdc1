"""The turns of long work: one step at a time, everything to an idle loop, and little beside requests (C31)."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import ClassVar

import pytest

from recado.engine.clock import VirtualClock
from recado.engine.turns import REST, SOON, Turns, in_pieces

STEP = 0.002  # seconds


class WorkingClock(VirtualClock):
    """Time passes with work, too."""

    def work(self, seconds: float) -> None:
        self._elapsed += seconds


@pytest.fixture
def clock(clock: VirtualClock) -> WorkingClock:
    return WorkingClock(clock.now())


@pytest.fixture
def turns(clock: WorkingClock) -> Turns:
    return Turns(clock)


@pytest.fixture
async def request_task(clock: WorkingClock) -> AsyncIterator["asyncio.Task[None]"]:
    """What answers a request that lasts."""
    task = asyncio.create_task(clock.sleep(60))
    yield task
    task.cancel()


class Work:
    """Long work: so many steps. `tasks`: of all that a test began."""

    tasks: ClassVar[list["asyncio.Task[None]"]] = []

    def __init__(self, turns: Turns, clock: WorkingClock, steps: int = 3) -> None:
        self.made = 0
        self._turns, self._clock, self._steps = turns, clock, steps
        self.task = asyncio.create_task(self._run())
        self.tasks.append(self.task)

    async def _run(self) -> None:
        for _ in range(self._steps):
            await self._turns.next()
            self._clock.work(STEP)
            self.made += 1


@pytest.fixture(autouse=True)
async def ended() -> AsyncIterator[None]:
    """Other tests have the same loop: no work of this one goes on in it."""
    yield
    for task in Work.tasks:
        task.cancel()
    Work.tasks.clear()


async def test_nobody_waits_for_more_than_one_step_in_a_turn_of_the_loop(turns: Turns, clock: WorkingClock) -> None:
    works = [Work(turns, clock) for _ in range(3)]
    made = [0]
    while made[-1] < 9:
        await asyncio.sleep(0)
        made.append(sum(work.made for work in works))
    assert max(after - before for before, after in itertools.pairwise(made)) == 1


async def test_whoever_asks_has_its_turn_behind_the_others(turns: Turns, clock: WorkingClock) -> None:
    one, other = Work(turns, clock), Work(turns, clock)
    while one.made < 3:
        assert abs(one.made - other.made) <= 1
        await asyncio.sleep(0)


async def test_an_idle_loop_is_all_for_long_work(turns: Turns, clock: WorkingClock) -> None:
    work = Work(turns, clock, 100)
    await clock.settle()
    assert work.made == 100


async def test_beside_a_request_it_rests_in_proportion_to_its_steps(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    turns.begin(request_task, clock.monotonic())
    work = Work(turns, clock)
    await clock.settle()
    assert work.made == 1
    await clock.advance(REST * STEP * 0.9)
    assert work.made == 1
    await clock.advance(REST * STEP * 0.2)
    assert work.made == 2


async def test_all_who_do_long_work_rest_together(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    turns.begin(request_task, clock.monotonic())
    works = [Work(turns, clock) for _ in range(3)]
    await clock.settle()
    assert sum(work.made for work in works) == 1


async def test_it_goes_on_once_nobody_is_served(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    turns.begin(request_task, clock.monotonic())
    work = Work(turns, clock)
    await clock.settle()
    turns.end(request_task)
    turns.end(request_task)
    await clock.settle()
    assert work.made == 3


async def test_a_request_that_is_long_work_itself_keeps_no_work_resting(turns: Turns, clock: WorkingClock) -> None:
    work = Work(turns, clock)
    turns.begin(work.task, clock.monotonic())
    await clock.settle()
    assert work.made == 3
    assert turns.served == 0


async def test_a_request_that_waits_for_long_keeps_no_work_resting(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    turns.begin(request_task, clock.monotonic())
    await clock.advance(SOON * 0.9)
    work = Work(turns, clock, 100)
    await clock.settle()
    assert work.made == 1
    await clock.advance(SOON * 0.2)
    assert work.made == 100


async def test_a_body_that_came_late_takes_no_time_of_the_request(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    turns.begin(request_task, clock.monotonic())
    await clock.advance(SOON * 2)
    turns.begin(request_task, clock.monotonic())
    work = Work(turns, clock)
    await clock.settle()
    assert work.made == 1


async def test_a_turn_that_nobody_wants_any_more_is_passed_over(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    turns.begin(request_task, clock.monotonic())
    resting, cancelled, waiting = (Work(turns, clock) for _ in range(3))
    await clock.settle()
    cancelled.task.cancel()
    await clock.advance(REST * STEP * 1.1)
    assert [resting.made, cancelled.made, waiting.made] == [1, 0, 1]


def test_a_line_that_its_loop_left_behind_keeps_nobody_waiting(turns: Turns, clock: WorkingClock) -> None:
    async def leave_it_resting() -> None:
        turns.begin(asyncio.create_task(asyncio.sleep(60)), clock.monotonic())
        Work(turns, clock)
        await clock.settle()

    asyncio.run(leave_it_resting())
    asyncio.run(asyncio.wait_for(turns.next(), 10))


async def test_a_loop_in_another_thread_has_a_line_of_its_own(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    turns.begin(request_task, clock.monotonic())
    resting = Work(turns, clock)
    await clock.settle()
    await asyncio.to_thread(asyncio.run, turns.next())
    await clock.advance(REST * STEP * 1.1)
    assert resting.made == 2


async def test_pieces_come_in_order_and_none_is_too_long() -> None:
    assert [list(piece) async for piece in in_pieces(range(7), 3)] == [[0, 1, 2], [3, 4, 5], [6]]


async def test_a_function_has_its_turn_in_the_line_and_with_it_the_tasks_that_it_begins(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    tasks: list[asyncio.Task[None]] = []
    made: list[float] = []

    async def work() -> None:
        clock.work(STEP)

    def step() -> None:
        made.append(clock.monotonic())
        tasks.extend(asyncio.create_task(work()) for _ in range(3))
        if len(made) < 2:
            turns.ask(step)

    turns.begin(request_task, clock.monotonic())
    turns.ask(step)
    await clock.settle()
    assert (len(made), turns.served) == (1, 1)
    await clock.advance(3 * STEP * REST)
    assert len(made) == 2
    assert made[1] - made[0] >= 3 * STEP * (1 + REST)
    await asyncio.gather(*tasks)


async def test_a_function_that_fails_leaves_the_line_to_the_others(
    turns: Turns, clock: WorkingClock, request_task: "asyncio.Task[None]"
) -> None:
    def fail() -> None:
        raise RuntimeError("a fault of ours")

    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: heard.append(told["exception"]))
    turns.begin(request_task, clock.monotonic())
    turns.ask(fail)
    work = Work(turns, clock, 1)
    await clock.settle()
    await clock.advance(1)
    assert (work.made, len(heard)) == (1, 1)


async def test_a_function_has_its_first_turn_at_once_where_nobody_is_served_and_the_second_in_the_line(
    turns: Turns, clock: WorkingClock
) -> None:
    made: list[str] = []
    turns.ask(lambda: made.append("first"))
    turns.ask(lambda: made.append("second"))
    assert made == ["first"]
    await clock.settle()
    assert made == ["first", "second"]
