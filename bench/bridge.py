"""A provider behind the bridge's protocol, as cheap as can be: takes every message at once. Run as a process."""

import argparse
import asyncio
import itertools
from typing import cast

import orjson
import uvloop

from recado.simulator.operations import Operations

_LENGTH = b"content-length:"
_OPERATIONS = Operations(lambda *_: None)
_TAKEN = itertools.count()


class Bridge(asyncio.Protocol):
    """One connection."""

    def __init__(self) -> None:
        self._came = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._came += data
        while True:
            head, end, rest = self._came.partition(b"\r\n\r\n")
            _, found, length = head.lower().partition(_LENGTH)
            size = int(length.partition(b"\r\n")[0]) if found else 0
            if not end or len(rest) < size:
                return
            self._came = rest[size:]
            self.asked(head.split(b" ", 2)[1], rest[:size])

    def asked(self, path: bytes, body: bytes) -> None:
        """A request is here as a whole."""
        self.write(*_answer(path, body))

    def write(self, status: int, answer: bytes) -> None:
        self._transport.write(b"HTTP/1.1 %d .\r\nContent-Length: %d\r\n\r\n%s" % (status, len(answer), answer))


def _answer(path: bytes, body: bytes) -> tuple[int, bytes]:
    operation = path.strip(b"/").decode()
    if operation == "send":
        return 200, b'{"providerMessageId":"bench-%d"}' % next(_TAKEN)
    if not body:
        return 200, b""
    status, result = _OPERATIONS.answer(operation, orjson.loads(body))
    return status, orjson.dumps(result)


async def serve(port: int, connection: type[Bridge] = Bridge) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(connection, "127.0.0.1", port, backlog=4096)
    stop = asyncio.Event()
    loop.add_signal_handler(15, stop.set)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
