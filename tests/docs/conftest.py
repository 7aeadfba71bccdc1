"""Terminals for the pages whose commands are pasted into several."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest


@pytest.fixture
def settings(data_dir: Path) -> dict[str, str]:
    """Nothing but where the data is: the rest is on the page."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
    return {**inherited, "RECADO_DATA_DIR": str(data_dir), "PYTHONUNBUFFERED": "1"}


@pytest.fixture
def terminal(settings: dict[str, str], tmp_path: Path) -> Iterator[Callable[[str, str], Path]]:
    """Pastes into a new shell that stays; answers the file of what it shows.

    The first one ends first: without its provider, the service does not wait for the answers that never come.
    """
    with ExitStack() as stack:
        shells: list[subprocess.Popen[bytes]] = []

        def paste(name: str, script: str) -> Path:
            shown = tmp_path / f"{name}.log"
            with shown.open("wb") as output:
                shell = subprocess.Popen(
                    ["bash", "-eu", "-c", script],
                    cwd=tmp_path,
                    env=settings,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    start_new_session=True,
                )
            shells.append(shell)
            return shown

        yield paste
        for shell in reversed(shells):
            stack.callback(_end, shell)


def _end(shell: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C in that terminal."""
    if shell.poll() is None:
        os.killpg(shell.pid, signal.SIGINT)
    shell.wait(60)
