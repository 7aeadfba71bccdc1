"""Restarts on operators' orders: how many are under way at once, in all and of one organization (C34.1)."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import orjson
import pytest

from recado.actors.ops import actor_tree
from recado.actors.ops.actor_tree import ONLY_WITH_THE_PROGRAM, ActorPlace, ActorTree
from recado.actors.ops.live_actor import said_of_actor
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.senders.sender import SenderKey
from recado.engine.actor import Actor
from recado.engine.child import State
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor
from recado.storage.core.shares.callers import SERVICE, working_for
from recado.storage.ops.scope import INSTALLATION, Scope

NO_DATABASE: Any = None  # of lanes nothing is stored that this looks at


class Leaving(Actor):
    """Ends when it may."""

    may_end: asyncio.Event

    async def stopping(self) -> None:
        await self.may_end.wait()


async def test_restarts_under_way_are_bounded_in_all_and_of_an_organization(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(actor_tree, "MOST_RESTARTS", 3)
    monkeypatch.setattr(actor_tree, "RESTARTS_OF_AN_ORGANIZATION", 2)
    Leaving.may_end = asyncio.Event()
    runtime = Runtime.system()
    root = Supervisor("recado", runtime=runtime)
    lanes, webhooks = (root.add_supervisor(Supervisor(name, runtime=runtime)) for name in ("lanes", "webhooks"))
    tree = ActorTree(NO_DATABASE, root=root, lanes=lanes, webhooks=webhooks)
    keys = [SenderKey(f"org_{owner}", "test", "chatapp", f"num_{n}") for owner in range(2) for n in range(3)]
    for key in keys:
        lanes.spawn(key, Leaving)
    await root.start()

    async def place(key: SenderKey) -> ActorPlace:
        found = await tree.find(INSTALLATION, "recado/lanes/" + ":".join(key))
        assert found is not None
        return found

    mine, theirs = [await place(key) for key in keys[:3]], [await place(key) for key in keys[3:]]
    for each in mine[:2]:
        tree.restart(each)
    tree.restart(mine[0])  # it is under way
    with pytest.raises(Unavailable):
        tree.restart(mine[2])
    tree.restart(theirs[0])
    with pytest.raises(Unavailable):
        tree.admit(theirs[1])
    Leaving.may_end.set()
    await asyncio.wait([task for _, task in tree._restarts.values()])
    assert [lanes.find(key).restarts for key in keys] == [1, 1, 0, 1, 0, 0]  # type: ignore[union-attr]
    tree.restart(mine[2])
    await root.stop()


async def test_what_an_order_starts_again_does_not_run_with_the_share_of_whoever_gave_it() -> None:
    starters = []

    class Noting:
        async def start(self) -> None:
            starters.append(working_for.get())

        async def stop(self) -> None:
            """Nothing."""

    runtime = Runtime.system()
    root = Supervisor("recado", runtime=runtime)
    lanes, webhooks = (root.add_supervisor(Supervisor(name, runtime=runtime)) for name in ("lanes", "webhooks"))
    root.add_service("callbacks", Noting())
    tree = ActorTree(NO_DATABASE, root=root, lanes=lanes, webhooks=webhooks)
    await root.start()
    place = await tree.find(INSTALLATION, "recado/callbacks")
    assert place is not None
    working_for.set("org_1")
    tree.restart(place)
    await asyncio.wait([task for _, task in tree._restarts.values()])
    assert starters == [SERVICE, SERVICE]
    await root.stop()


async def test_what_knows_which_calls_have_begun_is_not_restarted_apart() -> None:
    stopped: list[object] = []

    class Nothing:
        async def start(self) -> None:
            """Nothing."""

        async def stop(self) -> None:
            stopped.append(self)

    runtime = Runtime.system()
    root = Supervisor("recado", runtime=runtime)
    lanes, webhooks = (root.add_supervisor(Supervisor(name, runtime=runtime)) for name in ("lanes", "webhooks"))
    for name in ONLY_WITH_THE_PROGRAM:
        root.add_service(name, Nothing())
    tree = ActorTree(NO_DATABASE, root=root, lanes=lanes, webhooks=webhooks)
    await root.start()
    for name in ONLY_WITH_THE_PROGRAM:
        place = await tree.find(INSTALLATION, f"recado/{name}")
        assert place is not None
        for order in (tree.admit, tree.restart):
            with pytest.raises(Problem, match="with the whole program alone") as refused:
                order(place)
            assert (refused.value.code, refused.value.status) == ("CONFLICT", 409)
    assert (tree._restarts, stopped) == ({}, [])
    lanes.spawn("calls", Actor)  # of that name somewhere else
    place = await tree.find(INSTALLATION, "recado/lanes/calls")
    assert place is not None
    tree.admit(place)
    await root.stop()


class Away:
    """Another process that has one lane."""

    def __init__(self, lane: SenderKey) -> None:
        self._lane = lane
        self.restarted: list[SenderKey] = []

    async def lane(self, sender: SenderKey) -> str | None:
        return "Lane" if sender == self._lane else None

    async def restart_lane(self, sender: SenderKey) -> None:
        self.restarted.append(sender)

    async def lanes(self, scope: Scope, most: int | None) -> Sequence[list[Any]]:
        return ()


async def test_a_lane_of_another_process_is_restarted_there_by_whoever_may_see_it() -> None:
    runtime = Runtime.system()
    root = Supervisor("recado", runtime=runtime)
    lanes, webhooks = (root.add_supervisor(Supervisor(name, runtime=runtime)) for name in ("lanes", "webhooks"))
    tree = ActorTree(NO_DATABASE, root=root, lanes=lanes, webhooks=webhooks)
    number = SenderKey("org_1", "test", "chatapp", "num_1")
    path = "recado/lanes/" + ":".join(number)
    await root.start()
    assert await tree.find(INSTALLATION, path) is None
    away = Away(number)
    tree.have_away(away)
    for scope in (INSTALLATION, Scope("org_1", "test")):
        place = await tree.find(scope, path)
        assert place is not None
        assert (place.kind, place.organization_id, place.env, place.target_id) == ("Lane", "org_1", "test", "num_1")
        tree.restart(place)
        await asyncio.wait([task for _, task in tree._restarts.values()])
        assert away.restarted.pop() == number
    for scope in (Scope("org_1", "live"), Scope("org_2", "test")):
        assert await tree.find(scope, path) is None
    for other in ("recado/lanes/num_1", path + ":more", path.replace("num_1", "num_2")):
        assert await tree.find(INSTALLATION, other) is None
    await root.stop()


class Beside(Away):
    """Another process, of which the link says what its tree says."""

    def __init__(self, tree: ActorTree) -> None:
        self._tree = tree

    async def lanes(self, scope: Scope, most: int | None) -> Sequence[list[Any]]:
        said = [said_of_actor(each) for each in await self._tree.lanes_here(scope, most)]
        return list(orjson.loads(orjson.dumps(said)))


async def test_lanes_of_another_process_are_listed_as_if_they_were_here() -> None:
    runtime = Runtime.system()
    trees, supervisors = [], []
    for name in ("recado", "worker"):
        root = Supervisor(name, runtime=runtime)
        lanes, webhooks = (root.add_supervisor(Supervisor(each, runtime=runtime)) for each in ("lanes", "webhooks"))
        trees.append(ActorTree(NO_DATABASE, root=root, lanes=lanes, webhooks=webhooks))
        supervisors.append((root, lanes))
    (root, _), (other, lanes) = supervisors
    keys = [SenderKey(f"org_{owner}", "test", "chatapp", f"num_{n}") for owner in (1, 2) for n in range(3)]
    for key in keys:
        lanes.spawn(key, Actor)
    for each in (root, other):
        await each.start()
    here, there = trees
    assert [each async for each in here.lanes_away(INSTALLATION)] == []
    here.have_away(Beside(there))
    for scope, mine in ((INSTALLATION, keys), (Scope("org_2", "test"), keys[3:]), (Scope("org_2", "live"), [])):
        for most in (None, 0, 2):
            nodes = [node async for some in here.lanes_away(scope, most) for node in some]
            assert [node.path for node in nodes] == ["recado/lanes/" + ":".join(key) for key in mine[:most]]
            assert {node.state for node in nodes} <= {State.RUNNING}
    node = (await anext(here.lanes_away(INSTALLATION)))[0]
    assert replace(node, path="") == replace(lanes.children()[0].node(), path="")
    for each in (root, other):
        await each.stop()
