"""Bars of commands that take long."""

import pytest
from rich.progress import TextColumn

from recado.cli.progress import progress_bar


def test_a_bar_that_nobody_watches_writes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar(TextColumn("{task.description}")) as bar:
        bar.update(bar.add_task("bytes", total=2), advance=1)
    assert capsys.readouterr() == ("", "")
