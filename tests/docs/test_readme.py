"""The README's tour works as it is, pasted into a shell."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.program import free_port

README = Path(__file__).parents[2] / "README.md"
PROGRAMS = Path(sys.executable).parent
TOUR = README.read_text("utf-8").partition("## A tour")[2].partition("\n## ")[0]
START, *STEPS = re.findall(r"```sh\n(.*?)```", TOUR, re.DOTALL)


@pytest.fixture
def environment(data_dir: Path) -> dict[str, str]:
    """Settings for the service and the commands of the tour; everything else is as the README has it."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RECADO_")}
    return {**inherited, "RECADO_DATA_DIR": str(data_dir), "RECADO_LISTEN": "127.0.0.1:0"}


@pytest.fixture
def address(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The address of a service like the one that the tour's `make run` starts, with its settings."""
    settings, _, command = START.strip().rpartition(" make ")
    assert command == "run"
    with (tmp_path / "service.log").open("wb") as log:
        service = subprocess.Popen(
            [sys.executable, "-m", "recado", "serve"],
            cwd=tmp_path,
            env={**environment, "PYTHONUNBUFFERED": "1", **dict(each.split("=", 1) for each in settings.split())},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
        assert service.stdout is not None
        with service.stdout as output:
            yield output.readline().split()[-1].removeprefix("http://")
            service.terminate()
            service.wait(timeout=60)


@pytest.mark.long
def test_the_tour_works_pasted_as_it_is(environment: dict[str, str], address: str, tmp_path: Path) -> None:
    receiver = str(free_port())
    script = "\n".join(STEPS).replace(".venv/bin", str(PROGRAMS))
    assert script.count("127.0.0.1:8080") == 1  # where nothing else is said
    environment["URL"] = f"http://{address}"
    assert script.count("9000") == 2
    script = script.replace("9000", receiver)

    done = pasted(script, environment, tmp_path)

    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status": "read"' in done.stdout
    assert re.search(r"\{'reason': '(behind|rate)'", done.stdout)
    assert "Everything that was accepted left once, within its number's rate." in done.stdout
    delivered = done.stdout.strip().splitlines()[-1]
    assert delivered.startswith('message.delivered {"id":"evt_')
    assert '"metadata":{"order":"A-1"}' in delivered

    # A second time on the same service, without the minutes of load.
    load = next(step for step in STEPS if "loadtest" in step)
    again = script.replace(load.replace(".venv/bin", str(PROGRAMS)), "")
    assert "loadtest" not in again
    done = pasted(again, environment, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert '"status": "read"' in done.stdout


def test_a_wrong_key_or_no_service_ends_the_tour_with_one_sentence(
    environment: dict[str, str], address: str, tmp_path: Path
) -> None:
    base, _, helpers = STEPS[0].replace(".venv/bin", str(PROGRAMS)).partition("\nKEY=")
    helpers = helpers.partition("\n")[2]
    for at, key, told in (
        (address, "svc_test_wrong", "Unknown API key: "),
        (f"127.0.0.1:{free_port()}", "svc_test_wrong", "no answer: does the service run?"),
    ):
        script = f"{base.replace('127.0.0.1:8080', at)}\nKEY={key}\n{helpers}\nbecomes /messages/msg_1 read"
        done = pasted(script, environment, tmp_path)
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
        assert "Traceback" not in done.stderr


def pasted(script: str, environment: dict[str, str], folder: Path) -> "subprocess.CompletedProcess[str]":
    """The outcome of the commands in a shell."""
    return subprocess.run(
        ["bash", "-eu", "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
