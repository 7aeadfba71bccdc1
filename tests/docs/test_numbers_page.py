"""docs/numbers.md: its commands, pasted into a shell as they are, and the states in its table."""

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.program import Service, running

from recado.domain.senders.number import NumberStatus

PAGE = (Path(__file__).parents[2] / "docs" / "numbers.md").read_text("utf-8")
COMMANDS = "\n".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
PROGRAMS = Path(sys.executable).parent


@pytest.mark.long
async def test_the_commands_of_the_page_run(tmp_path: Path) -> None:
    async with running(Service(tmp_path)) as service:
        done = await asyncio.to_thread(pasted, service)
    assert done.returncode == 0, done.stdout + done.stderr
    shown = done.stdout.splitlines()
    states = [line for line in shown if line in set(NumberStatus)]
    assert states == ["connected", "available", "flagged", "connected"]  # the second is `canSend`
    assert '"queue": {' in done.stdout
    assert re.search(r"^\{'fonte': 'social_ads', 'campanha': 'spring', 'codigo': '\w{6}'\}$", done.stdout, re.MULTILINE)
    assert re.search(r"^\{'reason': 'number_state', 'detail': 'the number is flagged: ", done.stdout, re.MULTILINE)


def pasted(service: Service) -> "subprocess.CompletedProcess[str]":
    """The outcome of the page's commands in a shell; `URL` is set before, as the page allows."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
    return subprocess.run(
        ["bash", "-eu", "-c", COMMANDS.replace(".venv/bin", str(PROGRAMS))],
        env={**inherited, "RECADO_DATA_DIR": str(service.data_dir), "URL": service.url},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_states_of_the_page_are_those_of_a_number() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == ["status", *(status.value for status in NumberStatus)]
