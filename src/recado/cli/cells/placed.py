"""`recado cells restart` and `relocate`: the service of one cell, where Ray runs the cells (docs/cluster.md)."""

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.progress import SpinnerColumn, TextColumn, TimeElapsedColumn

from recado.cli.common import Json, print_json, read_settings
from recado.cli.errors import CommandError
from recado.cli.progress import progress_bar

if TYPE_CHECKING:
    from recado.cluster.orders import Orders

RESTART_EPILOG: Final = "Example: recado cells restart b"
RELOCATE_EPILOG: Final = "Example: recado cells relocate b --to 10.0.0.3"

Name = Annotated[str, typer.Argument(metavar="NAME", help="The cell: 'recado cells list' shows all.")]


def restart(name: Name, as_json: Json = False) -> None:
    """Have the service of a cell stop in order, and begin again on its machine. Ray runs it ('serve --cluster').

    Its callers get 503 meanwhile; what was accepted stays. It begins with the program that is installed now, and with
    the environment that 'ray start' had on its machine.
    """
    _carry_out(name, lambda orders: orders.restart(name), as_json=as_json)


def relocate(
    name: Name,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="MACHINE",
            help="The address that 'ray start' gave it.",
            show_default="the machine with the most room",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Have the service of a cell stop in order, and begin on another machine. Ray runs it ('serve --cluster').

    Its callers get 503 meanwhile; what was accepted stays.
    """
    _carry_out(name, lambda orders: orders.relocate(name, to), as_json=as_json)


def refuse_without_ray() -> None:
    """Refuse where the extra is missing; it is not loaded."""
    if find_spec("ray") is None:
        raise CommandError("Ray is not installed: pip install 'recado[cluster]'")


def _carry_out(name: str, order: "Callable[[Orders], str]", *, as_json: bool) -> None:
    refuse_without_ray()
    from recado.cluster.on_ray import NoRay, join  # loads Ray: seconds
    from recado.cluster.orders import NotCarriedOut, Orders

    settings = read_settings()
    began = time.monotonic()
    with progress_bar(SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()) as progress:
        task = progress.add_task("Ray is asked")
        try:
            join(settings.cluster or "auto")
            url = order(
                Orders(lambda what: progress.update(task, description=what), monotonic=time.monotonic, wait=time.sleep)
            )
        except NoRay as error:
            raise CommandError(
                f"{error}: give the command on a machine of the cluster, with the environment of 'ray start'"
            ) from None
        except NotCarriedOut as error:
            raise CommandError(str(error)) from None
    seconds = round(time.monotonic() - began, 1)
    if as_json:
        print_json({"cell": name, "url": url, "seconds": seconds})
    else:
        print(f"{name} answers at {url}, after {seconds:.1f} s")
