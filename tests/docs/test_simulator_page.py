"""docs/simulator.md: its commands work as pasted, and its table of orders is the program's."""

import asyncio
import os
import re
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.program import free_port
from tests.waiting import until

PAGE = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text("utf-8")
START, CENTRE, MAIL_SERVER, ORDERS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
ENQUIRE_LINK = 0x15
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@contextmanager
def started(command: str, folder: Path) -> Iterator[tuple[dict[str, str], Path]]:
    """The simulator as a block of the page starts it: the environment, and what it shows."""
    environment = {**os.environ, "PATH": PATH, "PYTHONUNBUFFERED": "1"}
    shown = folder / "shown.log"
    with shown.open("wb") as output:
        simulator = subprocess.Popen(
            ["bash", "-eu", "-c", command],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield environment, shown
    finally:
        os.killpg(simulator.pid, signal.SIGTERM)
        simulator.wait(30)


async def test_the_simulator_starts_and_obeys_as_pasted(tmp_path: Path) -> None:
    listens = f"127.0.0.1:{free_port()}"
    with started(START.replace("127.0.0.1:8090", listens), tmp_path) as (environment, shown):
        await until(lambda: "listens on" in shown.read_text(), "the simulator listens")
        script = ORDERS.replace("127.0.0.1:8090", listens).replace("curl ", "curl -sS --fail-with-body ")
        done = subprocess.run(
            ["bash", "-eu", "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert (tmp_path / "sent.jsonl").exists()


async def test_the_simulator_is_an_sms_centre_as_pasted(tmp_path: Path) -> None:
    port = free_port()
    command = CENTRE.replace("127.0.0.1:2775", f"127.0.0.1:{port}").replace(
        "--smpp", f"--listen 127.0.0.1:{free_port()} --smpp"
    )
    with started(command, tmp_path) as (_, shown):
        await until(lambda: "listens on" in shown.read_text(), "the simulator listens")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(struct.pack(">IIII", 16, ENQUIRE_LINK, 0, 1))
        assert await asyncio.wait_for(reader.readexactly(16), 60)
        writer.close()


async def test_the_simulator_is_a_mail_server_as_pasted(tmp_path: Path) -> None:
    port = free_port()
    command = MAIL_SERVER.replace("127.0.0.1:2525", f"127.0.0.1:{port}").replace(
        "--smtp", f"--listen 127.0.0.1:{free_port()} --smtp"
    )
    with started(command, tmp_path) as (_, shown):
        await until(lambda: "listens on" in shown.read_text(), "the simulator listens")
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert (await asyncio.wait_for(reader.readline(), 10)).startswith(b"220 ")
        writer.close()
