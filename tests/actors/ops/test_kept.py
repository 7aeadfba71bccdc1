"""Answers that are kept for a moment: who asks again does not cost the database anything."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from recado.actors.ops.kept import APART_FOR, AT_LEAST, MOST, REGULAR, SLOW, TOGETHER, Kept, KeptTogether
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


class ReadingAll:
    """Notes who is read together; it takes `seconds[key]` of the clock for the slowest of them."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.asked: list[list[str]] = []
        self.seconds: dict[str, float] = {}
        self.faulty = ""

    async def __call__(self, keys: Sequence[str]) -> dict[str, int]:
        self.asked.append(list(keys))
        number = len(self.asked)
        if seconds := max(self.seconds.get(key, 0.0) for key in keys):
            await self.clock.sleep(seconds)
        if self.faulty in keys:
            raise Unavailable("away")
        return dict.fromkeys(keys, number)

    def taken(self) -> list[list[str]]:
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOON)


@pytest.fixture
def together(clock: VirtualClock) -> ReadingAll:
    return ReadingAll(clock)


def kept_together(clock: VirtualClock, reading: ReadingAll) -> KeptTogether[str, int]:
    return KeptTogether(reading, clock=clock, apart=lambda key: key == "all")


async def test_who_is_asked_for_again_and_again_is_read_together(clock: VirtualClock, together: ReadingAll) -> None:
    kept = kept_together(clock, together)
    for key in ("a", "b", "all", "c"):
        await kept.get(key)
    assert together.taken() == [["a"], ["b"], ["all"], ["c"]]
    for _ in range(2):
        await clock.advance(1.0)
        assert len({await kept.get(key) for key in ("c", "a", "b")}) == 1
        await kept.get("all")
        first, second = together.taken()
        assert (first[0], sorted(first), second) == ("c", ["a", "b", "c"], ["all"])


async def test_whom_nobody_asked_for_lately_is_not_read(clock: VirtualClock, together: ReadingAll) -> None:
    kept = kept_together(clock, together)
    await kept.get("a")
    await clock.advance(REGULAR + 0.1)
    await kept.get("b")
    assert together.taken() == [["a"], ["b"]]
    assert list(kept._asked) == ["b"]


async def test_no_more_than_so_many_are_read_at_once(clock: VirtualClock, together: ReadingAll) -> None:
    kept = kept_together(clock, together)
    keys = [str(n) for n in range(TOGETHER + 5)]
    for key in keys:
        await kept.get(key)
    together.taken()
    await clock.advance(1.0)
    for key in keys:
        await kept.get(key)
    assert [len(each) for each in together.taken()] == [TOGETHER, 5]


async def test_who_asks_for_another_that_is_being_read_waits_for_that_unless_it_was_forgotten(
    clock: VirtualClock, together: ReadingAll
) -> None:
    kept = kept_together(clock, together)
    for key in ("a", "b"):
        await kept.get(key)
    await clock.advance(1.0)
    together.seconds = {"a": 0.1}
    together.taken()
    first, second = asyncio.create_task(kept.get("a")), asyncio.create_task(kept.get("b"))
    await clock.settle()
    kept.forget("b")  # it was changed
    third = asyncio.create_task(kept.get("b"))
    await clock.settle()
    assert together.asked == [["a", "b"], ["b"]]
    await clock.advance(0.1)
    assert (await first, await second, await third) == (1, 1, 2)
    assert await kept.get("b") == 2


async def test_one_that_costs_much_stands_apart_and_makes_no_other_answer_old(
    clock: VirtualClock, together: ReadingAll
) -> None:
    kept = kept_together(clock, together)

    async def second() -> list[list[str]]:
        asking = [asyncio.create_task(kept.get(key)) for key in ("a", "b", "c")]
        await clock.advance(2 * SLOW)
        await asyncio.gather(*asking)
        await clock.advance(1.0)
        return together.taken()

    await second()
    together.seconds = {"b": 2 * SLOW}
    assert await second() == [["a", "b", "c"]]
    seen: list[list[str]] = []
    for _ in range(int(APART_FOR)):
        seen += await second()
    # First each by itself; then those two together, and the slow one as seldom as it costs.
    apart = seen.index(["a", "c"])
    assert all(len(each) == 1 for each in seen[:apart])
    assert ["b"] in seen[:apart]
    assert all(each in (["a", "c"], ["b"]) for each in seen[apart:])
    assert seen.count(["b"]) < len(seen) / 4


async def test_what_is_read_beside_one_that_costs_much_is_read_again_soon(
    clock: VirtualClock, together: ReadingAll
) -> None:
    kept = kept_together(clock, together)
    for key in ("a", "b"):
        await kept.get(key)
    await clock.advance(1.0)
    together.seconds = {"b": 10 * SLOW}
    asked = asyncio.create_task(kept.get("a"))
    await clock.advance(10 * SLOW)
    await asked
    together.taken()
    await clock.advance(AT_LEAST)
    await kept.get("a")
    assert together.taken() == [["a"]]


@pytest.mark.parametrize("faulty", ["a", "b"])
async def test_a_failure_of_several_is_the_one_that_fails_by_itself(
    clock: VirtualClock, together: ReadingAll, faulty: str
) -> None:
    kept = kept_together(clock, together)
    for key in ("a", "b", "c"):
        await kept.get(key)
    await clock.advance(1.0)
    together.faulty = faulty
    together.taken()
    asked = await asyncio.gather(*(kept.get(key) for key in ("a", "b", "c")), return_exceptions=True)
    assert [isinstance(each, Unavailable) for each in asked] == [key == faulty for key in ("a", "b", "c")]
    assert together.asked[0] == ["a", "b", "c"]
    assert sorted(together.asked[1:]) == [["a"], ["b"], ["c"]]
