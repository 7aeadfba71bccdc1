"""`recado serve`: runs the service until it is told to stop (C32, C35)."""

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import structlog
import typer
import uvloop

from recado import first_start
from recado.address import bind_address, try_address
from recado.cli.common import DataDir, print_json
from recado.cli.errors import CommandError, explain
from recado.cli.hang_up import hang_ups
from recado.cli.last_resort import NOT_FLUSHED, LastResort
from recado.cli.launched import Launched, command_of, launch
from recado.config.logging import configure_logging, log_loop_errors
from recado.config.settings import Settings, load_settings, misspelled, unused_together
from recado.cores import usable_cores, workers_by_cores
from recado.domain.core.errors import Unavailable
from recado.domain.core.timestamps import format_timestamp
from recado.engine.clock import SystemClock
from recado.engine.process.collector import spare_the_collector
from recado.engine.process.family import take_name
from recado.engine.process.stacks import below_its_name, tell_stacks
from recado.fronts.launcher import GO, LAST, SAYS_EVERY
from recado.fronts.processes import FrontProcesses
from recado.fronts.program import OTHER_PROGRAM, program_on_disk
from recado.fronts.supervision import FrontsFailed
from recado.storage.embedded.cluster_lock import LockTimeout
from recado.storage.embedded.embedded import EmbeddedError, EmbeddedPostgres

if TYPE_CHECKING:
    from recado.app import Application

OWNER, STANDBY = "recado-owner", "recado-standby"  # names of processes, where there are several
_PASSING = (Unavailable, FrontsFailed, EmbeddedError, LockTimeout, OSError)
"""What may be over soon: an owner that ends of it is followed by another, where one has served before."""

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
    take_over: Annotated[
        bool, typer.Option("--take-over", help="End the process that serves the same database, and take its place.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            metavar="N",
            help="Processes, 1 to 8: one sends, the others accept messages.",
            show_default="by cores",
        ),
    ] = None,
    cluster: Annotated[
        bool,
        typer.Option("--cluster", help="Be one of several machines, on which Ray runs the cells: docs/cluster.md."),
    ] = False,
    launched: Annotated[str | None, typer.Option("--launched", hidden=True)] = None,
) -> int:
    """Run the service: the API, the senders and, without RECADO_DATABASE_URL, its own PostgreSQL."""
    tell_stacks()
    processes: FrontProcesses | None = None
    owner: Launched | None = None
    if launched is not None:
        owner = Launched.by(launched)
        program = program_on_disk()
        told_to = _await_turn(owner)
        if told_to == LAST:
            return _stop_what_is_left(data_dir)
        if told_to != GO:
            return 0  # nobody needs it
        if program != program_on_disk():
            return OTHER_PROGRAM  # the next one is what is installed
        processes = FrontProcesses(program, fork=partial(_as_front, owner))
    try:
        settings = load_settings(listen=listen, data_dir=data_dir, workers=workers)
    except Exception as error:
        _say_of_end(owner, error)
        raise
    configure_logging(settings.log_level, settings.log_format)
    for name, meant in misspelled(os.environ):
        log.warning("setting_unknown", name=name, meant=meant)
    for text in unused_together(settings):
        log.warning("setting_unused", reason=text)
    if cluster:
        if take_over or workers is not None or data_dir is not None:
            raise CommandError(
                "--take-over, --workers and --data-dir are not for --cluster: RECADO_WORKERS and RECADO_DATA_DIR are "
                "set where 'ray start' runs"
            )
        from recado.cli.serve_cluster import serve_cluster  # most installations do without

        return serve_cluster(settings)
    cores = usable_cores()
    fronts = (settings.workers or workers_by_cores(cores)) - 1
    try:
        if fronts and owner is None:
            owner = _launch(settings, command_of(listen, data_dir, workers))
        if fronts and processes is None:
            processes = FrontProcesses(program_on_disk())
        if owner is not None:
            take_name(OWNER)
        if processes is not None:
            processes.begin_early(fronts)  # before this process loads the program: they do so at the same time
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            last_resort = LastResort()
            serving = _serve(settings, last_resort.begin, take_over, cores, processes, owner)
            status = below_its_name("owner", lambda: runner.run(serving))
            last_resort.leave(status)
            _hear_no_more(runner.get_loop())
            return status
    except Exception as error:
        _say_of_end(owner, error)
        lines = explain(error)
        if settings.log_format != "json" or lines is None:
            raise
        for line in lines:
            log.error("not_started", reason=line)
        return int(getattr(error, "exit_code", 1))
    finally:
        if processes is not None:
            processes.keep(0)
        if owner is not None:
            owner.close()


def _launch(settings: Settings, command: list[str]) -> Launched:
    """Have a launcher, which holds the address. Comes back in the owner alone."""
    with asyncio.Runner() as runner:  # no thread of this loop outlives it: it is forked next
        runner.run(try_address(settings.listen, SystemClock()))
    return launch(
        bind_address(settings.listen),
        command,
        standby=settings.standby,
        as_json=settings.log_format == "json",
        level=settings.log_level,
    )


