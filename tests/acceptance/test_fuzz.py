"""Every operation of the document under generated requests, valid and invalid: no 5xx, nothing undocumented.

`FUZZ_EXAMPLES`: how many requests of each operation are tried at most (200).
"""

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.acceptance.served import ADMIN_TOKEN, Served
from tests.acceptance.tenants import Tenant, settle
from tests.program import Api

from recado.domain.core.ids import ORGANIZATION

HERE = Path(__file__).parent
SCHEMATHESIS = Path(sys.executable).with_name("schemathesis")
SEED = 20_260
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "200"))


pytestmark = pytest.mark.long  # minutes of both cores


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """An application of its own: what the fuzzer subscribed to goes on being tried, under the eyes of the walk."""
    with Served(tmp_path / "served") as application:
        yield application


def fuzzed(served: Served, folder: Path, *, phases: str, examples: int, limit: float) -> None:
    """Run Schemathesis with the key of an organization of its own; AssertionError for anything that it finds.

    `limit`: seconds until the run counts as stuck.
    """
    document = folder / "openapi.json"
    document.write_text(json.dumps(served.document()), "utf-8")
    with asyncio.Runner() as runner:
        tenant = runner.run(settle(served.url, ADMIN_TOKEN, f"fuzzed in {phases}"))
        other = runner.run(settle(served.url, ADMIN_TOKEN, f"administered in {phases}"))
        own_key = runner.run(key_of(served, tenant))
        done = subprocess.run(
            [
                str(SCHEMATHESIS), "--config-file", str(HERE / "schemathesis.toml"), "run", str(document),
                "--url", served.url, "--phases", phases, "--max-examples", str(examples), "--seed", str(SEED),
                "--no-color",
            ],
            cwd=folder,
            env={
                **os.environ,
                "FUZZ_KEY": tenant.token,
                "FUZZ_ADMIN": ADMIN_TOKEN,
                "FUZZ_IDS": json.dumps({**tenant.ids, ORGANIZATION: other.organization_id}),
                "FUZZ_OWN": json.dumps([own_key, tenant.organization_id]),
                "PYTHONPATH": str(HERE),
            },
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )  # fmt: skip
        print(done.stdout, done.stderr)
        assert done.returncode == 0
        operations = sum(1 for route in served.routes if route.documented)
        assert re.search(rf"Tested: {operations}\n", done.stdout)
        assert runner.run(key_of(served, tenant)) == own_key, "the fuzzer lost its key on the way"


async def key_of(served: Served, tenant: Tenant) -> str:
    """The id of the key that a tenant calls with: the only one that was made together with the organization."""
    async with Api(served.url, tenant.token) as api:
        total = (await api.call("GET", "/v2/api-keys", limit=1))["total"]
        (first,) = (await api.call("GET", "/v2/api-keys", limit=1, skip=total - 1))["items"]
        assert first["prefix"] == tenant.token[:13]
        return str(first["id"])


def test_generated_requests_and_sequences_find_no_5xx_and_nothing_undocumented(served: Served, tmp_path: Path) -> None:
    fuzzed(served, tmp_path, phases="examples,coverage,fuzzing,stateful", examples=EXAMPLES, limit=1_500)
