"""`recado simulator` as a process: a line when it listens, a record that survives its death, errors that help."""

import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import typer
import typer.main
from tests.callback_service import SECRET, Service
from tests.channels.accounts import chatapp_account
from tests.waiting import until

from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.provider import Accepted, OutboundMessage
from recado.cli import simulator
from recado.cli.errors import CommandError
from recado.engine.clock import SystemClock
from recado.simulator.record import read_record, unsent

SCRIPT = """
import typer
from recado.cli import simulator
app = typer.Typer()
simulator.mount(app)
app()
"""
ACCOUNT = chatapp_account()
MESSAGE = OutboundMessage(
    id="msg_0000000100000000000a1",
    organization_id="org_1",
    env="live",
    channel="chatapp",
    sender_id="num_1",
    to="+5511987654321",
    type="text",
)


class Process:
    def __init__(self, record: Path, *options: str) -> None:
        options = options or ("--silent-share", "1")
        self._process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT, "--listen", "127.0.0.1:0", "--record", str(record), *options],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RECADO_SIMULATOR_SECRET": "s"},
        )
        assert self._process.stdout is not None
        self.line = self._process.stdout.readline()

    def end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        status = self._process.wait(60)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return status


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[list[Process]]:
    started: list[Process] = []
    yield started
    for process in started:
        if process._process.returncode is None:
            process.end(signal.SIGKILL)


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    await service.start()
    yield service
    await service.stop()


async def send_to(line: str, callback_url: str = "http://x.example") -> object:
    bridge = Bridge(
        url=line.split(" ")[3].rstrip(","), token="t", secret="s", callback_url=callback_url, clock=SystemClock()
    )
    await bridge.start()
    try:
        return await bridge.send(MESSAGE, ACCOUNT, 1)
    finally:
        await bridge.stop()


async def test_what_was_answered_survives_the_death_of_the_process(processes: list[Process], tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    processes.append(Process(record))
    assert processes[0].line.startswith("simulator listens on http://127.0.0.1:")
    first = await send_to(processes[0].line)
    assert processes[0].end(signal.SIGKILL) == -signal.SIGKILL
    processes.append(Process(record))
    second = await send_to(processes[1].line)
    assert processes[1].end(signal.SIGTERM) == 0

    assert isinstance(first, Accepted)
    assert isinstance(second, Accepted)
    assert first.provider_message_id != second.provider_message_id
    assert [request.provider_message_id for request in read_record(record)] == [
        first.provider_message_id,
        second.provider_message_id,
    ]


async def test_receipts_of_a_killed_process_come_from_its_next_life(
    processes: list[Process], tmp_path: Path, service: Service
) -> None:
    record = tmp_path / "record.jsonl"
    options = ("--receipt-ms", "60000", "--secret", SECRET)
    processes.append(Process(record, *options))
    outcome = await send_to(processes[0].line, service.url)
    processes[0].end(signal.SIGKILL)
    assert isinstance(outcome, Accepted)
    aged = [{**entry, "delays": [0.01, 0.02]} if "delays" in entry else entry for entry in lines(record)]
    record.write_bytes(b"".join(orjson.dumps(entry) + b"\n" for entry in aged))  # as if the minutes had passed

    processes.append(Process(record, *options))

    await service.until(lambda it: len(it.events) == 2)
    assert [event.status for event in service.events] == ["delivered", "read"]
    assert {event.reference for event in service.events} == {MESSAGE.id}
    await until(lambda: not unsent(record), "the record says that nothing is left")


def lines(record: Path) -> list[Any]:
    return [orjson.loads(line) for line in record.read_bytes().splitlines()]


def run(*arguments: str) -> object:
    app = typer.Typer()
    simulator.mount(app)
    return typer.main.get_command(app).main(list(arguments), prog_name="simulator", standalone_mode=False)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--listen", "8090"], "--listen 8090 is not HOST:PORT"),
        (["--listen", "127.0.0.1:high"], "is not HOST:PORT"),
        (["--listen", "127.0.0.1:70000"], "is not HOST:PORT"),
        (["--smpp", "2775"], "--smpp 2775 is not HOST:PORT"),
        (["--smtp", "2525"], "--smtp 2525 is not HOST:PORT"),
        (["--lost-share", "0.6", "--refuse-share", "0.6"], "sum to more than 1"),
        (["--secret", ""], "signing secret is empty"),
        (["--record", "."], "is a folder: name a file"),
        (["--code-share", "131056"], "--code-share 131056 is not CODE=SHARE"),
        (["--code-share", "131056=2"], "the share is not between 0 and 1"),
        (["--code-share", "131056=0.6", "--code-share", "368=0.6"], "sum to at most 1"),
    ],
)
def test_a_mistake_is_told_in_one_line(arguments: list[str], says: str, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match=says) as mistake:
        run("--record", str(tmp_path / "record"), "--secret", "s", *arguments)

    assert "\n" not in str(mistake.value)


def test_the_help_has_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    run("--help")

    assert "Example: recado simulator --listen" in " ".join(capsys.readouterr().out.split())
