"""The address of the API before it is served: refused with what to do where it cannot be had."""

import asyncio
import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from recado.config.errors import SettingsError
from recado.config.forms import Listen
from recado.domain.core.clock import Clock

FRONTS_END_WITHIN: Final = 1.0  # seconds
TRIED_AGAIN_AFTER: Final = 0.1  # seconds


async def try_address(listen: Listen, clock: Clock) -> None:
    """Refuse an address that cannot be had before anything is made; it is let go at once, and taken later.

    Fronts whose owner was killed a moment ago have it until they have ended.
    """
    loop, last = asyncio.get_running_loop(), clock.monotonic() + FRONTS_END_WITHIN
    with telling(listen):
        while True:
            try:
                tried = await loop.create_server(asyncio.Protocol, listen.host, listen.port, start_serving=False)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE or clock.monotonic() >= last:
                    raise
            await clock.sleep(TRIED_AGAIN_AFTER)
    tried.close()
    await tried.wait_closed()


def bind_address(listen: Listen) -> list[socket.socket]:
    """Sockets that have the address, and do not listen yet: callers are refused until somebody does."""
    bound: list[socket.socket] = []
    lacking: OSError | None = None
    with telling(listen):
        try:
            found = socket.getaddrinfo(listen.host, listen.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
            for family, kind, protocol, _, address in dict.fromkeys(found):
                try:
                    each = socket.socket(family, kind, protocol)
                except OSError as error:
                    lacking = error  # as of a kernel without IPv6, where the name has addresses of both
                    continue
                bound.append(each)
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                each.bind(address)
            if not bound and lacking is not None:
                raise lacking
        except BaseException:
            for each in bound:
                each.close()
            raise
    return bound


@contextmanager
def telling(listen: Listen) -> Iterator[None]:
    """SettingsError says what to do when the address cannot be had."""
    try:
        yield
    except OSError as error:
        match error:
            case OSError(errno=errno.EADDRINUSE):
                told = "is in use: stop what listens there, or choose another with --listen"
            case OSError(errno=errno.EADDRNOTAVAIL):
                told = "is not an address of this machine: choose one with --listen, such as 127.0.0.1:8080"
            case OSError(errno=errno.EACCES):
                told = "is not for this user: choose a port from 1024 on with --listen"
            case socket.gaierror():
                told = "has a host name that is not known: choose another with --listen"
            case _:
                told = f"cannot be listened on ({error.strerror or type(error).__name__}): choose another with --listen"
        raise SettingsError([f"{listen.host}:{listen.port} {told}"]) from None
