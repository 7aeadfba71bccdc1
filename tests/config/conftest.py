"""Settings are read from a clean environment and an empty folder."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ:
        if name.startswith("RECADO_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
