"""`recado version`."""

import platform
import sys

import typer

from recado import __version__
from recado.cli.common import Json, print_json


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("version", epilog="Example: recado version --json")(version)


def version(as_json: Json = False) -> None:
    """Print the version of Recado and of what it runs on."""
    python = platform.python_version()
    if as_json:
        print_json({"version": __version__, "python": python, "platform": sys.platform})
    else:
        print(f"recado {__version__} (Python {python})")
