"""Mounts the commands, and turns whatever goes wrong in one into a line that says what to do (C35)."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, cast

import typer
import typer.main
from typer.core import TyperGroup

from recado.cli import version
from recado.config.redaction import redact_text, render_error

# The commands and groups in the order of the help, and the module that mounts each.
_MODULES = {
    "serve": "serve",
    "migrate": "migrate",
    "org": "organizations",
    "keys": "keys",
    "account": "accounts",
    "wallet": "wallet",
    "contacts": "contacts",
    "export": "export",
    "reencrypt": "reencrypt",
    "backup": "backup",
    "restore": "backup",
    "cells": "cells.command",
    "doctor": "doctor.command",
    "loadtest": "loadtest",
    "simulator": "simulator",
    "top": "top.command",
    "version": "version",
}


class _Commands(Mapping[str, Any]):
    """Imports a command when it is asked for: all of them would double the time that each one takes to start."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            part = typer.Typer()
            import_module(f"recado.cli.{_MODULES[name]}").mount(part)
            self._loaded |= typer.main.get_group(part).commands
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


class _Program(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("dict[str, Any]", _Commands())


app = typer.Typer(
    name="recado",
    cls=_Program,
    help="Sends and tracks messages on many channels, over an HTTP API.",
    epilog="Example: recado serve --listen 127.0.0.1:8080 --data-dir ./.recado",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    callback=version.option,
    invoke_without_command=True,
)


def main(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; errors are lines on standard error, never a traceback."""
    try:
        status = typer.main.get_command(app).main(list(arguments), prog_name="recado", standalone_mode=False)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()  # the reader of our output went away: nothing is left to tell
        return 1
    except Exception as error:  # noqa: BLE001 - the last one to see it
        from recado.cli.errors import explain  # it knows every layer's errors: an import that most commands can spare

        lines = explain(error)
        for line in _defect(error) if lines is None else lines:
            print(f"recado: {line}", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))
    return status if isinstance(status, int) else 0


def _defect(error: Exception) -> list[str]:
    """What nobody foresaw: where it happened, without the values of variables, for anyone who fixes it."""
    where = redact_text(render_error((type(error), error, error.__traceback__)))
    return ["this is a defect of Recado; please report it with these lines", *where.splitlines()]
