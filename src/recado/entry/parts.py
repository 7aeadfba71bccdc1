"""The parts of the entry, made from plain values."""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.ids import REQUEST, IdSource
from recado.engine.process.loop_watch import LoopWatch
from recado.engine.service import ServiceGroup
from recado.entry.answers import EntryAnswers
from recado.entry.cell_finder import CellFinder
from recado.entry.entry import Entry
from recado.entry.figures import EntryFigures
from recado.entry.followed_map import FollowedMap
from recado.entry.forwarding import Forwarder
from recado.entry.metrics import EntryMetrics
from recado.entry.places import CellList, CellPlaces, MappedPlaces, OnlyCell
from recado.entry.server import EntryServer
from recado.http.callers.rate_limits import Limit
from recado.http.middleware.scraping import Scrapers
from recado.http.wire.byte_budget import BODIES, ByteBudget
from recado.http.wire.client_ip import ClientAddresses, Network
from recado.http.wire.connection_limits import ConnectionLimits
from recado.storage.cells.cell_map import Cell

ONLY_CELL: Final = Cell("main", "RECADO_DATABASE_URL", "", None)
"""That of an installation without a map."""
READ_HERE: Final = 64 * 1024 * 1024  # bytes of callbacks and sign-ins; all other bodies pass piece by piece
HELD_HERE: Final = 32 * 1024 * 1024  # bytes of these, of each the first, until it is worth a connection to a cell


def entry_parts(
    *,
    map_address: str | None,
    variables: Mapping[str, str],
    host: str,
    port: int,
    base_url: str,
    trusted_proxies: Sequence[Network],
    limits: Mapping[str, Limit],
    connections: int,
    connections_of_address: int,
    metrics_token: str | None,
    clock: Clock,
    random_bytes: Callable[[int], bytes],
    find_places: Callable[[CellList], CellPlaces] = lambda _: MappedPlaces(),
) -> ServiceGroup:
    """`variables`: addresses of the cells' databases by the names that the map has; `limits`: of requests by class.

    `map_address` None: there is no map, and one cell. `find_places`: what says where the services of these cells are.
    `metrics_token`: who shows it may scrape; None: whoever is on this machine.
    """
    ids = IdSource(clock, random.Random(random_bytes(32)))  # noqa: S311 - ids are unique, not secret
    addresses = ClientAddresses(trusted_proxies)
    if map_address is None:
        cells: FollowedMap | OnlyCell = OnlyCell(ONLY_CELL, variables, clock)
    else:
        cells = FollowedMap(map_address, variables, clock)
    places = find_places(cells)
    figures = EntryFigures()
    forwarder = Forwarder(clock, figures)
    loop_watch = LoopWatch(clock)
    connection_limits = ConnectionLimits(connections, connections_of_address, addresses)
    places.tell_left(forwarder.leave)
    answers = EntryAnswers(base_url, lambda: ids.new(REQUEST))
    entry = Entry(
        cells,
        places,
        CellFinder(cells, clock),
        forwarder,
        limits={name: limits[name] for name in ("failed", "login", "public")},
        addresses=addresses,
        bodies=ByteBudget(READ_HERE, BODIES),
        held=ByteBudget(HELD_HERE, BODIES),
        answers=answers,
        figures=figures,
        metrics=EntryMetrics(
            figures,
            cells,
            places,
            forwarder,
            loop_watch,
            refused=lambda: connection_limits.refused,
            connections=lambda: connection_limits.open,
        ),
        scrapers=Scrapers(metrics_token),
        clock=clock,
        ids=ids,
    )
    server = EntryServer(entry, answers, connection_limits, clock, host, port)
    return ServiceGroup([loop_watch, cells, places, forwarder, server])
