"""The process that a launcher has begun, and how the first one comes to have a launcher (docs/workers.md)."""

import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from recado.cli.errors import CommandError
from recado.engine.process.family import end_with_parent, take_orphans
from recado.fronts import launcher

_MOST = 64  # bytes of what is told
_MOST_DESCRIPTORS = 64  # one for each address of the host's name


class OtherLauncher(CommandError):
    """What is installed is another program by now than the launcher that began this process."""

    exit_code = launcher.OTHER_LAUNCHER


class Launched:
    """This process is an owner, and its launcher holds the address. `restarts`: how often an owner was begun again."""

    def __init__(self, control: int, listening: Sequence[int] = ()) -> None:
        """By descriptors: of what is said to the launcher, and of the sockets that have the address."""
        os.set_inheritable(control, False)
        self._control = socket.socket(fileno=control)
        self.listening: list[socket.socket] = []
        self.restarts = 0
        self._take(listening)

    @classmethod
    def by(cls, told: str) -> "Launched":
        """As the launcher tells it; one that is over meanwhile is followed at once."""
        form, _, rest = told.partition(",")
        if form != launcher.FORM:
            raise OtherLauncher("the launcher that began this process is of another program: restart the service")
        launcher_id, control = (int(each) for each in rest.split(","))
        follow(launcher_id)
        return cls(control)

    def told(self, what: bytes) -> bool:
        """Whether the launcher has said this already; it is taken up by `await_turn` only."""
        try:
            return self._control.recv(_MOST, socket.MSG_PEEK | socket.MSG_DONTWAIT) == what
        except OSError:
            return False

    def waits(self) -> None:
        """It has loaded the program."""
        self._say(launcher.WAITS)

    def await_turn(self) -> bytes:
        """Wait until it is told what to do: `GO`, and has the address; or `LAST`. Nothing: nobody wants it."""
        self._control.setblocking(True)
        try:
            told, descriptors, _, _ = socket.recv_fds(self._control, _MOST, _MOST_DESCRIPTORS)
        except ConnectionError:
            return b""
        self._take(descriptors)
        said, _, restarts = told.partition(b" ")
        if said not in (launcher.GO, launcher.LAST):
            return b""
        self._say(launcher.TAKEN)
        self.restarts = int(restarts or 0)
        return said

    def starts(self) -> None:
        """It does not serve yet, and does not stand still either."""
        self._say(launcher.STARTS)

    def serves(self) -> None:
        """It answers: when it dies, another one is to follow."""
        self._say(launcher.READY)

    def ends(self) -> None:
        """Its end, whatever the status, is the end of the service."""
        self._say(launcher.FINAL)

    def close(self) -> None:
        """This process ends, or is a fork that is no owner; safe to call twice."""
        self._control.close()
        for each in self.listening:
            each.close()

    def _take(self, listening: Sequence[int]) -> None:
        for each in listening:
            os.set_inheritable(each, False)
            self.listening.append(socket.socket(fileno=each))

    def _say(self, what: bytes) -> None:
        with suppress(OSError):  # of a launcher that is gone, with which this process is about to end
            self._control.send(what, socket.MSG_DONTWAIT)


def launch(
    listening: Sequence[socket.socket], command: Sequence[str], *, standby: bool, as_json: bool, level: str
) -> Launched:
    """Go on in a new process as the first owner; this one becomes its launcher, and has its id.

    `command`: what begins the next owners. Before this process has a thread, or a loop.
    """
    take_orphans()
    descriptors = [each.detach() for each in listening]
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, launcher.WATCHED)
    parent = os.getpid()
    sys.stdout.flush()
    sys.stderr.flush()
    owner = os.fork()
    if owner == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        ours.close()
        follow(parent)
        return Launched(theirs.detach(), descriptors)
    theirs.close()
    _become(ours, owner, descriptors, command, standby=standby, as_json=as_json, level=level)


def follow(launcher_id: int) -> None:
    """End at once when the launcher does."""
    end_with_parent()
    if os.getppid() != launcher_id:
        os._exit(1)  # it ended before


def _become(
    control: socket.socket, owner: int, listening: Sequence[int], command: Sequence[str], **how: str | bool
) -> NoReturn:
    for each in (control.fileno(), *listening):
        os.set_inheritable(each, True)
    told = {
        "owner": owner, "control": control.fileno(), "listening": [*listening], "command": [*command], **how,
    }  # fmt: skip
    # By the file, without the folders of packages: all that it needs is the interpreter's own.
    interpreter = [sys.executable, "-I", "-S", launcher.__file__, json.dumps(told)]
    os.execve(interpreter[0], interpreter, {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})  # noqa: S606


def command_of(listen: str | None, data_dir: Path | None, workers: int | None) -> list[str]:
    """The command that begins another owner as this one was begun; but it takes nobody's place."""
    given = (("--listen", listen), ("--data-dir", data_dir), ("--workers", workers))
    options = [f"{name}={value}" for name, value in given if value is not None]
    return [sys.executable, "-P", "-m", "recado", "serve", *options]
