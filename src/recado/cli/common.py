"""What the commands share: their common options, settings, and printing for people or programs."""

import asyncio
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import orjson
import typer
import uvloop
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from recado.config.logging import configure_logging
from recado.config.settings import Settings, load_settings
from recado.domain.core.timestamps import format_timestamp

T = TypeVar("T")

_WIDEST = 100_000  # characters

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
    print_whole(table)


def print_whole(table: Table) -> None:
    """Print a table as wide as its content: an id that is cut is of no use."""
    console = Console()
    width = Measurement.get(console, console.options.update(max_width=_WIDEST), table).maximum
    Console(width=max(console.width, width)).print(table, highlight=False)


def _plain(value: Any) -> Any:
    return format_timestamp(value) if hasattr(value, "isoformat") else sorted(value)
