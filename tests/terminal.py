"""A terminal in which a test runs a command: what it draws is read, and keys are typed."""

import asyncio
import fcntl
import os
import pty
import re
import struct
import sys
import termios
from typing import Any, Self

from tests.waiting import until

SEEN_WITHIN = 30.0  # seconds
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal of 20 lines of 100 characters, while the block lasts; a command that then still runs is killed."""

    def __init__(self) -> None:
        self._person, self._program = pty.openpty()
        fcntl.ioctl(self._program, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 100, 0, 0))
        self.before = termios.tcgetattr(self._program)
        self.written = ""
        self._process: asyncio.subprocess.Process | None = None

    @property
    def now(self) -> Any:
        return termios.tcgetattr(self._program)

    @property
    def screen(self) -> str:
        """What was drawn last."""
        return _CONTROLS.sub("", self.written.rpartition("\x1b[H")[2])

    async def __aenter__(self) -> Self:
        asyncio.get_running_loop().add_reader(self._person, self._read)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()
        asyncio.get_running_loop().remove_reader(self._person)
        os.close(self._person)
        os.close(self._program)

    async def run(self, *arguments: str, **environment: str) -> asyncio.subprocess.Process:
        """Begin `recado` with these arguments."""
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "recado", *arguments,
            stdin=self._program, stdout=self._program, stderr=self._program,
            env={**os.environ, "TERM": "xterm-256color", **environment},
        )  # fmt: skip
        return self._process

    def type(self, keys: str) -> None:
        os.write(self._person, keys.encode())

    async def shows(self, *texts: str) -> None:
        try:
            await until(lambda: all(text in self.screen for text in texts), "it is shown", every=0.05)
        except AssertionError:
            raise AssertionError(f"{texts} are not shown: {self.screen!r}") from None

    def _read(self) -> None:
        self.written += os.read(self._person, 65_536).decode(errors="replace")
