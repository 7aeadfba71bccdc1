"""Continuous integration fails where a test was skipped, and a test that does not apply is left out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

SKIPS = {
    "in_a_test": "import pytest\n\ndef test_a():\n    pytest.skip('no browser')\n",
    "in_a_fixture": (
        "import pytest\n\n@pytest.fixture\ndef browser():\n    pytest.skip('no browser')\n\n"
        "def test_a(browser):\n    pass\n"
    ),
    "by_a_mark": "import pytest\n\n@pytest.mark.skipif(True, reason='no browser')\ndef test_a():\n    pass\n",
    "as_a_module": "import pytest\n\npytest.skip('no browser', allow_module_level=True)\n",
}
PASSES = (
    "from tests.required import only_where\n\n@only_where(False, 'root only')\ndef test_a():\n    assert False\n\n"
    "@only_where(True, 'everywhere')\ndef test_b():\n    pass\n"
)
GO_ON = "--continue-on-collection-errors"


def outcome(folder: Path, tests: dict[str, str], **variables: str) -> tuple[int, str]:
    for name, text in tests.items():
        (folder / f"test_{name}.py").write_text(text)
    ini = folder / "pytest.ini"
    ini.write_text("[pytest]\nmarkers = elsewhere: does not apply here\n")
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.required",
            "-p",
            "no:cacheprovider",
            "-ra",
            "-c",
            str(ini),
            GO_ON,
        ],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_in_continuous_integration_each_skip_is_a_failure_that_says_why(tmp_path: Path) -> None:
    status, said = outcome(tmp_path, {**SKIPS, "what_passes": PASSES}, CI="true")
    assert status == 1
    assert "1 failed, 1 passed, 1 deselected, 3 errors" in said
    for name in SKIPS:
        assert [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR")) and name in line]
    assert "Every test is required here. Skipped: no browser" in said


def test_by_hand_a_skip_is_said_and_what_does_not_apply_is_left_out(tmp_path: Path) -> None:
    status, said = outcome(tmp_path, {**SKIPS, "what_passes": PASSES})
    assert status == 0
    assert "1 passed, 4 skipped, 1 deselected" in said


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_a_program_that_cannot_be_had_is_named_and_fails_continuous_integration(
    tmp_path: Path, ci: str, status: int
) -> None:
    plain_user = tmp_path / "id"
    plain_user.write_text("#!/bin/sh\necho 1000\n")
    plain_user.chmod(0o755)
    done = subprocess.run(
        [ROOT / "tools" / "system-packages", "no-such-program:no-such-package", "sh:dash"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "CI": ci},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status
    assert "MISSING system packages: no-such-package." in done.stderr
