"""One real service that may call receivers on this machine, and receivers that are programs of their own."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.callers import api, token  # noqa: F401 - fixtures of these tests
from tests.program import Service, serving
from tests.waiting import until

NODE = Path(__file__).parents[2] / "node"
PATIENCE = 20.0  # seconds


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The running service at its most talkative."""
    folder = tmp_path_factory.mktemp("webhooks")
    running = Service(folder, SSRF_ALLOW_CIDRS="127.0.0.0/8", SANDBOX_TIME_SCALE="0.1", LOG_LEVEL="debug")
    with serving(running) as started:
        yield started


class Receiver:
    """A receiver of its own making; it believes the secret in its file, and says what it got and thought of it."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self._secret = folder / "secret"
        self._secret.touch()
        self.output = folder / "received.jsonl"
        with self.output.open("wb") as output:
            self.process = subprocess.Popen([*command, str(self._secret)], stdin=subprocess.DEVNULL, stdout=output)

    async def url(self) -> str:
        await until(lambda: b"\n" in self.output.read_bytes(), "the receiver listens")
        return f"http://127.0.0.1:{self.output.read_text().splitlines()[0]}/hook"

    def believe(self, secret: str) -> None:
        self._secret.write_text(secret)

    @property
    def received(self) -> list[Any]:
        """Each request: whether it was `accepted`, its `headers` by lower-case names, its `body`."""
        return [json.loads(line) for line in self.output.read_text().splitlines()[1:] if line.endswith("}")]

    def end(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def start_receiver(tmp_path: Path) -> Iterator[Callable[[str], Receiver]]:
    """Starts a receiver written with the public package for `python` or `node`, or from the lines of the `page`."""
    with ExitStack() as stack:

        def start(kind: str) -> Receiver:
            program = [sys.executable, str(Path(__file__).with_name("receiver.py"))]
            commands = {"python": [*program, "library"], "page": [*program, "page"]}
            made = Receiver(tmp_path, node_receiver() if kind == "node" else commands[kind])
            stack.callback(made.end)
            return made

        yield start


def node_receiver() -> list[str]:
    """Its command; only who may not install Node.js goes without it."""
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules" / "standardwebhooks").exists():
        missing = "standardwebhooks for Node.js is not installed: `make test` installs it where nodejs and npm are"
        if os.geteuid() == 0:
            pytest.fail(missing)
        pytest.skip(missing)
    return [node, str(NODE / "receiver.mjs")]
