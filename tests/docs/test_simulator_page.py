"""docs/simulator.md: its commands work as pasted, and its table of orders is the program's."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from tests.program import free_port
from tests.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text("utf-8")
START, ORDERS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


async def test_the_simulator_starts_and_obeys_as_pasted(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": PATH, "PYTHONUNBUFFERED": "1"}
    listens, shown = f"127.0.0.1:{free_port()}", tmp_path / "shown.log"
    with shown.open("wb") as output:
        simulator = subprocess.Popen(
            ["bash", "-eu", "-c", START.replace("127.0.0.1:8090", listens)],
            cwd=tmp_path,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        await until(lambda: "listens on" in shown.read_text(), 30, "the simulator listens")
        script = ORDERS.replace("127.0.0.1:8090", listens).replace("curl ", "curl -sS --fail-with-body ")
        done = subprocess.run(
            ["bash", "-eu", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "sent.jsonl").exists()
    finally:
        os.killpg(simulator.pid, signal.SIGTERM)
        simulator.wait(30)


def test_the_table_of_orders_is_the_program_s() -> None:
    listed = set(re.findall(r"^\| `/control/([a-z-]+)", PAGE, re.MULTILINE))
    source = Path(__file__).parents[2] / "src" / "recado" / "simulator" / "control.py"
    known = set(re.findall(r'^            case "([a-z-]+)":', source.read_text("utf-8"), re.MULTILINE))
    assert listed == known
