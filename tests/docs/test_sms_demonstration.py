"""docs/sms-demonstration.md: its four terminals, pasted into four shells as they are."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.program import free_port
from tests.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "sms-demonstration.md").read_text("utf-8")
PROGRAMS = Path(sys.executable).parent
CENTRE, ENDPOINT, SERVICE, MESSAGES = (
    "\n".join(re.findall(r"```sh\n(.*?)```", chapter, re.DOTALL)) for chapter in re.split(r"\n## \d\. ", PAGE)[1:]
)


@pytest.mark.long
async def test_the_four_terminals_show_what_the_page_says(
    terminal: Callable[[str, str], Path], settings: dict[str, str], tmp_path: Path
) -> None:
    ports = {shown: free_port() for shown in ("8080", "8090", "2775", "9000")}

    def pasted(script: str) -> str:
        for shown, port in ports.items():
            script = script.replace(f"127.0.0.1:{shown}", f"127.0.0.1:{port}")
        script = script.replace('"127.0.0.1", 9000', f'"127.0.0.1", {ports["9000"]}')
        return script.replace(".venv/bin", str(PROGRAMS))

    centre = terminal("centre", pasted(CENTRE))
    endpoint = terminal("endpoint", pasted(ENDPOINT))
    service = terminal("service", f"export RECADO_LISTEN=127.0.0.1:{ports['8080']}\n{pasted(SERVICE)}")
    await until(lambda: "listens on" in centre.read_text(), "the SMS centre listens")
    await until(lambda: "Recado serves" in service.read_text(), "the service is ready")
    done = subprocess.run(
        ["bash", "-eu", "-c", pasted(MESSAGES)],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" is delivered\n") == 2, done.stdout
    assert done.stdout.endswith("https://example.com/parcels/17\n")
    await until(
        lambda: all(endpoint.read_text().count(event) == 2 for event in ('"sms.delivered"', '"sms.clicked"')),
        "both messages are told as delivered and as clicked",
    )
