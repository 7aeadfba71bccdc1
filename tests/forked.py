"""Recado's program without the start of an interpreter: one that has imported it already forks for each run.

To import it takes longer than what most of the tests ask of it. The rest is as ever: a process of its own, with its
arguments, environment, folder and files. Tests for which the start itself is the matter run `python -m recado`.
"""

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

_ROOT = Path(__file__).parent.parent
_REQUEST = 2**20  # bytes


class Forked:
    """A run of the program, with what the tests use of `subprocess.Popen`."""

    def __init__(self, connection: socket.socket) -> None:
        self._told = connection.makefile("r")
        connection.close()
        self.pid = int(self._told.readline())
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            ready, _, _ = select.select([self._told], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("recado", timeout or 0)
            self.returncode = int(self._told.readline())
            self._told.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def spawn(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]
) -> Forked:
    """Begin `recado` with these arguments, in a session of its own and without standard input."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.connect(_interpreter())
    request = json.dumps({"arguments": list(arguments), "cwd": str(cwd), "env": dict(env)}).encode()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _REQUEST)
    socket.send_fds(connection, [request], [stdout.fileno(), stderr.fileno()])
    return Forked(connection)


def run(
    arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run `recado` to its end, and take down what it writes."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = spawn(arguments, cwd=cwd, env=env, stdout=stdout, stderr=stderr)
        try:
            status = process.wait(timeout)
        except BaseException:
            process.kill()
            process.wait()
            raise
        texts = []
        for file in (stdout, stderr):
            file.seek(0)
            texts.append(file.read().decode())
    return subprocess.CompletedProcess(["recado", *arguments], status, *texts)


@cache
def _interpreter() -> str:
    """The address of this process's own, which ends with it."""
    address = f"{tempfile.mkdtemp(prefix='recado-tests-')}/interpreter"
    ours, its = socket.socketpair()
    command = [sys.executable, "-m", "tests.forked", address, str(its.fileno())]
    process = subprocess.Popen(command, cwd=_ROOT, pass_fds=[its.fileno()], stdin=subprocess.DEVNULL)
    its.close()
    assert ours.recv(1) == b"+", f"the interpreter that forks ended with status {process.wait()}"

    @atexit.register
    def end() -> None:
        ours.close()
        process.wait()

    return address


# The interpreter that forks -------------------------------------------------------------------------------------------


def _serve(address: str, owner: int) -> "dict[str, Any]":
    """Fork for each request until the owner is gone. Comes back in the new processes only, with what each is to run."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    os.write(owner, b"+")
    asked_by: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, woken, owner], [], [])
        if owner in ready:
            for pid in asked_by:  # of a run that was killed: nobody else ends them, nor their servers
                os.kill(pid, signal.SIGTERM)
            os.unlink(address)
            os.rmdir(os.path.dirname(address))
            os._exit(0)
        if woken in ready:
            with contextlib.suppress(BlockingIOError):
                while os.read(woken, 4_096):
                    pass
            _tell_ends(asked_by)
        if listener in ready:
            connection, _ = listener.accept()
            content, files, _, _ = socket.recv_fds(connection, _REQUEST, 2)
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for each in (listener, connection, *asked_by.values()):
                    each.close()
                for each in (woken, wake, owner):
                    os.close(each)
                for number, file in enumerate(files, 1):
                    os.dup2(file, number)
                    os.close(file)
                return dict(json.loads(content))
            for file in files:
                os.close(file)
            connection.send(f"{pid}\n".encode())
            asked_by[pid] = connection


def _tell_ends(asked_by: dict[int, socket.socket]) -> None:
    for pid in list(asked_by):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            with asked_by.pop(pid) as connection, contextlib.suppress(OSError):
                connection.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(request: "dict[str, Any]") -> None:
    """What the start of a process gives it."""
    os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.argv = ["recado", *request["arguments"]]


if __name__ == "__main__":
    import recado.app
    import recado.cli.doctor.command
    import recado.cli.keys
    import recado.cli.program
    import recado.cli.serve  # noqa: F401 - what takes long to import
    from recado.cli.main import run as program

    assert threading.active_count() == 1, "a thread does not survive a fork"
    gc.collect()
    gc.freeze()  # at its end, each process would look through all that was imported: half a second of a core
    _become(_serve(sys.argv[1], int(sys.argv[2])))
    program()
