"""What the tests of a folder share is made once, and ends with the last of them."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.folders import taken_together

ROOT = Path(__file__).parent.parent
HOOKS = """
from tests import folders

def pytest_configure(config):
    config.pluginmanager.register(folders)
"""
SHARING = """
import pathlib
import pytest

@pytest.fixture(scope="session")
def made():
    with pathlib.Path("told").open("a") as told:
        print("made", file=told, flush=True)
        yield told
        print("ended", file=told, flush=True)

@pytest.fixture(scope="session", autouse=True)
def upon_it(made):
    print("built", file=made, flush=True)
    yield
    print("torn down", file=made, flush=True)
"""
USING = "def test_it(made): print('used', file=made, flush=True)"
NOT_USING = "def test_it(): open('told', 'a').write('left\\n')"


@pytest.mark.parametrize(
    ("file", "unit"),
    [
        ("tests/acceptance/console/test_views.py", "tests/acceptance/console"),
        ("tests/acceptance/test_walk.py", "tests/acceptance"),
        ("tests/acceptance/test_fuzz.py", "tests/acceptance/test_fuzz.py"),  # with a service of its own
        ("tests/http/test_companies.py", "tests/http/test_companies.py"),
    ],
)
def test_one_process_takes_the_files_that_share_a_service(file: str, unit: str) -> None:
    assert (ROOT / file).exists()
    assert taken_together(file) == unit


def test_what_was_made_for_a_folder_ends_before_the_next_folder_and_is_made_again_after_it(tmp_path: Path) -> None:
    tests = tmp_path / "checks"  # below the root, as those here
    for folder in ("a", "b"):
        (tests / folder).mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tests / "conftest.py").write_text(HOOKS)
    (tests / "a" / "conftest.py").write_text(SHARING)
    for name, text in (("a/test_1", USING), ("a/test_2", USING), ("b/test_3", NOT_USING)):
        (tests / f"{name}.py").write_text(text)
    order = [f"checks/{name}.py" for name in ("a/test_1", "a/test_2", "b/test_3", "a/test_1")]
    command = [sys.executable, "-m", "pytest", "--import-mode=importlib", "-q", "--keep-duplicates"]
    done = subprocess.run(
        [*command, "-p", "no:cacheprovider", *order],
        cwd=tmp_path, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    once = ["made", "built", "used", "used", "torn down", "ended"]
    assert (tmp_path / "told").read_text().split("\n")[:-1] == [
        *once, "left", "made", "built", "used", "torn down", "ended",
    ]  # fmt: skip
