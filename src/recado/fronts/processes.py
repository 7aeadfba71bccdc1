"""The processes of fronts: they can begin before there is anything to tell them, and load the program meanwhile.

What a front is begun with comes as one packet over its standard input, with the descriptors that it gets.
"""

import os
import pickle
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from recado.fronts.frames import FrontBeginning  # who begins early has not loaded it yet

_MOST_BYTES: Final = 128 * 1024  # of a beginning, which has some hundreds
_MOST_DESCRIPTORS: Final = 64


class FrontProcesses:
    """Makes the processes of fronts. `program`: that of this process, which a front has to be (`program_on_disk`)."""

    def __init__(self, program: str) -> None:
        self.program = program
        self._early: deque[tuple[subprocess.Popen[bytes], socket.socket]] = deque()

    def begin_early(self, count: int) -> None:
        """Begin so many, which wait for what they are told, and end with this process. Where it cannot be, later."""
        with suppress(OSError):
            for _ in range(count):
                self._early.append(self._new())

    def begin(self, beginning: "FrontBeginning", descriptors: Sequence[int]) -> "subprocess.Popen[bytes]":
        """A process that has this beginning and these descriptors. Raises OSError: there is none."""
        process, told = self._waiting() or self._new()
        with told:
            try:
                said = pickle.dumps((tuple(descriptors), beginning), pickle.HIGHEST_PROTOCOL)
                socket.send_fds(told, [said], list(descriptors))  # all of it or nothing: a packet
            except BaseException:
                _end(process)
                raise
        return process

    def keep(self, count: int) -> None:
        """End all but so many of those that wait; safe to call twice."""
        while len(self._early) > count:
            process, told = self._early.pop()
            told.close()
            _end(process)

    def _waiting(self) -> "tuple[subprocess.Popen[bytes], socket.socket] | None":
        while self._early:
            process, told = self._early.popleft()
            if process.poll() is None:
                return process, told
            told.close()
        return None

    def _new(self) -> "tuple[subprocess.Popen[bytes], socket.socket]":
        told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told.setblocking(False)
        with theirs:
            try:
                # No module of the folder in which the service happens to run (-P): its files are not the program.
                process = subprocess.Popen(  # noqa: S603 - this program, and the digest of its files; a millisecond
                    [sys.executable, "-P", "-m", "recado.fronts.front", self.program],
                    stdin=theirs.fileno(),
                    start_new_session=True,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                )
            except BaseException:
                told.close()
                raise
        return process, told


def beginning_from(channel: socket.socket) -> "FrontBeginning | None":
    """What this process is begun with, its descriptors as they are here; None: whoever began it wants it no more."""
    said, here, _, _ = socket.recv_fds(channel, _MOST_BYTES, _MOST_DESCRIPTORS)
    if not said:
        return None
    for each in here:
        os.set_inheritable(each, False)  # a process of ours that outlives us must not keep the address
    there: tuple[int, ...]
    beginning: FrontBeginning
    there, beginning = pickle.loads(said)  # noqa: S301 - written by the owner, our own process
    return beginning.with_descriptors(dict(zip(there, here, strict=True)))


def kill(process: "subprocess.Popen[bytes]") -> None:
    """End it at once; safe to call twice."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)


def _end(process: "subprocess.Popen[bytes]") -> None:
    kill(process)
    process.wait()  # killed: a moment
