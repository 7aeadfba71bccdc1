"""What the commands share: their common options, the opened installation, and printing for people or programs."""

import asyncio
import contextlib
import secrets
import sys
from collections.abc import AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer
import uvloop
from rich.console import Console
from rich.table import Table

from recado.cli.errors import CommandError
from recado.config.logging import configure_logging
from recado.config.settings import Settings, load_settings
from recado.domain.timestamps import format_timestamp
from recado.engine.clock import SystemClock
from recado.installation import Installation
from recado.storage import organizations
from recado.storage.organizations import NewOrganization, Organization

T = TypeVar("T")

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Folder of the embedded database and its keys.", show_default=False),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]


def read_settings(data_dir: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings under the options of a command, and make the log quiet enough for a terminal."""
    settings = load_settings(data_dir=data_dir, **overrides)
    configure_logging("error" if settings.log_level != "debug" else "debug", settings.log_format)
    return settings


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run the asynchronous part of a command."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


@contextlib.asynccontextmanager
async def opened(settings: Settings) -> AsyncIterator[Installation]:
    """Open the installation for one command; tells, on standard error, what a first start made."""
    installation = Installation(settings, clock=SystemClock(), random_bytes=secrets.token_bytes)
    await installation.start()
    try:
        if installation.made is not None:
            for line in first_start_lines(installation.made, installation.owner_password):
                print(line, file=sys.stderr)
        yield installation
    finally:
        await installation.stop()


def first_start_lines(made: NewOrganization, owner_password: str | None) -> list[str]:
    """Return what an operator must see once: keys and sign-in of the organization that the first start made."""
    lines = [
        f"Made the organization {made.organization.name} ({made.organization.id}). These keys are shown only now:",
        *(f"  {env} key   {token}" for env, (_, token) in sorted(made.keys.items(), reverse=True)),
    ]
    if made.owner is not None and owner_password is not None:
        lines.append(f"  sign-in    {made.owner[0].email} with the password {owner_password}")
    return lines


async def chosen_organization(installation: Installation, wanted: str | None) -> Organization:
    """Return the organization of that id or name; without one, the oldest. Raises CommandError when there is none."""
    known = await organizations.all_organizations(installation.database)
    if not known:
        raise CommandError("there is no organization yet: make one with 'recado org create --name NAME'")
    if wanted is None:
        return known[0]
    found = [each for each in known if wanted in (each.id, each.name)]
    if len(found) != 1:
        raise CommandError(
            f"{len(found) or 'no'} organizations are called {wanted!r}: 'recado org list' shows their ids"
        )
    return found[0]


def print_json(value: Any) -> None:
    """Print one JSON document to standard output; moments in the API's form."""
    sys.stdout.write(orjson.dumps(value, default=_plain, option=orjson.OPT_PASSTHROUGH_DATETIME).decode("utf-8") + "\n")


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, empty: str) -> None:
    """Print rows for people; `empty` instead when there is none. Whole values, also into a pipe."""
    if not rows:
        print(empty)
        return
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*row)
    console = Console(soft_wrap=True)
    console.print(table, no_wrap=True, crop=False)


def _plain(value: Any) -> Any:
    return format_timestamp(value) if hasattr(value, "isoformat") else sorted(value)
