"""`python -m bench [--months N] [--workers N] [NAME…]`: runs those named, or all.

A run of all, with one worker, writes docs/benchmarks.md.
`--months`: how many tables of messages each installation has; 27 unless named, as one that is two years old.
`--workers`: how many processes of each service take requests; 1 unless named.
"""

import argparse
import asyncio
import importlib
import sys

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import recado_process
from bench.harness import Figure
from bench.report import machine, page_lines, write_page

ALL = (
    "accept",
    "end_to_end",
    "workers",
    "sms",
    "consent",
    "events",
    "journeys",
    "signals",
    "webhooks",
    "callbacks",
    "smpp",
    "smtp",
    "direct",
    "clicks",
    "opens",
    "pacing",
    "due",
    "memory",
    "idle",
    "operators",
    "audience",
    "push",
    "media",
    "imports",
    "exports",
    "storage",
    "actors",
    "sms_text",
    "limits",
    "simulate_cluster",
)


def main(arguments: list[str]) -> int:
    """Exit status 1 when a target is missed, 2 for a name that is none."""
    options = argparse.ArgumentParser("python -m bench")
    options.add_argument("names", nargs="*")
    options.add_argument("--months", type=int, default=recado_process.months)
    options.add_argument("--workers", type=int, default=recado_process.workers)
    chosen = options.parse_args(arguments)
    names, recado_process.months, recado_process.workers = chosen.names, chosen.months, chosen.workers
    unknown = [name for name in names if name not in ALL]
    if unknown:
        print(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(ALL)}", file=sys.stderr)
        return 2
    figures = asyncio.run(_run(names or list(ALL)))
    Console(soft_wrap=True).print(_table(figures))
    if not names and chosen.workers == 1:  # the page holds one whole run, never lines of several
        write_page(page_lines(figures, machine()))
    return 1 if any(figure.met is False for figure in figures) else 0


async def _run(names: list[str]) -> list[Figure]:
    figures: list[Figure] = []
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("benchmarks", total=len(names))
        for name in names:
            module = importlib.import_module(f"bench.{name}")
            figures += await module.run(lambda text: progress.update(task, description=text))
            progress.advance(task)
    return figures


def _table(figures: list[Figure]) -> Table:
    table = Table("path", "figure", "bound", "ratio", "target", "met", title=machine())
    for figure in figures:
        colour = {True: "green", False: "red", None: "dim"}[figure.met]
        *cells, met = figure.cells()
        table.add_row(*cells, f"[{colour}]{met}[/]")
    return table


sys.exit(main(sys.argv[1:]))
