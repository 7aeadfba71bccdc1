"""An actor of Ray for each cell, by name, which Ray begins again elsewhere when its machine is gone.

The process that imports this is the finder, a command with orders for a cell (`orders`), or one of Ray's own. Names of
cells and of variables are what Ray learns; addresses of databases and keys are in the environment of each machine, and
go nowhere.
"""

import os
import random
import socket
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import ray
import structlog
from ray._private.services import canonicalize_bootstrap_address
from ray.exceptions import ActorDiedError, ActorUnavailableError, GetTimeoutError, RayError, RpcError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from recado.cluster.cell_keeper import CellKeeper
from recado.cluster.cell_service import CellService
from recado.config.logging import configure_logging
from recado.engine.clock import SystemClock

NAMESPACE: Final = "recado"
RESOURCE: Final = "recado"
"""What a node says it has of, for each cell that it may run: `ray start --resources='{"recado": 4}'`."""
ANSWERS_WITHIN: Final = 1.0  # seconds
RAY_AWAY: Final = (ConnectionError, GetTimeoutError, RpcError)
"""What it raises while its head is away: nothing is known then of any one cell."""
LEFT_FOR: Final = 10.0  # seconds that an actor whose service was told to end, and has, waits to be taken away
ENDED_WITHIN: Final = 90.0
"""Seconds from the first word that an actor shall end, after which it is taken away as it is: one that is nowhere at
the moment does not hear."""
Place = tuple[str | None, str | None]
"""The address of a service; and where it has none, what is wrong."""

log = structlog.get_logger(__name__)


class NoRay(Exception):
    """There is no node of Ray here; the text says what to do."""


def actor_name(cell: str) -> str:
    """As Ray's own tools show it."""
    return f"recado-cell-{cell}"


class About(NamedTuple):
    """What an actor says of itself: its place, as `KeptPlace` has it; the variable with the address of its database.

    `node`: the id of Ray's node where it is.
    """

    url: str | None
    trouble: str | None
    life: int
    ended: bool
    database_from: str
    node: str


class PlacedCell:
    """The actor: it lives in a process of Ray's, on the node where the cell is."""

    def __init__(self, cell: str, database_from: str) -> None:
        """`database_from`: the environment variable of each node with the address of the cell's database."""
        configure_logging(
            os.environ.get("RECADO_LOG_LEVEL") or "info", os.environ.get("RECADO_LOG_FORMAT") or "console"
        )
        service = CellService(
            cell, database_from, ray.util.get_node_ip_address(), os.environ,
            [sys.executable, "-P", "-m", "recado", "serve"],
        )  # fmt: skip
        chance = random.Random()  # noqa: S311 - spreads pauses
        self._database_from = database_from
        self._keeper = CellKeeper(
            cell, service, monotonic=SystemClock.monotonic, wait=threading.Event().wait, chance=chance
        )
        # The service ends with the thread that began it, and this one with the process.
        threading.Thread(target=self._keep, name=f"cell {cell}", daemon=True).start()

    def _keep(self) -> None:
        try:
            self._keeper.run()
        except Exception as error:  # noqa: BLE001 - whatever it was: without a keeper nobody has the cell
            log.error("keeper_failed", error=type(error).__qualname__)
        finally:
            if self._keeper.place.ended:
                threading.Event().wait(LEFT_FOR)  # whoever told it to end takes it away; else it is wanted after all
            os._exit(1)  # Ray begins it anew where there is room, on another machine most often

    def where(self) -> Place:
        """Where its service answers."""
        place = self._keeper.place
        return place.url, place.trouble

    def about(self) -> About:
        """All that whoever restarts, moves or ends it needs to know."""
        place = self._keeper.place
        return About(
            place.url, place.trouble, place.life, place.ended, self._database_from,
            ray.get_runtime_context().get_node_id(),
        )  # fmt: skip

    def restart(self) -> None:
        """Its service stops in order, and begins again here."""
        self._keeper.restart()

    def end(self) -> None:
        """Its service stops in order. Where the actor is not taken away then, Ray begins it anew."""
        self._keeper.end()


def join(address: str) -> None:
    """Make this process one of Ray's. `address`: of the head, or `auto`. Raises `NoRay`."""
    try:
        found: str | None = canonicalize_bootstrap_address(address)
    except (ConnectionError, ValueError, OSError) as error:
        raise NoRay(f"no node of Ray is here ({type(error).__name__})") from None
    if found is None:  # Ray would begin a cluster of this process alone
        raise NoRay("'local', in RECADO_CLUSTER or RAY_ADDRESS, names no node of Ray")
    host, _, port = found.rpartition(":")
    try:  # Ray would try for longer than anybody waits, also where a node that was here has left its address
        socket.create_connection((host.strip("[]"), int(port)), ANSWERS_WITHIN).close()
    except (OSError, OverflowError, ValueError):
        raise NoRay(f"nothing answers at {found}") from None
    try:
        ray.init(address=found, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, RuntimeError, ValueError, OSError, RayError) as error:
        raise NoRay(f"no node of Ray is here ({type(error).__name__})") from None


