"""The OpenAPI document of the running service, read by validators from other hands."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

NODE = Path(__file__).parents[1] / "node"


def tool(name: str) -> str:
    """A program that `make test` installs; only who may not install Node.js goes without it."""
    found = NODE / "node_modules" / ".bin" / name
    if not found.exists():
        missing = f"{name} is not installed: `make test` installs it where nodejs and npm are"
        if os.geteuid() == 0:
            pytest.fail(missing)
        pytest.skip(missing)
    return str(found)


@pytest.mark.node
def test_the_document_passes_foreign_validators(served_document: Any, tmp_path: Path) -> None:
    OpenAPIV31SpecValidator(served_document).validate()

    file = tmp_path / "openapi.json"
    file.write_text(json.dumps(served_document), "utf-8")
    done = subprocess.run(
        [tool("redocly"), "lint", "--config", str(NODE / "redocly.yaml"), "--format", "json", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "REDOCLY_TELEMETRY": "off", "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true"},
    )

    problems = json.loads(done.stdout)["problems"] if done.stdout.startswith("{") else done.stderr
    assert problems == []
    assert done.returncode == 0


def test_of_what_is_stored_encrypted_only_the_four_opaque_fields_of_the_interface_are_shown(
    served_document: Any,
) -> None:
    found = {
        name: shape
        for component in served_document["components"]["schemas"].values()
        for name, shape in component.get("properties", {}).items()
        if "cipher" in name.lower()
    }
    assert set(found) == {"cpfCipher", "cnpjCipher", "birthDateCipher", "secretCipher"}
    assert [name for name, shape in found.items() if "opaque" not in shape["description"]] == []
    inline = json.dumps(served_document["paths"])
    assert set(re.findall(r'"(\w*[cC]ipher\w*)"', inline)) <= set(found)  # of examples, and shapes without a name


def test_only_what_keeps_answers_tells_of_a_first_request_that_still_runs(served_document: Any) -> None:
    """Sends bind their key to the row that they make, and a repeat waits for it; a dry run makes none (C6.2)."""

    shared = served_document["components"]["responses"]

    def told(path: str) -> bool:
        responses = served_document["paths"][path]["post"]["responses"]
        refused = shared[responses["409"]["$ref"].rpartition("/")[2]] if "409" in responses else {}
        return "IDEMPOTENCY_IN_PROGRESS" in json.dumps(refused)

    sends = ("/messages", "/messages/bulk", "/messages/{id}/reprocess")
    assert [told(path) for path in (*sends, "/messages/resend", "/contacts")] == [False, False, False, True, True]
