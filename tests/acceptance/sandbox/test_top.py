"""`recado top` as a person uses it, in a terminal beside a real service (C34.1, C35)."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from typing import Any

import orjson
from tests.acceptance.sandbox.customer import Customer
from tests.program import Api, Service
from tests.waiting import until

SEEN_WITHIN = 30.0  # seconds
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal of 20 lines of 100 characters, in which a command runs."""

    def __init__(self) -> None:
        self._person, self._program = pty.openpty()
        fcntl.ioctl(self._program, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self.before = termios.tcgetattr(self._program)
        self.written = ""

    @property
    def now(self) -> Any:
        return termios.tcgetattr(self._program)

    @property
    def screen(self) -> str:
        """What was drawn last."""
        return _CONTROLS.sub("", self.written.rpartition("\x1b[H")[2])

    async def run(self, *command: str, **environment: str) -> asyncio.subprocess.Process:
        asyncio.get_running_loop().add_reader(self._person, self._read)
        return await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recado", *command,
            stdin=self._program, stdout=self._program, stderr=self._program,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )  # fmt: skip

    def type(self, keys: str) -> None:
        os.write(self._person, keys.encode())

    async def shows(self, *texts: str) -> None:
        try:
            await until(lambda: all(text in self.screen for text in texts), SEEN_WITHIN, "it is shown", every=0.05)
        except AssertionError:
            raise AssertionError(f"{texts} are not shown: {self.screen!r}") from None

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._person)
        os.close(self._person)
        os.close(self._program)

    def _read(self) -> None:
        self.written += os.read(self._person, 65_536).decode(errors="replace")


async def test_a_person_sees_a_number_and_pauses_and_resumes_it_by_keys(service: Service, api: Api, token: str) -> None:
    number_id = (await Customer.arrive(api)).number_id

    async def held_by() -> str | None:
        held = (await api.call("GET", f"/v2/ops/numbers/{number_id}")).get("holding")
        return None if held is None else str(held["reason"])

    terminal = Terminal()
    process = await terminal.run("top", "--url", service.url, "--filter", number_id, RECADO_API_KEY=token)
    try:
        await terminal.shows("live", "1–1 of 1 number by trouble", number_id)
        terminal.type("p")
        await terminal.shows(f"y: pause {number_id}")
        assert await held_by() is None
        terminal.type("y")
        await terminal.shows(f"{number_id} is paused", "operator_paused")
        assert await held_by() == "operator_paused"
        terminal.type("u")
        await terminal.shows(f"y: resume {number_id}")
        terminal.type("y")
        await terminal.shows(f"{number_id} is resumed")
        assert await held_by() is None
        assert terminal.now != terminal.before
        terminal.type("q")
        assert await asyncio.wait_for(process.wait(), SEEN_WITHIN) == 0
        assert terminal.now == terminal.before
        left = "\x1b[?25h\x1b[?1049l"  # the cursor is there again, and what the terminal showed before
        await until(lambda: terminal.written.endswith(left), SEEN_WITHIN, "the screen is left", every=0.05)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        terminal.close()


async def test_a_script_gets_the_numbers_once(service: Service, api: Api, token: str) -> None:
    number_id = (await Customer.arrive(api)).number_id
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "recado", "top", "--url", service.url, "--json", "--filter", number_id,
        stdout=asyncio.subprocess.PIPE, env={**os.environ, "RECADO_API_KEY": token},
    )  # fmt: skip
    output, _ = await process.communicate()
    (item,) = orjson.loads(output)["items"]
    assert (process.returncode, item["numberId"], item["breaker"]) == (0, number_id, "closed")
