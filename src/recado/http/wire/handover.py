"""Hands connections over between the processes of a service: with the bytes that came, from a front to the owner.

A hand-over is one packet or several, in a row, each with a number and whether more follow; the first brings the
descriptor. A packet that does not continue the one before it is the first of another hand-over: the one before is torn,
and its connection ends.
"""

import asyncio
import errno
import socket
import struct
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Protocol

PACKET: Final = 64 * 1024  # bytes, of which a few come before those of the connection
MOST_BYTES: Final = 1024 * 1024  # of one connection
WAITING: Final = 1_024  # connections that the owner does not take at once
WAITING_BYTES: Final = 16 * 1024 * 1024  # of all of them

_HEAD: Final = struct.Struct("=I?")  # the number, and whether more follow
_DESCRIPTOR: Final = struct.Struct("=i")
_CONTENT: Final = PACKET - _HEAD.size
_TAKEN: Final = 16  # packets, in one turn of the event loop
_NUMBERS: Final = 2**32
# What the kernel says of one connection: too many are on their way, or it has no memory. All else is said of the owner.
_OF_ONE: Final = frozenset({errno.ETOOMANYREFS, errno.ENOBUFS, errno.ENOMEM, errno.EBADF})


class GivenConnection(Protocol):
    """A connection that is handed over."""

    @property
    def network(self) -> str:
        """Where its client is."""

    def fileno(self) -> int:
        """Its descriptor; -1 when it has ended."""

    def gone_over(self) -> None:
        """Let go of it, without a word to its client: it is the owner's."""

    def turned_away(self) -> None:
        """Answer that there is no place, and end it: the owner has not got it, and will not."""


class _Handover:
    __slots__ = ("connection", "content", "number", "sent")

    def __init__(self, connection: GivenConnection, content: bytes, number: int) -> None:
        self.connection = connection
        self.content = content
        self.number = number
        self.sent = -1  # bytes; -1: nor the descriptor


class Giving:
    """The front's side. `local`: whether the front answers the request that begins with these bytes."""

    def __init__(
        self,
        channel: socket.socket,
        local: Callable[[bytes], bool],
        *,
        waiting: int = WAITING,
        waiting_bytes: int = WAITING_BYTES,
    ) -> None:
        """`channel`: a SOCK_SEQPACKET of AF_UNIX, closed at the end. `waiting`, `waiting_bytes`: connections that wait
        until the owner takes them, and what they have sent; more are turned away, and of one network those beyond
        half of it.
        """
        self.local = local
        self._channel = channel
        self._most, self._most_bytes = waiting, waiting_bytes
        self._waiting: deque[_Handover] = deque()
        self._bytes = 0  # of those that wait
        self._by_network: Counter[str] = Counter()  # those that wait, and what they have sent
        self._bytes_by_network: Counter[str] = Counter()
        self._number = 0
        self._ended = False
        channel.setblocking(False)

    @property
    def waiting(self) -> int:
        """How many connections the owner has not taken yet."""
        return len(self._waiting)

    @property
    def crowded(self) -> bool:
        """Whether those that have time should wait: the rest of the room is for those that ask."""
        return len(self._waiting) >= max(1, self._most // 4)

    def give(self, connection: GivenConnection, content: bytes) -> None:
        """Hand `connection` over, with the bytes that came; sooner or later one of its methods is called."""
        self._number = (self._number + 1) % _NUMBERS
        each = _Handover(connection, content, self._number)
        if self._ended or len(content) > MOST_BYTES:
            connection.turned_away()
        elif not self._waiting:
            if not self._send(each):
                self._wait(each)
                asyncio.get_running_loop().add_writer(self._channel, self._send_more)
        elif self._has_room(connection.network, len(content)):
            self._wait(each)
        else:
            connection.turned_away()

    def stop(self) -> None:
        """Turn away those that wait; safe to call twice."""
        if self._ended:
            return
        self._ended = True
        if self._waiting:
            asyncio.get_running_loop().remove_writer(self._channel)
        self._channel.close()
        while self._waiting:
            each = self._waiting.popleft()
            if each.sent < 0:
                each.connection.turned_away()
        self._bytes = 0
        self._by_network.clear()
        self._bytes_by_network.clear()

    def _has_room(self, network: str, size: int) -> bool:
        return (
            len(self._waiting) < self._most
            and self._bytes + size <= self._most_bytes
            and self._by_network[network] < max(1, self._most // 2)
            and self._bytes_by_network[network] + size <= self._most_bytes // 2
        )

    def _wait(self, each: _Handover) -> None:
        network, size = each.connection.network, len(each.content)
        self._waiting.append(each)
        self._bytes += size
        self._by_network[network] += 1
        self._bytes_by_network[network] += size

    def _waits_no_more(self, each: _Handover) -> None:
        network, size = each.connection.network, len(each.content)
        self._bytes -= size
        self._by_network[network] -= 1
        self._bytes_by_network[network] -= size
        if not self._by_network[network]:
            del self._by_network[network], self._bytes_by_network[network]

    def _send_more(self) -> None:
        while self._waiting and self._send(self._waiting[0]):
            if self._waiting:  # else the owner has ended meanwhile
                self._waits_no_more(self._waiting.popleft())
        if not self._waiting and not self._ended:
            asyncio.get_running_loop().remove_writer(self._channel)

    def _send(self, each: _Handover) -> bool:
        """Send what can be sent; whether nothing is left to do for this one."""
        while True:
            begins, at = each.sent < 0, max(each.sent, 0)
            descriptor = each.connection.fileno() if begins else -1
            if begins and descriptor < 0:
                return True
            part = each.content[at : at + _CONTENT]
            at += len(part)
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, _DESCRIPTOR.pack(descriptor))] if begins else []
            try:
                self._channel.sendmsg([_HEAD.pack(each.number, at < len(each.content)), part], rights)
            except (BlockingIOError, InterruptedError):
                return False
            except OSError as error:
                if begins:
                    each.connection.turned_away()
                if error.errno not in _OF_ONE:
                    each.sent = at  # it has been told
                    self.stop()
                return True
            each.sent = at
            if begins:
                each.connection.gone_over()
            if at >= len(each.content):
                return True


