"""Who waits for whom while samples for operators are made (C34.1)."""

import asyncio
import gc
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

from tests.waiting import until

from recado.actors.ops.scope_numbers import NO_SUMS, ScopeLook
from recado.engine.child import Child, Node
from recado.engine.clock import VirtualClock
from recado.http.routes.ops.samples import Samples
from recado.storage.ops.scope import Scope

NOTHING: Any = None


class Slow:
    """Numbers whose looks end when they may."""

    def __init__(self) -> None:
        self.looks: list[Scope] = []
        self.may_end = asyncio.Event()

    async def look(self, scope: Scope, most: int | None) -> ScopeLook:
        assert most is None  # all are listed
        self.looks.append(scope)
        await self.may_end.wait()
        return ScopeLook([], NO_SUMS)


async def test_an_organization_holds_one_of_the_two_places_whatever_its_environments() -> None:
    slow: Any = Slow()
    clock = VirtualClock(datetime(2026, 1, 31, 12, tzinfo=UTC))
    samples = Samples(numbers=slow, actors=NOTHING, webhooks=NOTHING, providers=NOTHING, clock=clock)
    mine, also_mine, theirs = Scope("org_1", "live"), Scope("org_1", "test"), Scope("org_2", "live")
    looks = [asyncio.create_task(samples.numbers.get(scope)) for scope in (mine, also_mine, theirs)]

    async def both() -> bool:
        return len(slow.looks) == 2

    await until(both, "two look")
    assert slow.looks == [mine, theirs]
    slow.may_end.set()
    assert await asyncio.gather(*looks) == [[], [], []]
    assert slow.looks == [mine, theirs, also_mine]


class Leaf(Child):
    """A child that does nothing."""

    kind = "Leaf"


class Tree:
    """Actors as they are in memory now."""

    def __init__(self, *names: str) -> None:
        self.leaves = [Leaf(name) for name in names]

    async def children(self, _: Scope, __: int) -> AsyncIterator[list[Leaf]]:
        yield list(self.leaves)

    async def lanes_away(self, _: Scope, __: int) -> AsyncIterator[list[Node]]:
        for nothing in ():
            yield nothing


async def test_what_was_rendered_of_an_actor_is_forgotten_when_it_leaves_memory() -> None:
    tree: Any = Tree("one", "two")
    clock = VirtualClock(datetime(2026, 1, 31, 12, tzinfo=UTC))
    samples = Samples(numbers=NOTHING, actors=tree, webhooks=NOTHING, providers=NOTHING, clock=clock)
    scope = Scope("org_1", "live")
    assert [path for path, _ in await samples.first_actors.get(scope)] == ["one", "two"]
    del tree.leaves[0]
    gc.collect()
    assert [child.name for child in samples._actors_known] == ["two"]
    await clock.advance(2.0)
    assert [path for path, _ in await samples.first_actors.get(scope)] == ["two"]
