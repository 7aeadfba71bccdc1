"""The unit of systemd, as systemd's own tools judge it."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

UNIT = Path(__file__).parents[2] / "deploy" / "systemd" / "recado.service"
EXPOSURE = 20
"""Tenths: at most so open, of 100; without any hardening a service has some 95."""


def analyzed(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)


def written(folder: Path, text: str) -> Path:
    unit = folder / UNIT.name
    unit.write_text(text)
    return unit


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    text = UNIT.read_text("utf-8").replace("/opt/recado/.venv/bin", str(Path(sys.executable).parent))
    done = analyzed("verify", written(tmp_path, text))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    unknown = analyzed("verify", written(tmp_path, text.replace("UMask", "Umsk")))
    assert "'Umsk'" in unknown.stderr


def test_the_service_may_do_little_beside_its_work(tmp_path: Path) -> None:
    shut = analyzed("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", UNIT)
    assert shut.returncode == 0, shut.stdout
    open_to_all = re.sub(r"^UMask=.*?^$", "", UNIT.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    done = analyzed(
        "security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", written(tmp_path, open_to_all)
    )
    assert done.returncode != 0
