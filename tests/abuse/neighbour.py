"""The neighbour of an attack: another organization's caller, whose requests are timed by a process of its own.

It sends at a steady rate and measures from the moment at which a request was due: an answer that makes the next request
late is not hidden by it. What it measures while nothing else happens is what a run beside an attack is held against.
"""

import asyncio
import json
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Self

import aiohttp

RATE = 50.0  # requests a second
PATIENCE = 30.0  # seconds
HELD_P99 = 0.25  # seconds
MEASURED = 2.0  # seconds: with fewer requests than come in these, the slowest single one would be the 99th of 100
WAITED = "the neighbour waited"
IDLE_FACTOR = 4.0
"""What a slow or busy machine may take more: times the neighbour's own p99 beside nothing."""


@dataclass(slots=True)
class Served:
    """What the neighbour got. `seconds`: each request's, sorted. `failures`: how many by status or kind of error."""

    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def p99(self) -> float:
        return self.seconds[min(len(self.seconds) - 1, int(len(self.seconds) * 0.99))]

    @property
    def p50(self) -> float:
        return self.seconds[len(self.seconds) // 2]

    def __str__(self) -> str:
        refused = f", failures {dict(self.failures)}" if self.failures else ""
        median, slow = self.p50 * 1000, self.p99 * 1000
        return f"{len(self.seconds)} requests, p50 {median:.0f} ms, p99 {slow:.0f} ms{refused}"


class Asker:
    """The process. `in_step`: nothing that it was asked for is still to come."""

    def __init__(self) -> None:
        self.in_step = False
        self._process: asyncio.subprocess.Process

    async def start(self) -> None:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "tests.abuse.neighbour",
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, limit=2**24,
        )  # fmt: skip
        await self._says("ready")
        self.in_step = True

    async def stop(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            await self._process.wait()

    async def begin(self, task: str) -> None:
        self.in_step = False
        self._tell(task)
        await self._says("begun")

    async def end(self) -> Any:
        """What it found since it began."""
        self._tell("end")
        found = json.loads(await self._line())
        self.in_step = True
        return found

    def _tell(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n".encode())

    async def _says(self, word: str) -> None:
        assert await self._line() == word, "the neighbour's process failed"

    async def _line(self) -> str:
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE + 10):
            return (await self._process.stdout.readline()).decode().strip()


_spare: list[Asker] = []
"""Who asks next: a start takes a third as long as a short attack."""


async def end_the_spare() -> None:
    """End the processes that nobody needs any more."""
    while _spare:
        await _spare.pop().stop()


class Neighbour:
    """Has a process ask. `idle`: what it got beside nothing."""

    def __init__(self, url: str, token: str, sends: Sequence[dict[str, Any]]) -> None:
        """`sends`: bodies of POST /messages, taken in turn."""
        self._task = json.dumps({"url": url, "token": token, "sends": list(sends)})
        self._asker: Asker
        self.idle: Served

    async def __aenter__(self) -> Self:
        self._asker = _spare.pop() if _spare else Asker()
        if not self._asker.in_step:
            await self._asker.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._asker.in_step:
            _spare.append(self._asker)
        else:
            await self._asker.stop()

    async def rest(self, seconds: float) -> Served:
        """Measure what it gets beside nothing."""
        async with self.measured() as served:
            await asyncio.sleep(seconds)  # the length of the measurement, not a wait for something
        print(f"beside nothing: {served}")
        assert not served.failures, f"the neighbour is not served at all: {served}"
        return served

    @asynccontextmanager
    async def measured(self) -> AsyncIterator[Served]:
        """Ask all the while; the result is there after the block."""
        served = Served()
        await self._asker.begin(self._task)
        try:
            yield served
        finally:
            found = await self._asker.end()
            served.seconds, served.failures = sorted(found["seconds"]), Counter(found["failures"])

    @asynccontextmanager
    async def held(self, p99: float = HELD_P99) -> AsyncIterator[Served]:
        """The block is an attack: afterwards each request must have been answered, 99 of 100 within the limit."""
        async with self.measured() as served:
            began = asyncio.get_running_loop().time()
            yield served
            # What an attack of a moment left behind is measured too.
            await asyncio.sleep(began + MEASURED - asyncio.get_running_loop().time())
        limit = max(p99, IDLE_FACTOR * self.idle.p99)
        print(f"beside the attack: {served}")
        assert not served.failures, f"the neighbour was refused: {served}"
        assert served.p99 <= limit, f"{WAITED}: {served}; alone: {self.idle}"


# The process ----------------------------------------------------------------------------------------------------------


async def _run() -> None:
    """Take down what a task gets from its line to the word `end`, one task after the other."""
    words: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)

    async def listen() -> None:
        while line := await reader.readline():
            await words.put(line.decode().strip())
        await words.put("")

    listening = asyncio.create_task(listen())
    print("ready", flush=True)
    while task := await words.get():
        print("begun", flush=True)
        served = await _until_end(words, **json.loads(task))
        print(json.dumps({"seconds": served.seconds, "failures": served.failures}), flush=True)
    listening.cancel()


async def _until_end(words: asyncio.Queue[str], url: str, token: str, sends: Sequence[dict[str, Any]]) -> Served:
    """On connections of its own: one that was open before may have been closed meanwhile."""
    async with aiohttp.ClientSession(
        headers={"Authorization": f"Bearer {token}"},
        timeout=aiohttp.ClientTimeout(total=PATIENCE),
        connector=aiohttp.TCPConnector(limit=0),
    ) as session:
        asking = asyncio.create_task(_ask(session, url, sends))
        assert await words.get() == "end"
        asking.cancel()
        return await asking


async def _ask(session: aiohttp.ClientSession, url: str, sends: Sequence[dict[str, Any]]) -> Served:
    """Ask until cancelled, then wait for what is still open."""
    served = Served()
    loop = asyncio.get_running_loop()
    began, number = loop.time(), 0
    open_requests: set[asyncio.Task[None]] = set()
    try:
        while True:
            due = began + number / RATE
            await asyncio.sleep(max(0.0, due - loop.time()))
            request = asyncio.create_task(_one(session, url, sends, number, due, served))
            open_requests.add(request)
            request.add_done_callback(open_requests.discard)
            number += 1
    except asyncio.CancelledError:
        await asyncio.gather(*open_requests)
        return served


async def _one(
    session: aiohttp.ClientSession, url: str, sends: Sequence[dict[str, Any]], number: int, due: float, served: Served
) -> None:
    loop = asyncio.get_running_loop()
    try:
        if number % 4 == 3:
            call = session.get(f"{url}/messages", params={"limit": "10"})
        else:
            call = session.post(f"{url}/messages", json=sends[number % len(sends)])
        async with call as answer:
            await answer.read()
            if answer.status >= 300:
                served.failures[str(answer.status)] += 1
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        served.failures[type(error).__name__] += 1
    served.seconds.append(loop.time() - due)


if __name__ == "__main__":
    asyncio.run(_run())
