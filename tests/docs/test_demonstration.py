"""docs/demonstration.md: its three terminals, pasted into three shells as they are."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.program import free_port
from tests.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "demonstration.md").read_text("utf-8")
PROGRAMS = Path(sys.executable).parent
PROVIDER, SERVICE, LOAD = (
    "\n".join(re.findall(r"```sh\n(.*?)```", chapter, re.DOTALL)) for chapter in re.split(r"\n## \d\. ", PAGE)[1:]
)


@pytest.mark.long
async def test_the_three_terminals_show_what_the_page_says(
    terminal: Callable[[str, str], Path], settings: dict[str, str], tmp_path: Path
) -> None:
    listens, provides = f"127.0.0.1:{free_port()}", f"127.0.0.1:{free_port()}"

    def pasted(script: str) -> str:
        script = script.replace("127.0.0.1:8080", listens).replace("127.0.0.1:8090", provides)
        return script.replace(".venv/bin", str(PROGRAMS))

    provider = terminal("provider", pasted(PROVIDER))
    service = terminal("service", f"export RECADO_LISTEN={listens}\n{pasted(SERVICE)}")
    await until(lambda: "listens on" in provider.read_text(), "the provider listens")
    await until(lambda: "Recado serves" in service.read_text(), "the service is ready")
    done = subprocess.run(
        ["bash", "-eu", "-c", pasted(LOAD)],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything that was accepted left once, within its number's rate." in done.stdout
    counted = re.search(r"(\d+) messages were taken, (\d+) of them twice", done.stdout)
    assert counted is not None, done.stdout
    assert int(counted[1]) > 900
    assert counted[2] == "0"
    wallet = json.loads(done.stdout[done.stdout.rindex("\n{") :])
    assert (wallet["balanceCoins"], wallet["heldCoins"]) == (100_000_000 - 600 * int(counted[1]), 0)
