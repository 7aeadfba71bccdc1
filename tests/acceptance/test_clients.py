"""docs/clients.md: clients that generators from other hands make of the document compile, fit its types, and send."""

import compileall
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.acceptance.served import Served
from tests.acceptance.tenants import Tenant
from tests.acceptance.test_document import NODE, tool
from tests.program import Api

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text("utf-8")
PERSON = "+5511987650000"
_SCRIPTS = Path(sys.executable).parent
# What a generator calls a shape that the document gives no name, and one that each operation has of its own.
_NAMELESS = re.compile(r"_type_\d|_response_\d")
_SENT = re.compile(r"msg_\w{21} queued\n422 PHONE_INVALID\n")
_TYPESCRIPT = {
    "strict": True,
    "noEmitOnError": True,
    "target": "es2022",
    "module": "esnext",
    "moduleResolution": "bundler",
    "types": [],
}

pytestmark = pytest.mark.long


@pytest.fixture
def folder(tmp_path: Path, served_document: Any) -> Path:
    """A folder with the document in it."""
    (tmp_path / "openapi.json").write_bytes(orjson.dumps(served_document))
    return tmp_path


@pytest.fixture
async def caller(served: Served, tenants: tuple[Tenant, Tenant]) -> dict[str, str]:
    """The settings of a caller whose first connected number a person has written to."""
    async with Api(served.url, tenants[0].token) as api:
        (number,) = (await api.call("GET", "/numbers?status=connected&limit=1"))["items"]
        came = {"channel": "chatapp", "numberId": number["id"], "from": PERSON, "text": "Good morning"}
        await api.call("POST", "/v2/sandbox/inbound", came)
    return {"URL": served.url, "KEY": tenants[0].token, "PHONE": PERSON}


def shown(language: str) -> str:
    """What the page shows in a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


def run(folder: Path, *command: str, **settings: str) -> str:
    """What a command printed that succeeded."""
    environment = {**os.environ, "PATH": f"{_SCRIPTS}{os.pathsep}{os.environ['PATH']}"}  # the generator calls ruff
    done = subprocess.run(
        command, cwd=folder, env=environment | settings, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_python_client_is_made_without_a_warning_and_sends(
    folder: Path, served_document: Any, caller: dict[str, str]
) -> None:
    (folder / "client.yaml").write_text(shown("yaml"))
    (folder / "send.py").write_text(shown("python"))
    (command,) = re.findall(r"^openapi-python-client .*$", PAGE, re.MULTILINE)
    run(folder, *command.split(), "--fail-on-warning")

    made = folder / "recado_client"
    assert compileall.compile_dir(made, quiet=1)
    operations = {file.stem for file in made.glob("api/*/*.py")} - {"__init__"}
    assert len(operations) == sum(map(len, served_document["paths"].values()))
    assert [file.stem for file in made.glob("models/*.py") if _NAMELESS.search(file.stem)] == []
    # The generator's own client.py, which is the same for every document, is not clean: what send.py uses of it is.
    run(folder, sys.executable, "-m", "mypy", "--strict", "--follow-imports", "silent", "send.py")
    told = run(folder, sys.executable, "send.py", **caller)
    assert _SENT.fullmatch(told), told


@pytest.mark.node
def test_a_typescript_client_compiles_and_sends(folder: Path, caller: dict[str, str]) -> None:
    run(folder, tool("openapi-typescript"), "openapi.json", "--output", "recado.d.ts")
    (folder / "send.ts").write_text(shown("ts"))
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "node_modules").symlink_to(NODE / "node_modules")
    (folder / "tsconfig.json").write_bytes(orjson.dumps({"compilerOptions": _TYPESCRIPT, "files": ["send.ts"]}))
    run(folder, tool("tsc"), "--project", "tsconfig.json")
    told = run(folder, "node", "send.js", **caller)
    assert _SENT.fullmatch(told), told


@pytest.mark.node
def test_a_typescript_client_compiles_that_gives_only_what_is_required(folder: Path) -> None:
    run(folder, tool("openapi-typescript"), "openapi.json", "--output", "recado.d.ts")
    shutil.copy(NODE / "client.ts", folder)
    run(folder, tool("tsc"), "--strict", "--noEmit", "--target", "es2022", "client.ts")
