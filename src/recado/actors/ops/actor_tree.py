"""The supervisor tree as operators see it, and the restart of a part of it on their order (C34.1).

An organization sees the lanes of its senders and the actors of its subscriptions, in its environment; the administrator
sees everything.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

import structlog

from recado.actors.ops.live_actor import actor_of
from recado.domain.core.errors import Unavailable, conflict
from recado.domain.senders.sender import SenderKey
from recado.engine.child import Child, Node
from recado.engine.supervisor import Supervisor
from recado.engine.turns import in_pieces, turns
from recado.storage.core.connections.postgres import Database
from recado.storage.ops import ops
from recado.storage.ops.scope import Scope

AT_ONCE: Final = 250  # actors in a turn of the event loop
PASSED_AT_ONCE: Final = 5_000  # of which is only found whose they are
MOST_RESTARTS: Final = 100  # under way at once
RESTARTS_OF_AN_ORGANIZATION: Final = 25  # of them
ONLY_WITH_THE_PROGRAM: Final = frozenset({"sending", "calls", "direct sends", "ownership", "rescuer"})
"""Services below the root that are not restarted apart. Together they know which numbers this process owns and which
calls it has begun: one that begins anew beside the others forgets that, and after a kill what is in hand is sent twice.
Those that wait for calls to end would never stop while lanes begin others."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ActorPlace:
    """A child in the tree, and whose it is: nobody's where it serves all. `target_id`: the sender or subscription."""

    path: str
    parent: Supervisor
    kind: str
    key: object
    restart: Callable[[], Coroutine[Any, Any, None]]
    organization_id: str | None = None
    env: str | None = None
    target_id: str | None = None


class LanesAway(Protocol):
    """Lanes of numbers that other processes have."""

    async def lane(self, sender: SenderKey) -> str | None:
        """Its kind, while it is in memory there; None: it is not, or that process does not answer in time."""

    async def restart_lane(self, sender: SenderKey) -> None:
        """Restart it."""

    async def lanes(self, scope: Scope, most: int | None) -> Sequence[list[Any]]:
        """Those of the scope, or so many of each process, as they are said (`said_of_actor`)."""


