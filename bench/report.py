"""The table of docs/benchmarks.md, and the machine that it was measured on."""

import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.harness import ROOT, Figure
from recado.interpreter import this_build
from recado.storage.embedded.postgres_binaries import MAJOR

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- table: written by `make bench` -->", "<!-- end of the table -->"


def machine() -> str:
    """Processor, cores, memory and the versions that count."""
    processor = "unknown processor"
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists() and (found := re.search(r"^model name\s*:\s*(.+)$", cpuinfo.read_text(), re.MULTILINE)):
        processor = found[1].strip()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    software = ", ".join(f"{name} {version(name)}" for name in ("aiohttp", "asyncpg", "uvloop"))
    return (
        f"{processor}, {os.cpu_count()} cores, {memory:.0f} GiB; {platform.system()} {platform.release()}; "
        f"Python {this_build()}, {software}, PostgreSQL {MAJOR}"
    )


def page_lines(figures: Sequence[Figure], measured_on: str) -> list[str]:
    """The table in Markdown, under the machine."""
    rows = [f"| {' | '.join(figure.cells())} |" for figure in figures]
    header = ["| Path | Figure | Bound | Ratio | Target | Met |", "|---|---:|---:|---:|---|---|"]
    return [f"{datetime.now(UTC):%Y-%m-%d} on: {measured_on}.", "", *header, *rows]


def write_page(lines: Sequence[str], page: Path = PAGE) -> None:
    """Put the table in the place of the last one."""
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    page.write_text(before + "\n".join([BEGIN, *lines, END]) + after, encoding="utf-8")
