"""A hostile caller: requests as bytes, whole or broken off, many at a time, for as long as an attack lasts."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

ANSWER_LIMIT = 60.0  # seconds

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Attacker:
    """Speaks to one service. `token`: its credential, or none; `source`: the address that it calls from."""

    def __init__(self, host: str, port: int, token: str | None = None, *, source: str | None = None) -> None:
        self._host = host
        self._port = port
        self._token = token
        self._source = source

    def without_credential(self, source: str | None = None) -> "Attacker":
        """The same caller as a stranger, from `source`."""
        return Attacker(self._host, self._port, source=source)

    def called_from(self, source: str) -> "Attacker":
        """The same caller, from another address."""
        return Attacker(self._host, self._port, self._token, source=source)

    def head(self, method: str, path: str, length: int | None, headers: Mapping[str, str] | None = None) -> bytes:
        """The head of a request; `length`: of its body, None for none."""
        lines = {"Host": f"{self._host}:{self._port}", "Content-Type": "application/json"}
        if self._token is not None:
            lines["Authorization"] = f"Bearer {self._token}"
        if length is not None:
            lines["Content-Length"] = str(length)
        lines |= headers or {}
        first = f"{method} {path} HTTP/1.1"
        return "\r\n".join([first, *(f"{name}: {value}" for name, value in lines.items()), "", ""]).encode()

    async def connect(self) -> Stream:
        """A connection of its own; the caller closes it."""
        local = None if self._source is None else (self._source, 0)
        return await asyncio.open_connection(self._host, self._port, local_addr=local)

    async def ask(self, method: str, path: str, body: Any = b"", headers: Mapping[str, str] | None = None) -> int:
        """The status of the answer, 0 when the connection ended without one. `body`: bytes, or what becomes JSON."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        with suppress(OSError):
            reader, writer = await self.connect()
            try:
                writer.write(self.head(method, path, len(content), {"Connection": "close", **(headers or {})}))
                writer.write(content)
                return await status_of(reader)
            finally:
                writer.transport.abort()
        return 0

    @asynccontextmanager
    async def line(self) -> AsyncIterator["Line"]:
        """A connection that stays open: requests come as fast as their answers."""
        reader, writer = await self.connect()
        try:
            yield Line(self, reader, writer)
        finally:
            writer.transport.abort()

    async def break_off(
        self, method: str, path: str, declared: int, sent: bytes, headers: Mapping[str, str] | None = None
    ) -> bool:
        """Announce a body of `declared` bytes, send `sent` of it, and leave; whether all of that was taken."""
        with suppress(OSError):
            reader, writer = await self.connect()
            try:
                writer.transport.set_write_buffer_limits(0)
                writer.write(self.head(method, path, declared, headers))
                writer.write(sent)
                async with asyncio.timeout(ANSWER_LIMIT):  # until the service has read it, or answers and reads no more
                    answered = asyncio.ensure_future(reader.read(1))
                    taken = asyncio.ensure_future(writer.drain())
                    await asyncio.wait([answered, taken], return_when=asyncio.FIRST_COMPLETED)
                    done = taken.done() and not answered.done()
                    for each in (answered, taken):
                        each.cancel()
                    return done
            finally:
                writer.transport.abort()
        return False


class Line:
    """One request after the other on one connection."""

    def __init__(self, caller: Attacker, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._caller = caller
        self._reader = reader
        self._writer = writer

    async def ask(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Any]:
        """The status of the answer, and its document where it has one. `body`: what becomes JSON; None sends none."""
        content = b"" if body is None else json.dumps(body).encode()
        length = None if body is None else len(content)
        self._writer.write(self._caller.head(method, path, length, headers) + content)
        async with asyncio.timeout(ANSWER_LIMIT):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            found = head.lower().partition("content-length:")[2].splitlines()
            answer = await self._reader.readexactly(int(found[0])) if found else b""
        return int(head.split()[1]), json.loads(answer) if answer and re.search("[+/]json", head) else None


async def status_of(reader: asyncio.StreamReader) -> int:
    """Read an answer to its end, where the connection closes; its status, or 0."""
    async with asyncio.timeout(ANSWER_LIMIT):
        line = await reader.readline()
        while await reader.read(65_536):
            pass
    parts = line.split()
    return int(parts[1]) if len(parts) > 1 else 0


async def keep_on(seconds: float, parallel: int, act: Callable[[], Awaitable[Any]]) -> Counter[Any]:
    """Do it again and again, `parallel` at a time, for so long; what it gave, counted.

    What is open at the end is waited for.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    given: Counter[Any] = Counter()

    async def one() -> None:
        while loop.time() < end:
            given[await act()] += 1

    await asyncio.gather(*(one() for _ in range(parallel)))
    return given