class ActorTree:
    """What an operator sees of it, and orders."""

    def __init__(self, db: Database, *, root: Supervisor, lanes: Supervisor, webhooks: Supervisor) -> None:
        """`lanes`, `webhooks`: supervisors below `root` whose children belong to organizations."""
        self._db = db
        self._root = root
        self._lanes = lanes
        self._webhooks = webhooks
        self._restarts: dict[str, tuple[ActorPlace, asyncio.Task[None]]] = {}
        self._away: LanesAway | None = None

    def have_away(self, away: "LanesAway") -> None:
        """Other processes have lanes, at paths as they would have here."""
        self._away = away

    async def children(self, scope: Scope, most: int | None = None) -> AsyncGenerator[list[Child]]:
        """Everything of the scope that is here, parents first, some at a time, each part in a turn of its own.

        `most`: no more.
        """
        found = islice(self._root.family() if scope.whole else iter(await self._owned(scope, most)), most)
        while True:
            await turns.next()
            some = list(islice(found, AT_ONCE))
            if not some:
                return
            yield some

    async def lanes_away(self, scope: Scope, most: int | None = None) -> AsyncGenerator[list[Node]]:
        """Lanes of the scope that other processes have, likewise."""
        if self._away is None or most == 0:
            return
        found = list(islice(await self._away.lanes(scope, most), most))
        async for some in in_pieces(found, AT_ONCE):
            yield [actor_of(said, self._lanes.path) for said in some]

    async def lanes_here(self, scope: Scope, most: int | None = None) -> list[Child]:
        """Lanes of the scope that this process has, or so many."""
        if scope.whole:
            return self._lanes.children()[:most]
        return (await self._lanes_of(scope, most))[:most]

    async def find(self, scope: Scope, path: str) -> "ActorPlace | None":
        """What is at the path; None: nothing that the scope holds."""
        parent = self._root.parent_of(path)
        child = None if parent is None else parent.named(path)
        if parent is self._lanes and child is None and self._away is not None:
            return await self._find_away(self._away, scope, path)
        if parent is None or child is None or not (scope.whole or await self._holds(scope, parent, child)):
            return None
        key, place = child.key, partial(ActorPlace, path, parent, child.kind, child.key)
        restart = partial(parent.restart_child, child)
        if parent is self._lanes and isinstance(key, SenderKey):
            return place(restart, key.organization_id, key.env, key.sender_id)
        if parent is self._webhooks and isinstance(key, tuple):
            return place(restart, key[0], scope.env or None, key[1])
        return place(restart)

    async def _find_away(self, away: "LanesAway", scope: Scope, path: str) -> "ActorPlace | None":
        parts = path.removeprefix(self._lanes.path + "/").split(":")
        if len(parts) != len(SenderKey._fields):
            return None  # only numbers are elsewhere, and their ids have no colon
        key = SenderKey(*parts)
        if not (scope.whole or scope.holds(key.organization_id, key.env)) or (kind := await away.lane(key)) is None:
            return None
        owner = (key.organization_id, key.env, key.sender_id)
        return ActorPlace(path, self._lanes, kind, key, partial(away.restart_lane, key), *owner)

    def admit(self, place: "ActorPlace") -> None:
        """`Unavailable` while too many restarts are under way, in all or of its organization, for one more.

        409 for what is restarted with the whole program alone.
        """
        if place.parent is self._root and place.key in ONLY_WITH_THE_PROGRAM:
            detail = f"`{place.key}` knows which calls have begun, and is restarted with the whole program alone."
            raise conflict("CONFLICT", detail)
        if place.path in self._restarts:
            return
        if len(self._restarts) >= MOST_RESTARTS:
            raise Unavailable("Too many restarts are under way: try again shortly.")
        owner = place.organization_id
        mine = sum(other.organization_id == owner for other, _ in self._restarts.values())
        if owner is not None and mine >= RESTARTS_OF_AN_ORGANIZATION:
            raise Unavailable("Too many restarts of this organization are under way: try again shortly.")

    def restart(self, place: "ActorPlace") -> None:
        """Begin to restart what is there, unless that is under way. Raises as `admit`."""
        self.admit(place)
        if place.path in self._restarts:
            return
        # What starts there runs on, and not with the share of whoever ordered it.
        task = asyncio.get_running_loop().create_task(place.restart(), name="operator's restart", context=Context())
        self._restarts[place.path] = place, task
        task.add_done_callback(lambda done: self._ended(place.path, done))

    def _ended(self, path: str, task: "asyncio.Task[None]") -> None:
        del self._restarts[path]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("restart_failed", path=path, error=type(error).__name__)

    async def _holds(self, scope: Scope, parent: Supervisor, child: Child) -> bool:
        """Whether it belongs to the scope."""
        key = child.key
        if parent is self._lanes and isinstance(key, SenderKey):
            return scope.holds(key.organization_id, key.env)
        if parent is self._webhooks and isinstance(key, tuple) and key[0] == scope.organization_id:
            return key[1] in await ops.subscription_ids(self._db, scope)
        return False

    async def _lanes_of(self, scope: Scope, most: int | None) -> list[Child]:
        """Those of an organization, or so many and some more."""
        found: list[Child] = []
        owner, env = scope.organization_id, scope.env
        async for some in in_pieces(self._lanes.children(), PASSED_AT_ONCE):
            found += [
                child for child in some
                if isinstance(key := child.key, SenderKey) and key[0] == owner and key[1] == env
            ]  # fmt: skip
            if most is not None and len(found) >= most:
                break
        return found

    async def _owned(self, scope: Scope, most: int | None) -> list[Child]:
        found, owner = await self._lanes_of(scope, most), scope.organization_id
        mine = {
            key[1]: child
            for child in self._webhooks.children()
            if isinstance(key := child.key, tuple) and key[0] == owner
        }
        if mine:  # of both environments
            found += [mine[each] for each in sorted(await ops.subscription_ids(self._db, scope) & mine.keys())]
        return found