def _await_turn(owner: Launched) -> bytes:
    """Load the program, and wait until the owner before is no more; what this one is to do then (`await_turn`)."""
    take_name(STANDBY)
    # What a terminal tells all of its processes is for the owner.
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGHUP)}
    if not owner.told(LAST):
        import recado.app
        import recado.fronts.front  # noqa: F401 - what takes long, and what its fronts are, too

        gc.collect()
        gc.freeze()  # it stays, and is the fronts', too, as long as nobody writes there
        owner.waits()
    told_to = owner.await_turn()
    if told_to == GO:
        for number, handler in before.items():
            signal.signal(number, handler)
    return told_to


def _stop_what_is_left(data_dir: Path | None) -> int:
    """The service is told to stop, and has no owner that could: what the one before has left is its PostgreSQL."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is what was told
    settings = load_settings(data_dir=data_dir)
    configure_logging(settings.log_level, settings.log_format)
    if settings.database_url is None:
        asyncio.run(EmbeddedPostgres(settings.data_dir, clock=SystemClock()).stop_left())
    return 0


def _hear_no_more(loop: asyncio.AbstractEventLoop) -> None:
    """All is stopped: who asks for it again does not change how this process ends."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.remove_signal_handler(number)
        signal.signal(number, signal.SIG_IGN)


def _as_front(owner: Launched) -> int:
    """What a fork of this process is."""
    from recado.fronts.front import forked

    owner.close()
    return forked()


def _say_of_end(owner: Launched | None, error: Exception) -> None:
    """Where the same would be said of each that follows, none is to be begun."""
    if owner is not None and explain(error) is not None and not isinstance(error, _PASSING):
        owner.ends()


async def _serve(
    settings: Settings,
    stop_begins: Callable[[], None],
    take_over: bool = False,
    cores: float = 1.0,
    processes: FrontProcesses | None = None,
    owner: Launched | None = None,
) -> int:
    """Return the exit status: 0 when told to stop, 3 when not everything could be written, 1 when it gave up."""
    from recado.app import Application  # the other commands do without the whole service

    loop = asyncio.get_running_loop()
    log_loop_errors(loop)
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    application = Application(
        settings,
        take_over=take_over,
        cores=cores,
        processes=processes,
        listening=() if owner is None else owner.listening,
        owner_restarts=0 if owner is None else owner.restarts,
    )
    hung_up = hang_ups()
    loop.add_signal_handler(signal.SIGHUP, lambda: told.set() if hung_up() else application.reload())
    stopping = asyncio.create_task(told.wait())
    try:
        return await _until_told(settings, application, stopping, stop_begins, owner)
    finally:
        stopping.cancel()


async def _until_told(
    settings: Settings,
    application: "Application",
    stopping: "asyncio.Task[bool]",
    stop_begins: Callable[[], None],
    owner: Launched | None,
) -> int:
    from recado.app import PlaceLost

    starting = asyncio.create_task(application.start(assembled=spare_the_collector))
    both: set[asyncio.Task[Any]] = {starting, stopping}
    while not (await asyncio.wait(both, timeout=SAYS_EVERY, return_when=asyncio.FIRST_COMPLETED))[0]:
        if owner is not None:
            owner.starts()
    if not starting.done():
        _ends(owner)
        stop_begins()
        starting.cancel()
        await asyncio.wait({starting})
        _tell_made(settings, application)  # it is in the database
        return 0 if await application.stop() else NOT_FLUSHED
    try:
        await starting
    except BaseException:
        _tell_made(settings, application)  # it is in the database, and its keys can be told only now
        raise
    if owner is not None:
        owner.serves()
    _welcome(settings, application)
    failing = asyncio.create_task(application.wait())
    await asyncio.wait({failing, stopping}, return_when=asyncio.FIRST_COMPLETED)
    failed = failing.done()
    if failed:
        log.error("the service gave up", exc_info=failing.exception())
    if not failed or isinstance(failing.exception(), PlaceLost):
        _ends(owner)  # else another one may do better
    stop_begins()
    flushed = await application.stop()
    failing.cancel()
    return 1 if failed else 0 if flushed else NOT_FLUSHED


def _ends(owner: Launched | None) -> None:
    if owner is not None:
        owner.ends()


def _welcome(settings: Settings, application: "Application") -> None:
    """Tell where the service is; after a first start also what it made, which is shown only once."""
    address = application.address
    if settings.log_format == "json":
        at = format_timestamp(SystemClock().now())
        print_json(
            {
                "message": "serving",
                "level": "info",
                "timestamp": at,
                "address": address,
                "documentation": f"{address}/docs",
                "console": f"{address}/console",
            }
        )
    else:
        print(f"Recado serves {address}\nDocumentation {address}/docs\nConsole       {address}/console")
    _tell_made(settings, application)
    if application.left_untold:
        _tell(settings, application.left_untold)
    sys.stdout.flush()


def _tell_made(settings: Settings, application: "Application") -> None:
    made, terminal = application.made, sys.stdout.isatty()
    if made is None:
        return
    told = first_start.told(made, application.owner_password, terminal=terminal, data_dir=settings.data_dir)
    _tell(settings, told)
    if terminal:
        first_start.forget(settings.data_dir)


def _tell(settings: Settings, lines: list[str]) -> None:
    if settings.log_format == "json":
        print_json({"message": "first_start", "level": "info", "text": "\n".join(lines)})
    else:
        print("\n".join(lines))
    sys.stdout.flush()
