"""The processes of a service with fronts, and callers that press all of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from tests.program import Service

from recado.cli.serve import OWNER, STANDBY
from recado.fronts.front import NAME as FRONT

WORKERS = 3
CONNECTIONS = 16
AGAIN_AFTER = 0.02  # seconds, after an answer: the machine is shared
PATIENCE = 40.0  # seconds of a caller: the service answers within 30


def owner_of(service: Service) -> int:
    """The process id of the owner, which its launcher has begun and may begin again."""
    (owner,) = owners_of(service)
    return owner


def owners_of(service: Service) -> list[int]:
    """None, while none is there."""
    return [each for each in children_of(service.pid) if name_of(each) == OWNER]


def standbys_of(service: Service) -> list[int]:
    """The process that waits to be the next owner, where there is one."""
    return [each for each in children_of(service.pid) if name_of(each) == STANDBY]


def fronts_of(service: Service) -> list[int]:
    """The process ids of the fronts that run."""
    return sorted(each for owner in owners_of(service) for each in children_of(owner) if is_front(each))


def children_of(pid: int) -> list[int]:
    found = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(FileNotFoundError, ProcessLookupError):
                found += [int(each) for each in (task / "children").read_text().split()]
    return found


def name_of(pid: int) -> str:
    """By which `ps -o comm` calls it; empty when it has ended."""
    try:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if rest.split()[0] == "Z" else name


def is_front(pid: int) -> bool:
    """Whether this is a front that has not ended; one that has just been begun may not be one yet."""
    try:
        return name_of(pid) == FRONT or b"recado.fronts.front" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


@dataclass(slots=True)
class Answer:
    began: float  # by the loop's clock, as `ended`
    ended: float
    status: int  # 0: the connection broke
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Press:
    """Callers that send, each over a connection of its own, which never asked anything else: fronts keep them."""

    def __init__(self, url: str, token: str, path: str, body: Mapping[str, Any], *, patience: float = PATIENCE) -> None:
        self._url, self._path, self.body, self._patience = url, path, body, patience
        self._headers = {"Authorization": f"Bearer {token}"}
        self.answers: list[Answer] = []
        self.under_way = 0
        self._over = False

    @asynccontextmanager
    async def pressing(self, connections: int = CONNECTIONS) -> AsyncIterator["Press"]:
        """Send again and again while the block runs."""
        self._over = False
        callers = [asyncio.create_task(self._again()) for _ in range(connections)]
        try:
            yield self
        finally:
            self._over = True
            await asyncio.gather(*callers)

    async def at_once(self, connections: int, each: int = 1, **headers: str) -> list[Answer]:
        """So many from each of so many connections."""
        await asyncio.gather(*(self._some(each, headers) for _ in range(connections)))
        return self.answers

    @asynccontextmanager
    async def resting(self, connections: int = CONNECTIONS) -> AsyncIterator[Callable[[], Awaitable[None]]]:
        """Connections that sent one each, and rest until what is yielded is called: then each sends another."""
        async with AsyncExitStack() as sessions:
            open_ = [await sessions.enter_async_context(self._session()) for _ in range(connections)]
            await asyncio.gather(*(self._send(each) for each in open_))

            async def again() -> None:
                await asyncio.gather(*(self._send(each) for each in open_))

            yield again

    def accepted(self, since: float = 0.0) -> list[Answer]:
        """What was accepted of what began since then."""
        return [each for each in self.answers if each.status == 201 and each.began >= since]

    def since(self, moment: float) -> list[Answer]:
        return [each for each in self.answers if each.began >= moment]

    async def _again(self) -> None:
        async with self._session() as session:
            while not self._over:
                await self._send(session)
                await asyncio.sleep(AGAIN_AFTER)

    async def _some(self, count: int, headers: Mapping[str, str]) -> None:
        async with self._session() as session:
            for _ in range(count):
                await self._send(session, **headers)

    def _session(self) -> aiohttp.ClientSession:
        limit, patience = aiohttp.TCPConnector(limit=1), aiohttp.ClientTimeout(total=self._patience)
        return aiohttp.ClientSession(headers=self._headers, connector=limit, timeout=patience)

    async def _send(self, session: aiohttp.ClientSession, **headers: str) -> None:
        now = asyncio.get_running_loop().time
        began = now()
        self.under_way += 1
        try:
            async with session.post(self._url + self._path, json=self.body, headers=headers) as answer:
                body = await answer.json(content_type=None)
                self.answers.append(Answer(began, now(), answer.status, body, answer.headers))
        except (aiohttp.ClientError, OSError):  # or it took too long
            self.answers.append(Answer(began, now(), 0))
        finally:
            self.under_way -= 1
