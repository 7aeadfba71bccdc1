"""The processes of fronts: they can begin before there is anything to tell them, and load the program meanwhile.

Where this process has loaded it, and has no thread yet, they are forks of it: they need not load it, and share it.

What a front is begun with comes as one packet over its standard input, with the descriptors that it gets.
"""

import os
import pickle
import signal
import socket
import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from recado.fronts.frames import FrontBeginning  # who begins early has not loaded it yet

_MOST_BYTES: Final = 128 * 1024  # of a beginning, which has some hundreds
_MOST_DESCRIPTORS: Final = 64


class FrontProcess(Protocol):
    """A process that this one has begun, as `subprocess` has it."""

    pid: int

    @property
    def returncode(self) -> Any:
        """Its exit status, once it is known: negative for a signal."""

    def poll(self) -> int | None:
        """The same; looks for it, and does not wait."""

    def wait(self, timeout: float | None = None) -> int:
        """The same, when it has ended."""

    def send_signal(self, sig: int) -> None:
        """To one that has not ended."""

    def kill(self) -> None:
        """End it at once."""


class Fork:
    """A fork of this process, which does this work and ends with the status that it answers (`FrontProcess`)."""

    def __init__(self, work: Callable[[], int]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self.returncode: int | None = None
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                status = work()
            except BaseException:  # noqa: BLE001 - nothing of this process may be done in its place
                traceback.print_exc()
            finally:
                with suppress(Exception):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(status)

    def poll(self) -> int | None:
        return self._look(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int:
        """Waits without an end: whoever asks has seen that it is over, or killed it."""
        status = self._look(0)
        assert status is not None  # noqa: S101 - it was waited for
        return status

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _look(self, how: int) -> int | None:
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, how)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode


class FrontProcesses:
    """Makes the processes of fronts. `program`: that of this process, which a front has to be (`program_on_disk`).

    `fork`: what a fork of this process does as a front, where those that begin early are to be that; its exit status.
    """

    def __init__(self, program: str, fork: Callable[[], int] | None = None) -> None:
        self.program = program
        self._folders = os.pathsep.join(path for path in sys.path if path)  # a library may add its own later
        self._fork = fork
        self._early: deque[tuple[FrontProcess, socket.socket]] = deque()

    def begin_early(self, count: int) -> None:
        """Begin so many, which wait for what they are told, and end with this process. Where it cannot be, later."""
        with suppress(OSError):
            for _ in range(count):
                self._early.append(self._new() if self._fork is None else self._forked(self._fork))

    def begin(self, beginning: "FrontBeginning", descriptors: Sequence[int]) -> FrontProcess:
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

    def _waiting(self) -> tuple[FrontProcess, socket.socket] | None:
        while self._early:
            process, told = self._early.popleft()
            if process.poll() is None:
                return process, told
            told.close()
        return None

    def _forked(self, work: Callable[[], int]) -> "tuple[Fork, socket.socket]":
        told, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told.setblocking(False)
        with theirs:
            try:
                process = Fork(partial(self._be_front, told, theirs, work))
            except BaseException:
                told.close()
                raise
        return process, told

    def _be_front(self, told: socket.socket, theirs: socket.socket, work: Callable[[], int]) -> int:
        os.setsid()
        os.dup2(theirs.fileno(), 0)
        for each in (told, theirs, *(others for _, others in self._early)):
            each.close()
        return work()

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
                    env={**os.environ, "PYTHONPATH": self._folders},
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


def kill(process: FrontProcess) -> None:
    """End it at once; safe to call twice."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGKILL)


def _end(process: FrontProcess) -> None:
    kill(process)
    process.wait()  # killed: a moment