class Taking:
    """The owner's side, of one front.

    `room`: for how many connections there is at present. `arrived` gets each, with its bytes; `lost` is told of each
    that came without its descriptor, for this process has none left; `ended`: the front has.
    """

    def __init__(
        self,
        channel: socket.socket,
        *,
        room: Callable[[], int],
        arrived: Callable[[socket.socket, bytes], None],
        lost: Callable[[], None],
        ended: Callable[["Taking"], None],
    ) -> None:
        self.channel = channel
        self._room = room
        self._arrived = arrived
        self._lost = lost
        self._ended = ended
        self._number = -1  # of the hand-over that is not whole
        self._connection: socket.socket | None = None  # its own
        self._parts: list[bytes] = []
        self._size = 0  # bytes of them
        channel.setblocking(False)

    def start(self) -> None:
        """Take what comes."""
        asyncio.get_running_loop().add_reader(self.channel, self._take)

    def finish(self) -> None:
        """Take what has come already, and no more: the front that gave it has ended, or is about to."""
        while self._take():
            pass
        self.stop()

    def stop(self) -> None:
        """Take no more; safe to call twice."""
        if self.channel.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self.channel)
            self.channel.close()
        self._drop()

    def _take(self) -> bool:
        """Take some of what has come; whether there may be more for which there is room."""
        if self.channel.fileno() < 0:
            return False
        room = self._room()
        for _ in range(min(_TAKEN, room)):
            try:
                packet, rights, _, _ = self.channel.recvmsg(
                    PACKET, socket.CMSG_SPACE(_DESCRIPTOR.size), socket.MSG_CMSG_CLOEXEC
                )
            except (BlockingIOError, InterruptedError):
                return False
            except OSError:
                packet, rights = b"", []
            if not packet:
                self.stop()
                self._ended(self)
                return False
            self._add(packet, [fd for _, _, data in rights for (fd,) in _DESCRIPTOR.iter_unpack(data)])
        return room > 0

    def _add(self, packet: bytes, descriptors: list[int]) -> None:
        """One packet; each descriptor that it brought is a connection's, or closed."""
        came = [socket.socket(fileno=each) for each in descriptors]
        number, more = _HEAD.unpack_from(packet) if len(packet) >= _HEAD.size else (-1, False)
        if came or number != self._number:
            self._drop()
            self._number = number
            self._connection = came.pop(0) if came else None
            if self._connection is None:
                self._lost()
            for each in came:
                each.close()
        if self._connection is not None:
            self._size += len(packet) - _HEAD.size
            self._parts.append(packet[_HEAD.size :])
            if self._size > MOST_BYTES:
                self._drop(more=True)
        if not more:
            connection, self._connection = self._connection, None
            content = b"".join(self._parts)
            self._drop()
            if connection is not None:
                self._arrived(connection, content)

    def _drop(self, *, more: bool = False) -> None:
        """Forget the hand-over that is not whole; `more`: its other packets are dropped, too."""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.close()
            self._connection = None
        self._parts.clear()
        self._size = 0
        if not more:
            self._number = -1
