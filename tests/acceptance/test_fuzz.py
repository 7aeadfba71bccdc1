"""Every operation of the document under generated requests, valid and invalid: no 5xx, nothing undocumented."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.served import ADMIN_TOKEN, Served

HERE = Path(__file__).parent
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
SEED = 20_260


def fuzzed(served: Served, folder: Path, *, phases: str, examples: int, limit: float) -> None:
    """Run Schemathesis with the key and the organization that the service made for itself; AssertionError for any find.

    `limit`: seconds until the run counts as stuck.
    """
    key, token = served.first.keys["test"]
    done = subprocess.run(
        [
            str(SCHEMATHESIS), "--config-file", str(HERE / "schemathesis.toml"), "run", f"{served.url}/v2/openapi.json",
            "--phases", phases, "--max-examples", str(examples), "--seed", str(SEED), "--no-color",
        ],
        cwd=folder,
        env={
            **os.environ,
            "FUZZ_KEY": token,
            "FUZZ_KEY_ID": key.id,
            "FUZZ_ORGANIZATION_ID": served.first.organization.id,
            "FUZZ_ADMIN": ADMIN_TOKEN,
            "PYTHONPATH": str(HERE),
        },
        capture_output=True,
        text=True,
        timeout=limit,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    operations = sum(1 for route in served.routes if route.documented)
    assert re.search(rf"Tested: {operations}\n", done.stdout), done.stdout
    assert read(served, token)["status"] == "active"


def read(served: Served, token: str) -> Any:
    """The organization, as the fuzzer's own key sees it after the run."""
    request = urllib.request.Request(f"{served.url}/v2/organization", headers={"Authorization": f"Bearer {token}"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def test_generated_requests_find_no_5xx_and_nothing_undocumented(served: Served, tmp_path: Path) -> None:
    fuzzed(served, tmp_path, phases="examples,coverage,fuzzing", examples=10, limit=240)


@pytest.mark.long
def test_long_generated_sequences_find_nothing_either(served: Served, tmp_path: Path) -> None:
    fuzzed(served, tmp_path, phases="examples,coverage,fuzzing,stateful", examples=200, limit=1_500)
