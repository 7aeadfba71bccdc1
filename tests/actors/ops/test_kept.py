"""Answers that are kept for a moment: who asks again does not cost the database anything."""

import asyncio
from datetime import UTC, datetime

import pytest

from recado.actors.ops.kept import MOST, Kept
from recado.domain.core.errors import Unavailable
from recado.engine.clock import VirtualClock

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Reading:
    """Counts how often it is asked; each answer takes `seconds` of the clock."""

    def __init__(self, clock: VirtualClock, seconds: float = 0.0) -> None:
        self.clock = clock
        self.seconds = seconds
        self.asked: list[str] = []
        self.fails = False

    async def __call__(self, key: str) -> int:
        self.asked.append(key)
        if self.seconds:
            await self.clock.sleep(self.seconds)
        if self.fails:
            raise Unavailable("away")
        return len(self.asked)


async def test_an_answer_is_good_for_a_second() -> None:
    clock = VirtualClock(NOON)
    reading = Reading(clock)
    kept = Kept(reading, clock=clock)
    assert [await kept.get("a"), await kept.get("a"), await kept.get("b")] == [1, 1, 2]
    await clock.advance(1.0)
    assert await kept.get("a") == 3


async def test_what_takes_long_is_asked_for_rarely() -> None:
    clock = VirtualClock(NOON)
    kept = Kept(Reading(clock, 0.5), clock=clock)
    first = asyncio.create_task(kept.get("a"))
    await clock.advance(0.5)
    assert await first == 1
    await clock.advance(4.9)
    assert await kept.get("a") == 1


async def test_who_asks_meanwhile_gets_the_same_answer_and_who_leaves_ends_it_for_nobody() -> None:
    clock = VirtualClock(NOON)
    reading = Reading(clock, 1.0)
    kept = Kept(reading, clock=clock)
    first, second = (asyncio.create_task(kept.get("a")) for _ in range(2))
    await clock.settle()
    first.cancel()
    await clock.advance(1.0)
    assert await second == 1
    assert reading.asked == ["a"]


async def test_what_is_forgotten_is_read_anew_also_when_it_was_being_read() -> None:
    clock = VirtualClock(NOON)
    reading = Reading(clock, 1.0)
    kept = Kept(reading, clock=clock)
    before = asyncio.create_task(kept.get("a"))
    await clock.settle()
    kept.forget("a")
    after = asyncio.create_task(kept.get("a"))
    await clock.settle()
    await clock.advance(1.0)
    assert (await before, await after, reading.asked) == (2, 2, ["a", "a"])


async def test_a_failure_is_not_kept() -> None:
    clock = VirtualClock(NOON)
    reading = Reading(clock)
    kept = Kept(reading, clock=clock)
    reading.fails = True
    with pytest.raises(Unavailable):
        await kept.get("a")
    reading.fails = False
    assert await kept.get("a") == 2


async def test_few_answers_are_kept() -> None:
    clock = VirtualClock(NOON)
    kept = Kept(Reading(clock), clock=clock)
    for number in range(3 * MOST):
        await kept.get(str(number))
    assert len(kept._answers) == MOST
