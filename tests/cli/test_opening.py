"""Which installation and organization a command is for: a mistyped `--data-dir` makes none (C35)."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.acme import acme

from recado.cli.errors import CommandError
from recado.cli.opening import chosen_organization
from recado.domain.core.ids import IdSource
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database

Recado = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("wallet", "credit", "--env", "live", "--coins", "1", "--reference", "r"),
        ("keys", "list"),
        ("keys", "revoke", "key_0aB3cD4e1234567890123"),
        ("org", "list"),
        ("account", "create", "--email", "ana@example.com"),
        ("reencrypt",),
        ("migrate",),
        ("restore", "--queue-only"),
        ("backup", "file"),
    ],
    ids=" ".join,
)
@pytest.mark.parametrize(
    "used", [pytest.param(False, id="missing"), pytest.param(True, id="of other files", marks=pytest.mark.long)]
)
def test_a_command_that_uses_an_installation_makes_none(
    recado: Recado, tmp_path: Path, arguments: tuple[str, ...], used: bool
) -> None:
    folder = tmp_path / "mistyped"
    if used:
        folder.mkdir()
        (folder / "notes.txt").touch()

    done = recado(*arguments, "--data-dir", str(folder))

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"recado: {folder} holds no installation: name its folder with --data-dir\n"
    assert [each.name for each in folder.iterdir()] == ["notes.txt"] if used else not folder.exists()


async def test_no_command_is_for_an_organization_that_is_moved(database: Database) -> None:
    clock = SystemClock()
    organization = (await acme(database, clock, IdSource(clock, random.Random(7)))).organization
    installation: Any = SimpleNamespace(database=database)
    assert (await chosen_organization(installation, None)).id == organization.id
    await database.execute("update organizations set status = 'suspended', moving = true")
    for wanted in (None, organization.id, organization.name):
        with pytest.raises(CommandError, match=f"{organization.id} is being moved"):
            await chosen_organization(installation, wanted)
