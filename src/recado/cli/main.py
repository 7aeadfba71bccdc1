"""Mounts the commands, and turns whatever goes wrong in one into a line that says what to do (C35)."""

import sys
from collections.abc import Sequence

import typer
import typer.main

from recado.cli import accounts, contacts, doctor, keys, migrate, organizations, reencrypt, serve, version, wallet
from recado.cli.errors import explain
from recado.cli.loadtest import command as loadtest
from recado.cli.simulator import command as simulator
from recado.config.redaction import redact_text, render_error

app = typer.Typer(
    name="recado",
    help="Sends and tracks messages on many channels, over an HTTP API.",
    epilog="Example: recado serve --listen 127.0.0.1:8080 --data-dir ./.recado",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
serve.mount(app)
migrate.mount(app)
organizations.mount(app)
keys.mount(app)
accounts.mount(app)
wallet.mount(app)
contacts.mount(app)
reencrypt.mount(app)
doctor.mount(app)
loadtest.mount(app)
simulator.mount(app)
version.mount(app)


def run() -> None:
    """The entry point of the `recado` command and of `python -m recado`."""
    sys.exit(main(sys.argv[1:]))


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
        lines = explain(error)
        for line in _defect(error) if lines is None else lines:
            print(f"recado: {line}", file=sys.stderr)
        return int(getattr(error, "exit_code", 1))
    return status if isinstance(status, int) else 0


def _defect(error: Exception) -> list[str]:
    """What nobody foresaw: where it happened, without the values of variables, for whoever mends it."""
    where = redact_text(render_error((type(error), error, error.__traceback__)))
    return ["this is a defect of Recado; please report it with these lines", *where.splitlines()]
