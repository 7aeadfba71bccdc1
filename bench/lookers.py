"""Those who look while others send: viewers of the stream, and who scrapes the metrics each second. Run as a process.

What they do with what they get is nobody's cost: they read and keep nothing. Prints `looking` once all of them are
there, and goes on until its input ends; ends with an error when a viewer is refused, or told no more.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.harness import ROOT, Process

HOST = "127.0.0.1"
START_LIMIT = 30.0  # seconds


@asynccontextmanager
async def looking(service: Process, token: str, count: int, *, scraping: bool = False) -> AsyncIterator[None]:
    """So many at the stream while the block runs; `scraping`: and one who reads the metrics each second.

    RuntimeError when one of them is refused, or told no more.
    """
    command = ["-m", "bench.lookers", "--port", str(service.port), "--viewers", str(count)]
    child = await asyncio.create_subprocess_exec(
        sys.executable, *command, *(["--scraping"] if scraping else []), cwd=ROOT,
        env=os.environ | {"LOOKERS_TOKEN": token}, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        async with asyncio.timeout(START_LIMIT):
            if await child.stdout.readline() != b"looking\n":
                raise RuntimeError("those who look could not")
        yield
        child.stdin.close()
        if await child.wait():
            raise RuntimeError("one of those who look was told no more")
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()


class _Reader(asyncio.Protocol):
    """Sends a request when told to, and keeps nothing of the answers but the first line."""

    def __init__(self, closed: "asyncio.Future[None]") -> None:
        self._closed = closed
        self.told: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        if not self.told.done():
            self.told.set_result(data.partition(b"\r\n")[0])

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.told.done():
            self.told.set_exception(ConnectionError("it ended before it began"))
        elif b" 200 " in self.told.result() and not self._closed.done():
            self._closed.set_result(None)

    async def ask(self, request: bytes) -> bytes:
        """The status line of the answer."""
        self.told = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self.told


async def look(port: int, token: str, count: int, *, scraping: bool) -> None:
    """Until the input ends."""
    loop = asyncio.get_running_loop()
    lost: asyncio.Future[None] = loop.create_future()

    async def asked(path: str) -> tuple[_Reader, bytes, bytes]:
        request = f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
        _, reader = await loop.create_connection(lambda: _Reader(lost), HOST, port)
        return reader, request, await reader.ask(request)

    for _ in range(count):
        while b" 429 " in (answer := await asked("/v2/ops/stream"))[2]:
            answer[0].transport.abort()  # those of the turn before are not all gone yet
            await asyncio.sleep(0.1)
        if b" 200 " not in answer[2]:
            raise RuntimeError(f"the stream answered {answer[2].decode()}")
    scrape = asyncio.create_task(_scrape(*await asked("/metrics"))) if scraping else None
    print("looking", flush=True)
    ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    first, _ = await asyncio.wait(
        [ended, lost, *([] if scrape is None else [scrape])], return_when=asyncio.FIRST_COMPLETED
    )
    if ended not in first:
        os._exit(1)  # the thread that reads the input would keep it


async def _scrape(reader: _Reader, request: bytes, status: bytes) -> None:
    while b" 200 " in status:
        await asyncio.sleep(1.0)
        status = await reader.ask(request)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--viewers", type=int, required=True)
    parser.add_argument("--scraping", action="store_true")
    known = parser.parse_args()
    asyncio.run(look(known.port, os.environ["LOOKERS_TOKEN"], known.viewers, scraping=known.scraping))
