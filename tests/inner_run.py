"""A run of pytest inside a test, for what the tests of this project add to it."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).parents[1]


def inner_run(folder: Path, text: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `text` as `test_it.py` of the folder, without installed plugins: `arguments` name those it needs."""
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", *arguments, "--rootdir", ".", "test_it.py"]
    places: Mapping[str, str] = {"PYTHONPATH": str(_ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **places, **environment}, capture_output=True, text=True
    )
