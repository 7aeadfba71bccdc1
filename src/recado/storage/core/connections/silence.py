"""Connections that notice when the other end falls silent: a server behind a network that drops packets.

The kernel asks an idle peer whether it is there, and gives up what is not acknowledged, each within ten seconds or so;
by default both take minutes, in which anyone who holds the connection waits.
"""

import socket
from typing import Any, Final

_OPTIONS: Final = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 2, "TCP_KEEPCNT": 3}  # seconds, seconds, questions
_UNACKNOWLEDGED_MS: Final = 10_000


def notice_silence(connection: Any) -> None:
    """Set the options of an asyncpg connection over TCP; nothing for one over a Unix socket."""
    transport = getattr(connection, "_transport", None)  # asyncpg offers no other way to its socket
    own = transport.get_extra_info("socket") if transport is not None else None
    if own is None or own.family not in (socket.AF_INET, socket.AF_INET6):
        return
    own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in {**_OPTIONS, "TCP_USER_TIMEOUT": _UNACKNOWLEDGED_MS}.items():
        if (option := getattr(socket, name, None)) is not None:  # not every system has all of them
            own.setsockopt(socket.IPPROTO_TCP, option, value)
