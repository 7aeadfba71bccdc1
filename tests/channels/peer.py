"""A provider on a real socket that misbehaves on demand."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

import orjson

Behaviour = Callable[["Connection"], Awaitable[None]]


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, object]:
        document = orjson.loads(self.body)
        assert isinstance(document, dict)
        return document


class Connection:
    """One accepted connection, seen from the misbehaving side."""

    def __init__(self, server: "FakeBridge", reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer

    async def read_request(self) -> Request:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await self.reader.readexactly(int(headers.get("content-length", "0")))
        request = Request(first.split(" ")[0], first.split(" ")[1], headers, body)
        self.server.requests.append(request)
        return request

    async def answer(self, status: int, body: bytes, headers: str = "") -> None:
        self.writer.write(f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body)
        await self.writer.drain()

    def reset(self) -> None:
        self.writer.transport.abort()

    async def hang(self) -> None:
        await self.server.released.wait()


@dataclass
class FakeBridge:
    """`behaviour` handles each connection; `requests` are those read whole."""

    behaviour: Behaviour
    requests: list[Request] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0
    _server: asyncio.Server | None = None
    _handling: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/base"

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", port, limit=2**20)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self.released.set()
        self._server.close()
        for task in list(self._handling):
            task.cancel()
        await asyncio.gather(*self._handling, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self.behaviour(Connection(self, reader, writer))
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
