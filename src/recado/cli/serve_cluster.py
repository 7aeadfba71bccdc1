"""`recado serve --cluster`: one of many machines, on which Ray runs the cells (decision 0093)."""

import os
from collections.abc import Mapping

import structlog

from recado.cli.cells.placed import refuse_without_ray
from recado.cli.cells.serve import serve_entry_with
from recado.cli.errors import CommandError
from recado.cluster.cell_service import DATABASE, lacking
from recado.cluster.found_places import FoundPlaces, NotJoined, finder_program
from recado.config.settings import Settings
from recado.domain.core.clock import Clock
from recado.entry.places import CellList

MAP = "RECADO_CELLS_DATABASE_URL"

log = structlog.get_logger(__name__)


def serve_cluster(settings: Settings, environment: Mapping[str, str] = os.environ) -> int:
    """See to it that Ray runs every cell, and serve all of them at one address, until SIGTERM or Ctrl-C."""
    refuse_what_lacks(settings, environment)
    finder = finder_program(settings.cluster or "auto")

    def find_places(cells: CellList, clock: Clock) -> FoundPlaces:
        return FoundPlaces(cells, finder, clock)

    try:
        serve_entry_with(settings, MAP if environment.get(MAP) else None, find_places)
    except NotJoined as error:
        raise CommandError(f"{error}: give this machine to Ray with 'ray start', as docs/cluster.md says") from None
    return 0


def refuse_what_lacks(settings: Settings, environment: Mapping[str, str]) -> None:
    """One line for the first thing that a cluster needs and this machine has not."""
    refuse_without_ray()
    if not environment.get(MAP) and not environment.get(DATABASE):
        raise CommandError(
            f"a cluster needs databases of its own: set {MAP} to that of the map of cells, or {DATABASE} for one cell"
        )
    # The databases of a map's cells are looked for when the map is read.
    lack = lacking(environment, MAP if environment.get(MAP) else DATABASE)
    if lack is not None:
        raise CommandError(f"{lack}; set it in the environment of this command and of 'ray start', on each machine")
    if settings.base_url is None:
        raise CommandError("RECADO_BASE_URL is not set: the address of all machines together, as callers see it")
    if not settings.trusted_proxies:
        raise CommandError(
            "RECADO_TRUSTED_PROXIES is not set: the network of the machines, as each passes requests on to others"
        )
