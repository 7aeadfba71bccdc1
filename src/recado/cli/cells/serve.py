"""`recado cells serve`: one address for all cells, until it is told to stop."""

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import typer

from recado.address import telling
from recado.cli.common import print_json, run_async
from recado.cli.errors import CommandError
from recado.config.logging import configure_logging, log_loop_errors
from recado.config.settings import Settings, load_settings
from recado.descriptors import Descriptors
from recado.domain.core.clock import Clock
from recado.engine.clock import SystemClock
from recado.engine.process.collector import spare_the_collector
from recado.engine.process.stacks import tell_stacks

if TYPE_CHECKING:
    from recado.entry.places import CellList, CellPlaces

FindPlaces = Callable[["CellList", Clock], "CellPlaces"]

EPILOG: Final = "Example: recado cells serve --listen 127.0.0.1:8080"

Listen = Annotated[
    str | None,
    typer.Option("--listen", metavar="HOST:PORT", help="Where the entry listens.", show_default="127.0.0.1:8080"),
]


def serve_entry(map_variable: str, listen: str | None) -> None:
    """Serve until SIGTERM or Ctrl-C. `map_variable`: the environment variable with the address of the map."""
    tell_stacks()
    address = os.environ.get(map_variable, "")
    if not address:
        raise CommandError(
            f"{map_variable} is not set: it holds the address of a database, postgresql://user:password@host/name"
        )
    settings = load_settings(listen=listen)
    configure_logging(settings.log_level, settings.log_format)
    serve_entry_with(settings, map_variable)


def serve_entry_with(settings: Settings, map_variable: str | None, find_places: FindPlaces | None = None) -> None:
    """Likewise. `map_variable` None: there is one cell, and no map. `find_places`: where services are, but the map."""
    run_async(_serve(settings, map_variable, find_places))


async def _serve(settings: Settings, map_variable: str | None, find_places: FindPlaces | None) -> None:
    # The other commands do without.
    from recado.entry.followed_map import MapNotRead
    from recado.entry.parts import entry_parts
    from recado.entry.places import MappedPlaces

    loop = asyncio.get_running_loop()
    log_loop_errors(loop)
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    descriptors = Descriptors.allowed()
    clock = SystemClock()
    parts = entry_parts(
        map_address=None if map_variable is None else os.environ[map_variable],
        variables=os.environ,
        host=settings.listen.host,
        port=settings.listen.port,
        base_url=settings.address(),
        trusted_proxies=settings.trusted_proxies,
        limits=settings.request_limits,
        connections=descriptors.inbound // 2,  # each may have one to a cell
        connections_of_address=settings.connections_per_address,
        metrics_token=None if settings.metrics_token is None else settings.metrics_token.get_secret_value(),
        clock=clock,
        random_bytes=secrets.token_bytes,
        find_places=lambda cells: MappedPlaces() if find_places is None else find_places(cells, clock),
    )
    spare_the_collector()
    try:
        with telling(settings.listen):
            await parts.start()
    except MapNotRead as error:
        raise CommandError(f"the database of {map_variable} {error}") from None
    try:
        if settings.log_format == "json":
            print_json({"message": "serving", "level": "info", "address": settings.address()})
        else:
            print(f"Recado serves all cells at {settings.address()}")
        sys.stdout.flush()
        await told.wait()
    finally:
        await parts.stop()
