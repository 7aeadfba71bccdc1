"""`recado version`."""

import platform
import sys
from typing import Annotated

import typer

from recado import __version__
from recado.cli.common import Json, print_json


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("version", epilog="Example: recado version --json")(version)


def option(
    context: typer.Context,
    told: Annotated[bool, typer.Option("--version", help="Print the version, and nothing else.")] = False,
) -> None:
    """Sends and tracks messages on many channels, over an HTTP API."""
    if told:
        version()
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())
        raise typer.Exit(2)


def version(as_json: Json = False) -> None:
    """Print the version of Recado and of what it runs on."""
    python = platform.python_version()
    if as_json:
        print_json({"version": __version__, "python": python, "platform": sys.platform})
    else:
        print(f"recado {__version__} (Python {python})")
