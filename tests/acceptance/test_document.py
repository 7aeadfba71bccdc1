"""The OpenAPI document of the running service, read by validators from other hands."""

import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

NODE = Path(__file__).parents[1] / "node"
REDOCLY = NODE / "node_modules" / ".bin" / "redocly"


@pytest.fixture
def document(data_dir: Path, tmp_path: Path) -> Iterator[Any]:
    """The document as a caller fetches it, without a credential."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
    with (tmp_path / "service.log").open("wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "recado", "serve", "--data-dir", str(data_dir), "--listen", "127.0.0.1:0"],
            cwd=tmp_path,
            env={**inherited, "PYTHONUNBUFFERED": "1"},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert service.stdout is not None
        with service.stdout as output:
            address = output.readline().split()[-1]
            with urllib.request.urlopen(f"{address}/v2/openapi.json", timeout=30) as answer:
                yield json.loads(answer.read())
            service.terminate()
            service.wait(timeout=60)


@pytest.fixture
def redocly() -> Path:
    """The linter that `make test` installs; only who may not install Node.js goes without it."""
    if not REDOCLY.exists():
        missing = "@redocly/cli is not installed: `make test` installs it where nodejs and npm are"
        if os.geteuid() == 0:
            pytest.fail(missing)
        pytest.skip(missing)
    return REDOCLY


@pytest.mark.node
def test_the_document_passes_foreign_validators(document: Any, redocly: Path, tmp_path: Path) -> None:
    OpenAPIV31SpecValidator(document).validate()

    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(document), "utf-8")
    done = subprocess.run(
        [str(redocly), "lint", "--config", str(NODE / "redocly.yaml"), "--format", "json", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"},
    )

    problems = json.loads(done.stdout)["problems"] if done.stdout.startswith("{") else done.stderr
    assert problems == []
    assert done.returncode == 0
