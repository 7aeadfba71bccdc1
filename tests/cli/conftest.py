"""Commands run as a user runs them: in processes of their own, in a clean environment."""

import os
import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import forked
from tests.standing_connection import StandingConnection
from tests.two_cells import Cells, made_cells

from recado.storage.embedded.service_folder import service_folder

Recado = Callable[..., "subprocess.CompletedProcess[str]"]
_LIMIT = 120.0  # seconds


@pytest.fixture(scope="session")
def recado(tmp_path_factory: pytest.TempPathFactory) -> Recado:
    """Run `recado` with arguments, and with settings by name: `recado("version", LOG_LEVEL="debug")`."""
    folder = tmp_path_factory.mktemp("empty")

    def run(*arguments: str, **settings: str) -> "subprocess.CompletedProcess[str]":
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
        return forked.run(
            arguments,
            cwd=folder,
            env={**inherited, **{f"RECADO_{name}": value for name, value in settings.items()}},
            timeout=_LIMIT,
        )

    return run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A data folder that the commands of one module share, empty at first."""
    data_dir = tmp_path_factory.mktemp("installation") / "data"
    yield str(data_dir)
    cluster = service_folder(data_dir)
    if cluster is not None:
        shutil.rmtree(cluster)


@pytest.fixture
async def cells(postgres: dict[str, Any], maker: StandingConnection, tmp_path: Path) -> AsyncIterator[Cells]:
    async with made_cells(postgres, maker, tmp_path) as made:
        yield made
