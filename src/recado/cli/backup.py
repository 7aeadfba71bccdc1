"""`recado backup` and `recado restore`: the embedded database and its keys as one file (C35)."""

import asyncio
import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from recado import __version__
from recado.cli.common import DataDir, Json, print_json, read_settings, run_async
from recado.cli.ending import until_told
from recado.cli.errors import CommandError
from recado.cli.opening import require_installation
from recado.cli.progress import progress_bar
from recado.config.secrets import KEY_FILE
from recado.config.settings import Settings
from recado.domain.core.counting import counted
from recado.domain.dispatch.leases import RENEWED_EVERY
from recado.engine.clock import SystemClock
from recado.engine.periodic import Periodic
from recado.installation import Installation
from recado.storage.core.shielded import to_its_end
from recado.storage.dispatch.ownership import Ownership
from recado.storage.embedded.backup import (
    CancellationToken,
    Manifest,
    claim_folder,
    load_backup,
    read_manifest,
    release_folder,
    write_backup,
)
from recado.storage.embedded.embedded import EmbeddedPostgres
from recado.storage.embedded.restored import Ended, end_queue


def mount(app: typer.Typer) -> None:
    """Add the commands."""
    app.command("backup", epilog="Example: recado backup recado-$(date +%F).backup")(backup)
    app.command("restore", epilog="Example: recado restore recado-2026-11-22.backup --data-dir ./restored")(restore)


def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write; one that exists is kept.")],
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Write the embedded database and its keys into one file, also while the service runs.

    Anyone who has the file has everything, keys included: it is written with mode 0600.
    """
    settings = _embedded(read_settings(data_dir))
    require_installation(settings)
    manifest = run_async(until_told(_backup(settings, file)))
    size = file.stat().st_size
    if as_json:
        print_json({"file": str(file), "bytes": size, "createdAt": manifest.created_at, "keys": manifest.keys})
        return
    print(f"wrote {file} ({size / 2**20:.1f} MiB), as of {manifest.created_at}")
    if not manifest.keys:
        print("its keys are in the settings (RECADO_ENCRYPTION_KEYS and others), not in the file: keep them beside it")


def restore(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A file that 'recado backup' wrote.", show_default=False)
    ] = None,
    queue_only: Annotated[
        bool,
        typer.Option("--queue-only", help="Restore nothing: end the queue of a database that was restored otherwise."),
    ] = False,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Restore a backup into an empty data folder, and end the queue that it holds, so that nothing leaves twice.

    What was queued at the time of the backup becomes failed with outcome_unknown: part of it has left since.
    """
    settings = read_settings(data_dir)
    if (file is None) is not queue_only:
        raise CommandError("name the file of a backup, or say --queue-only")
    created_at = None
    if file is not None:
        created_at = read_manifest(file).created_at
        ended = run_async(until_told(_restore(_embedded(settings), file)))
    else:
        require_installation(settings)
        ended = run_async(until_told(_end_queue(settings)))
    if as_json:
        print_json({"createdAt": created_at, "ended": ended.messages, "scheduled": ended.scheduled})
        return
    if file is not None:
        print(f"restored {file}, as of {created_at}, into {settings.data_dir}")
    messages = counted(ended.messages, "message")
    print(f"{messages} of the old queue ended with outcome_unknown; reports that still come in count")
    if ended.scheduled:
        scheduled = counted(ended.scheduled, "of them was", "of them were")
        print(
            f"{scheduled} scheduled for later: what is still wanted has to be sent again (docs/operations.md, Backup)"
        )


async def _backup(settings: Settings, file: Path) -> Manifest:
    clock = SystemClock()
    keys = settings.data_dir / KEY_FILE
    server = EmbeddedPostgres(settings.data_dir, clock=clock)
    halt = CancellationToken()
    try:
        await server.start()
        with _shown("writing") as progress:
            writing = asyncio.to_thread(
                write_backup, file, settings.data_dir,
                version=__version__, now=clock.now(), keys=keys, progress=progress, halt=halt,
            )  # fmt: skip
            return await to_its_end(writing, halt.ask)
    finally:
        await server.stop()


async def _restore(settings: Settings, file: Path) -> Ended:
    claim_folder(settings.data_dir)
    server = EmbeddedPostgres(settings.data_dir, clock=SystemClock())
    halt = CancellationToken()
    try:
        await server.start()
        with _shown("restoring") as progress:
            keys = settings.data_dir / KEY_FILE
            loading = asyncio.to_thread(load_backup, file, settings.data_dir, keys=keys, progress=progress, halt=halt)
            await to_its_end(loading, halt.ask)
        ended = await _end_queue(settings, restoring=True)
    finally:
        await server.stop()
    release_folder(settings.data_dir)
    return ended


async def _end_queue(settings: Settings, *, restoring: bool = False) -> Ended:
    clock = SystemClock()
    installation = Installation(settings, clock=clock, random_bytes=secrets.token_bytes, restoring=restoring)
    try:
        await to_its_end(installation.start())
        owner = Ownership(
            installation.database.server, clock=clock, elapsed=clock.elapsed, host=socket.gethostname(), pid=os.getpid()
        )
        kept = Periodic("ownership of the database", RENEWED_EVERY, owner.keep, clock)
        try:
            await owner.take(sends=False)  # what a service that runs has in its queue is not of the past
            await kept.start()
            return await end_queue(installation.database, clock.now())
        finally:
            await kept.stop()
            await owner.stop()
    finally:
        await installation.stop()


def _embedded(settings: Settings) -> Settings:
    if not settings.embedded:
        raise CommandError(
            "RECADO_DATABASE_URL names a PostgreSQL of your own: back it up with its own tools, and after a restore "
            "run 'recado restore --queue-only'"
        )
    return settings


@contextmanager
def _shown(what: str) -> Iterator["Progressing"]:
    columns = (SpinnerColumn(), TextColumn("{task.description}"), DownloadColumn(), TimeElapsedColumn())
    with progress_bar(*columns) as progress:
        yield Progressing(progress, what)


class Progressing:
    """Adds the bytes of each piece to a progress bar."""

    def __init__(self, progress: Progress, what: str) -> None:
        self._progress = progress
        self._task = progress.add_task(what, total=None)

    def __call__(self, size: int) -> None:
        self._progress.advance(self._task, size)
