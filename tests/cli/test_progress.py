"""Bars of commands that take long."""

import io

from rich.progress import TextColumn

from recado.cli.progress import progress_bar


def test_a_bar_that_nobody_watches_writes_nothing() -> None:
    bar = progress_bar(TextColumn("{task.description}"))
    assert bar.console.stderr
    bar.console.file = written = io.StringIO()  # of this bar alone: others of the process write to standard error, too
    with bar:
        bar.update(bar.add_task("bytes", total=2), advance=1)
    assert written.getvalue() == ""
