"""A service whose first start a terminal saw: the sign-in and the key that it printed there, once."""

import asyncio
import os
import pty
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.console.conftest import SignIn
from tests.program import Service
from tests.waiting import until


@dataclass(frozen=True, slots=True)
class FirstStart:
    """`owner`: by the printed line. `token`: of the test key without request limits."""

    service: Service
    owner: SignIn
    token: str


@asynccontextmanager
async def first_start(folder: Path) -> AsyncIterator[FirstStart]:
    """`recado serve` on an empty folder, with the sandbox in a hurry, while the block lasts."""
    person, program = pty.openpty()
    service = Service(folder, SSRF_ALLOW_CIDRS="127.0.0.0/8", SANDBOX_TIME_SCALE="0.1", LOG_FORMAT="console")
    service.output = Path(os.ttyname(program))
    printed = ""

    def read() -> None:
        nonlocal printed
        printed += os.read(person, 65_536).decode()

    asyncio.get_running_loop().add_reader(person, read)
    try:
        await service.start()
        pattern = re.compile(r"sign-in +(\S+) with the password (\S+)")
        found = await until(lambda: pattern.search(printed), "the sign-in is printed")
        assert f"Console       {service.url}/console" in printed
        yield FirstStart(service, SignIn(service.url, *found.groups()), await asyncio.to_thread(service.key, "test"))
    finally:
        asyncio.get_running_loop().remove_reader(person)
        await service.wipe()
        os.close(person)
        os.close(program)
