"""The command: the numbers once, for people or programs, or live in a terminal."""

import sys
from typing import Annotated, Final

import typer
from rich.console import Console

from recado.cli.api_calls import USUAL_KEY, USUAL_URL, KeyFrom, Url, address_of, caller, key_in
from recado.cli.common import Json, print_json, print_table, run_async
from recado.cli.ending import until_told
from recado.cli.errors import CommandError
from recado.cli.top.live_numbers import ORDERS, NumberOrder, NumberRow, arranged, row_of
from recado.cli.top.screen import COLUMNS, order_named, plain
from recado.cli.top.watching import all_numbers, watch

_EXAMPLE: Final = "Example: RECADO_API_KEY=svc_live_… recado top --url https://recado.example.com --sort queue"
_ORDERS: Final = ", ".join(order.name for order in ORDERS)


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command("top", epilog=_EXAMPLE)(top)


def top(
    url: Url = USUAL_URL,
    key_from: KeyFrom = USUAL_KEY,
    sort: Annotated[str, typer.Option("--sort", metavar="ORDER", help=f"One of {_ORDERS}.")] = ORDERS[0].name,
    words: Annotated[
        str,
        typer.Option(
            "--filter", metavar="WORDS", help="Only numbers that have all of them: of ids, phones, states, reasons."
        ),
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="Print the numbers once, and end.")] = False,
    as_json: Json = False,
) -> None:
    """Watch what each number does, live, and pause or resume one.

    The key needs ops:read, and ops:write to pause. Arrows select, s sorts, / filters, p pauses, u resumes, q leaves;
    h tells of all keys. --json prints once, too.
    """
    key, address = key_in(key_from), address_of(url)
    order = order_named(sort)
    if order is None:
        raise CommandError(f"--sort {sort} is not known: it is one of {_ORDERS}")
    if once or as_json:
        rows = run_async(until_told(_all(address, key, order, words)))
        if as_json:
            print_json({"items": [row.state for row in rows]})
        else:
            cells = [[plain(column.text(row)) for column in COLUMNS] for row in rows]
            print_table([column.title for column in COLUMNS], cells, empty="no number")
        return
    console = Console()
    if not (console.is_terminal and sys.stdin.isatty()) or console.is_dumb_terminal:
        raise CommandError("this is no terminal that can be drawn on: say --once or --json")
    run_async(until_told(watch(address, key, console, order, words)))


async def _all(address: str, key: str, order: NumberOrder, words: str) -> list[NumberRow]:
    async with caller(key) as session:
        return arranged(map(row_of, await all_numbers(session, address)), order, words=words)
