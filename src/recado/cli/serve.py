"""`recado serve`: runs the service until it is told to stop (C32, C35)."""

import asyncio
import gc
import signal
import sys
from typing import TYPE_CHECKING, Annotated

import structlog
import typer
import uvloop

from recado.cli.common import DataDir, first_start_lines
from recado.config.logging import configure_logging, log_loop_errors
from recado.config.settings import Settings, load_settings

if TYPE_CHECKING:
    from recado.app import Application

STOP_LIMIT = 20.0  # seconds (C32)
# New objects between two looks for garbage in cycles. Requests and messages make next to none, so the interpreter's own
# 700 spend a sixth of the processor's time on looking through what is in flight.
COLLECT_EVERY = 50_000

log = structlog.get_logger(__name__)


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("serve", epilog="Example: recado serve --listen 127.0.0.1:8080 --data-dir ./.recado")(serve)


def serve(
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="HOST:PORT", help="Where the API listens.", show_default="127.0.0.1:8080"),
    ] = None,
    data_dir: DataDir = None,
) -> int:
    """Run the service: the API, the senders and, without RECADO_DATABASE_URL, its own PostgreSQL."""
    settings = load_settings(listen=listen, data_dir=data_dir)
    configure_logging(settings.log_level, settings.log_format)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(settings))


async def _serve(settings: Settings) -> int:
    """Return the exit status: 0 when told to stop and stopped in time."""
    from recado.app import Application  # the other commands do without the whole service

    loop = asyncio.get_running_loop()
    log_loop_errors(loop)
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    application = Application(settings)
    stopping = asyncio.create_task(told.wait())
    starting = asyncio.create_task(application.start())
    await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
    if not starting.done():
        starting.cancel()
        await asyncio.wait({starting})
        await application.stop()
        return 0
    await starting
    _spare_the_collector()
    _welcome(settings, application)
    failing = asyncio.create_task(application.wait())
    await asyncio.wait({failing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    failed = failing.done()
    if failed:
        log.error("the service gave up", exc_info=failing.exception())
    stopped = await _stop(application)
    for task in (stopping, failing):
        task.cancel()
    return 1 if failed or not stopped else 0


async def _stop(application: "Application") -> bool:
    """Stop within the limit; what was accepted is in the database either way."""
    try:
        async with asyncio.timeout(STOP_LIMIT):
            await application.stop()
    except TimeoutError:
        log.error("the service did not stop in time", seconds=STOP_LIMIT)
        return False
    return True


def _spare_the_collector() -> None:
    """What is there now stays: it is set aside for good, and the rest is looked through less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_EVERY, *gc.get_threshold()[1:])


def _welcome(settings: Settings, application: "Application") -> None:
    """Tell where the service is; after a first start also what it made, which is shown only once."""
    address = application.address
    lines = [f"Recado serves {address}", f"Documentation {address}/docs"]
    if application.made is not None:
        lines += first_start_lines(application.made, application.owner_password)
    print("\n".join(lines), flush=True)
    sys.stdout.flush()