def still_joined() -> bool:
    """Whether Ray has the node yet through which this process has joined; it waits while the head is away.

    Where a head was begun anew without its state, Ray ends this process instead of an answer (`WrongClusterID`).
    """
    here = ray.get_runtime_context().get_node_id()
    return any(node["Alive"] and node["NodeID"] == here for node in ray.nodes())


class RayCells:
    """The actors, as a process that has joined Ray sees them. What Ray has against one is no trouble of the others."""

    def __init__(self, made: Callable[[str, str], Any] | None = None) -> None:
        """`made`: the actor of a cell, whose database is in that variable; one that is there, or a new one."""
        self._made = made or made_actor
        self._actors: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}
        self._ending: dict[str, float] = {}  # since when, in monotonic seconds
        self._told: dict[str, Any] = {}  # to end; what it says then

    def look(self, cells: Mapping[str, str], *, may_make: bool = True) -> dict[str, Place]:
        """What each actor says that answers. `cells`: variables by the name of a cell; `may_make`: one that is nowhere
        is made.
        """
        found: dict[str, Place] = {}
        for cell, database_from in cells.items():
            for each in (self._ending, self._told):
                each.pop(cell, None)  # it was to end, and is wanted again
            try:
                if cell not in self._actors:
                    self._actors[cell] = self._made(cell, database_from) if may_make else present_actor(cell)
                if cell not in self._asked:
                    self._asked[cell] = self._actors[cell].where.remote()
            except RAY_AWAY:
                continue  # the last place holds
            except Exception as error:  # noqa: BLE001 - Ray has no kind for all; an actor of others has no `where`
                found[cell] = self._troubled(cell, error)
        asked = {cell: reference for cell, reference in self._asked.items() if cell in cells}
        if not asked:
            return found
        ready, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWERS_WITHIN)
        for cell, reference in asked.items():
            if reference not in ready:
                continue
            del self._asked[cell]
            try:
                url, trouble = ray.get(reference)
            except (*RAY_AWAY, ActorUnavailableError):
                continue  # it is on its way
            except Exception as error:  # noqa: BLE001 - likewise; one that died for good was ended by somebody
                found[cell] = self._troubled(cell, error)
            else:
                found[cell] = url, trouble
        return found

    def end(self, cells: Iterable[str]) -> tuple[list[str], dict[str, str]]:
        """Have the actors of these end in order, and none take their place. It takes its time: ask again.

        Answers which are gone; and by name, the kind of what Ray has against ending one now.
        """
        gone: list[str] = []
        refused: dict[str, str] = {}
        for cell in cells:
            self._actors.pop(cell, None)
            self._asked.pop(cell, None)
            since = self._ending.setdefault(cell, SystemClock.monotonic())
            try:
                actor = present_actor(cell)
                if SystemClock.monotonic() - since >= ENDED_WITHIN or self._has_ended(cell, actor):
                    ray.kill(actor)  # its service, if there is one yet, ends in order with it
            except (ValueError, ActorDiedError):
                gone.append(cell)
                for each in (self._ending, self._told):
                    each.pop(cell, None)
            except Exception as error:  # noqa: BLE001 - as above: the others end
                refused[cell] = type(error).__qualname__
        return gone, refused

    def _has_ended(self, cell: str, actor: Any) -> bool:
        if cell not in self._told:
            actor.end.remote()
            self._told[cell] = actor.about.remote()
        about = self._told[cell]
        if not ray.wait([about], timeout=0)[0]:
            return False
        del self._told[cell]  # asked again where it has not
        return bool(ray.get(about).ended)

    def _troubled(self, cell: str, error: Exception) -> Place:
        """It is looked for anew the next time."""
        self._actors.pop(cell, None)
        # Not its text: what another program raised may have anything in it.
        return None, f"Ray has no answer of its actor ({type(error).__name__})"

    def room(self) -> bool:
        """Whether any node says that it may run cells."""
        return any(node["Alive"] and node["Resources"].get(RESOURCE) for node in ray.nodes())


def present_actor(cell: str) -> Any:
    """That of a cell. Raises ValueError: there is none."""
    return ray.get_actor(actor_name(cell))


def made_actor(cell: str, database_from: str, node: str | None = None) -> Any:
    """That of a cell; whoever asks first makes it. `node`: where it is to be, as long as that is there."""
    options = {
        "name": actor_name(cell),
        "get_if_exists": True,
        "lifetime": "detached",
        "max_restarts": -1,
        "num_cpus": 0,
        "resources": {RESOURCE: 1},
        "scheduling_strategy": "SPREAD" if node is None else NodeAffinitySchedulingStrategy(node, soft=True),
    }
    return ray.remote(PlacedCell).options(**options).remote(cell, database_from)
