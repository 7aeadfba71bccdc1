"""What the commands do in a data folder without an installation: a mistyped `--data-dir` makes none (C35)."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

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
