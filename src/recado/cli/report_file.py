"""The file of a load test's report: what it becomes, by its ending, told before anything is sent (C35)."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from recado.cli.errors import CommandError
from recado.loadtest.chart_html import html_report

_HTML: Final = (".html", ".htm")

Painter = Callable[[Mapping[str, Any]], bytes]


def painter_for(file: Path) -> Painter:
    """What makes the content of the file; CommandError where there is none, or where the file cannot be written."""
    kind = file.suffix.lower()
    if kind not in (*_HTML, ".png"):
        raise CommandError(f"the name {file.name} does not tell what the report is to be: end it in .html or .png")
    if not file.parent.is_dir():
        raise CommandError(f"there is no folder {file.parent}: make it, or name another file")
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise CommandError(f"{file} cannot be written: name another file")
    return _png() if kind == ".png" else _html


def _html(report: Mapping[str, Any]) -> bytes:
    return html_report(report).encode()


def _png() -> Painter:
    try:
        from recado.loadtest.chart_png import png_report  # it needs a library that most installations do without
    except ImportError:
        raise CommandError(
            "a PNG needs Pillow: install it with \"pip install 'recado[png]'\", or end the name in .html"
        ) from None
    return png_report
