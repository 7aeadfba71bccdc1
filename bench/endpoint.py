"""A customer's endpoint, as cheap as can be: answers every request at once, or under /hang never. Run as a process."""

import argparse
import asyncio
from typing import cast

import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
_LENGTH = b"content-length:"


class Endpoint(asyncio.Protocol):
    """One connection, on which one request follows the answer to the last."""

    def __init__(self) -> None:
        self._missing = 0  # bytes of the body under way
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._missing -= len(data)
        else:
            self._head += data
            head, end, body = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            if head.startswith(b"POST /hang"):
                self._missing = 2**62
                return
            self._head = b""
            self._missing = _length(head) - len(body)
        if self._missing == 0:
            self._transport.write(ANSWER)


def _length(head: bytes) -> int:
    _, found, rest = head.lower().partition(_LENGTH)
    return int(rest.partition(b"\r\n")[0]) if found else 0


async def serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Endpoint, "127.0.0.1", port, backlog=2048)
    stop = asyncio.Event()
    loop.add_signal_handler(15, stop.set)
    await stop.wait()
    server.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    uvloop.run(serve(parser.parse_args().port))
