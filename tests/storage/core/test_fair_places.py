"""Places shared fairly: who asks for much at once keeps himself waiting, and nobody else."""

import asyncio
import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator

import pytest

from recado.domain.core.errors import Unavailable
from recado.storage.core.shares.fair_places import FairPlaces


class Works:
    """Pieces of work, named by their owner and a number: `a1`. Each goes on until it is told to end."""

    def __init__(self, places: FairPlaces) -> None:
        self.begun: list[str] = []
        self._places = places
        self._changed = asyncio.Condition()
        self._ends: defaultdict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def ask(self, *names: str) -> None:
        for name in names:
            self._tasks[name] = asyncio.create_task(self._work(name), name=name)

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self._tasks[name]

    async def cancel(self, name: str) -> None:
        self._tasks[name].cancel()
        with pytest.raises(asyncio.CancelledError):
            await self._tasks[name]

    async def until_begun(self, *names: str) -> None:
        """Wait until exactly these have begun, in this order; whatever was asked for before has had its chance."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(lambda: len(self.begun) >= len(names))
        assert self.begun == list(names)

    async def _work(self, name: str) -> None:
        async with self._places.place(name[0]):
            self.begun.append(name)
            async with self._changed:
                self._changed.notify_all()
            await self._ends[name].wait()

    async def stop(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)


@pytest.fixture
async def works() -> AsyncIterator[Works]:
    made = Works(FairPlaces(2, most_waiting=3))
    yield made
    await made.stop()


async def test_an_owner_has_one_place_however_much_he_asks_for(works: Works) -> None:
    works.ask("a1", "a2", "a3", "b1")
    await works.until_begun("a1", "b1")


async def test_owners_take_turns_and_each_is_served_in_the_order_of_his_asking(works: Works) -> None:
    works.ask("a1", "b1", "a2", "a3", "c1", "b2", "c2")
    await works.until_begun("a1", "b1")
    await works.end("a1")
    await works.until_begun("a1", "b1", "a2")
    await works.end("b1")
    await works.until_begun("a1", "b1", "a2", "c1")
    await works.end("a2")
    await works.until_begun("a1", "b1", "a2", "c1", "b2")
    await works.end("c1")
    await works.until_begun("a1", "b1", "a2", "c1", "b2", "a3")
    await works.end("b2")
    await works.until_begun("a1", "b1", "a2", "c1", "b2", "a3", "c2")


async def test_beyond_what_may_wait_an_owner_is_told_to_come_again_and_others_are_not(works: Works) -> None:
    works.ask("a1", "a2", "a3", "a4", "a5", "b1")
    await works.until_begun("a1", "b1")
    with pytest.raises(Unavailable) as caught:
        await works.end("a5")
    assert (caught.value.status, caught.value.headers["Retry-After"]) == (503, "10")
    works.ask("c1")
    await works.end("b1")
    await works.until_begun("a1", "b1", "c1")


async def test_who_stops_waiting_leaves_his_place_in_the_queue_to_others(works: Works) -> None:
    works.ask("a1", "a2", "a3", "a4", "b1")
    await works.until_begun("a1", "b1")
    await works.cancel("a2")
    works.ask("a5")  # there is room again
    for name in ("a1", "a3", "a4", "a5"):
        await works.end(name)
    await works.until_begun("a1", "b1", "a3", "a4", "a5")


async def test_who_is_called_and_goes_at_that_moment_hands_his_place_on() -> None:
    places = FairPlaces(1, most_waiting=3)
    works = Works(places)
    async with places.place("x"):
        works.ask("a1", "b1")
        await asyncio.sleep(0)  # both ask now
    await works.cancel("a1")
    await works.until_begun("b1")
    await works.stop()


async def test_no_place_is_lost_or_given_twice_whatever_comes_and_goes() -> None:
    """Tasks that come, work a pass of the loop or several, and are cancelled at any moment."""
    chance = random.Random(11)
    places = FairPlaces(2, most_waiting=5)
    inside: Counter[str] = Counter()
    served: Counter[str] = Counter()

    async def work(owner: str) -> None:
        async with places.place(owner):
            inside[owner] += 1
            assert inside[owner] == 1
            assert inside.total() <= 2
            try:
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
                served[owner] += 1
            finally:
                inside[owner] -= 1

    tasks: list[asyncio.Task[None]] = []
    for _ in range(3_000):
        tasks.append(asyncio.create_task(work(chance.choice("abcd"))))
        if chance.random() < 0.3:
            chance.choice(tasks[-12:]).cancel()
        if chance.random() < 0.7:
            await asyncio.sleep(0)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(each) for each in results} == {type(None), asyncio.CancelledError, Unavailable}
    assert min(served[owner] for owner in "abcd") > 100
    for owner in "ab":  # both places are free, and nobody waits
        async with asyncio.timeout(60), places.place(owner):
            pass


async def test_an_owner_with_room_for_several_takes_them_and_no_more() -> None:
    places = FairPlaces(4, each=2, most_waiting=3, limits={"s": 3})
    assert [places.take("a") for _ in range(3)] == [True, True, False]
    places.leave("a")
    places.leave("a")
    assert [places.take("s") for _ in range(4)] == [True, True, True, False]
    assert [places.take("a"), places.take("b")] == [True, False]
