"""Sends files to a storage without TLS from where the system has them: nothing of them comes into this process."""

import asyncio
import errno
import os
from functools import cache
from typing import Any, Final

from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_writer import StreamWriter
from aiohttp.payload import PAYLOAD_REGISTRY, Payload

from recado.storage.blobs.request_bodies import AT_ONCE, FileBody

_NOT_SO: Final = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
"""Why a file system does not send by itself."""


class FilePayload(Payload):
    """As the client asks for a body. What TLS has to encrypt goes piece by piece."""

    _value: FileBody
    _autoclose = True  # the file is its writer's

    def __init__(self, value: FileBody, *args: Any, **kwargs: Any) -> None:
        super().__init__(value, *args, **kwargs)
        self._size = len(value)

    async def write(self, writer: AbstractStreamWriter) -> None:
        await self.write_with_length(writer, None)

    async def write_with_length(self, writer: AbstractStreamWriter, content_length: int | None) -> None:
        self._consumed = True
        if not (isinstance(writer, StreamWriter) and await _send(writer, self._value)):
            async for piece in self._value:
                await writer.write(piece)

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        raise TypeError("nobody reads it")


@cache
def send_files() -> None:
    """Let clients of aiohttp send bodies that are files so."""
    PAYLOAD_REGISTRY.register(FilePayload, FileBody)


async def _send(writer: StreamWriter, body: FileBody) -> bool:
    """All of it, behind the head; False where it has to be written, and nothing of it went."""
    transport = writer.transport
    if transport is None or transport.get_extra_info("sslcontext") is not None:
        return False
    connected = transport.get_extra_info("socket")
    if connected is None or transport.is_closing():
        return False
    transport.set_write_buffer_limits(high=0)  # so that the head has left when nobody has to wait for it
    try:
        writer.send_headers()
        await writer.drain()
    finally:
        transport.set_write_buffer_limits()
    # The loop looks at the transport's own descriptor already, and the transport may close it at any time.
    socket, at = os.dup(connected.fileno()), 0
    try:
        while at < len(body):
            try:
                went = await body.send(socket, at)
            except BlockingIOError:
                went = 0
            except OSError as error:
                if at or error.errno not in _NOT_SO:
                    raise
                return False
            at += went
            if went < AT_ONCE and at < len(body):  # it took no more
                await _writable(socket)
    finally:
        os.close(socket)
    return True


async def _writable(socket: int) -> None:
    loop = asyncio.get_running_loop()
    ready = asyncio.Event()
    loop.add_writer(socket, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_writer(socket)
