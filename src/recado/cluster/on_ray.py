"""All that is said to Ray: an actor for each cell, by name, which Ray begins again elsewhere when its machine is gone.

The process that imports this is the finder, or one of Ray's own. Names of cells and of variables are what Ray learns;
addresses of databases and keys are in the environment of each machine, and go nowhere.
"""

import os
import random
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any, Final

import ray
import structlog
from ray.exceptions import ActorDiedError, RayError

from recado.cluster.cell_keeper import CellKeeper
from recado.cluster.cell_service import CellService
from recado.config.logging import configure_logging
from recado.engine.clock import SystemClock

NAMESPACE: Final = "recado"
RESOURCE: Final = "recado"
"""What a node says it has of, for each cell that it may run: `ray start --resources='{"recado": 4}'`."""
ANSWERS_WITHIN: Final = 1.0  # seconds

log = structlog.get_logger(__name__)


class NoRay(Exception):
    """There is no node of Ray here; the text says what to do."""


def actor_name(cell: str) -> str:
    """As Ray's own tools show it."""
    return f"recado-cell-{cell}"


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
            os._exit(1)  # Ray begins it anew where there is room, on another machine most often

    def where(self) -> tuple[str | None, str | None]:
        """The address of the service, and what is wrong where it has none."""
        place = self._keeper.place
        return place.url, place.trouble


class RayCells:
    """The actors, as a process that is joined to Ray sees them."""

    def __init__(self, address: str) -> None:
        """`address`: of Ray's head, or `auto`. Raises `NoRay`."""
        host, _, port = address.rpartition(":")
        if host and port.isdecimal():
            try:  # Ray would try for longer than anybody waits
                socket.create_connection((host.strip("[]"), int(port)), ANSWERS_WITHIN).close()
            except (OSError, OverflowError):
                raise NoRay(f"nothing answers at {address}") from None
        try:
            ray.init(address=address, namespace=NAMESPACE, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, RuntimeError, ValueError, OSError, RayError) as error:
            raise NoRay(f"no node of Ray is here ({type(error).__name__})") from None
        self._actors: dict[str, Any] = {}
        self._asked: dict[str, Any] = {}

    def look(self, cells: Mapping[str, str]) -> dict[str, tuple[str | None, str | None]]:
        """What each actor says that answers; one that is nowhere is made. `cells`: variables by the name of a cell."""
        for cell, database_from in cells.items():
            if cell not in self._actors:
                self._actors[cell] = _actor(cell, database_from)
            if cell not in self._asked:
                self._asked[cell] = self._actors[cell].where.remote()
        asked = {cell: reference for cell, reference in self._asked.items() if cell in cells}
        if not asked:
            return {}
        ready, _ = ray.wait(list(asked.values()), num_returns=len(asked), timeout=ANSWERS_WITHIN)
        found = {}
        for cell, reference in asked.items():
            if reference not in ready:
                continue
            del self._asked[cell]
            try:
                found[cell] = ray.get(reference)
            except ActorDiedError:
                del self._actors[cell]  # for good: somebody ended it
            except RayError:
                continue  # it is on its way
        return found

    def room(self) -> bool:
        """Whether any node says that it may run cells."""
        return any(node["Alive"] and node["Resources"].get(RESOURCE) for node in ray.nodes())


def _actor(cell: str, database_from: str) -> Any:
    """That of a cell; whoever asks first makes it."""
    options = {
        "name": actor_name(cell),
        "get_if_exists": True,
        "lifetime": "detached",
        "max_restarts": -1,
        "num_cpus": 0,
        "resources": {RESOURCE: 1},
        "scheduling_strategy": "SPREAD",
    }
    return ray.remote(PlacedCell).options(**options).remote(cell, database_from)
