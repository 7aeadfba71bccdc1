"""`SIGHUP` of a terminal that is closed, and of somebody who asks for a reload."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios

import pytest

PROGRAM = """
import signal, sys
from recado.cli.hang_up import hang_ups
if sys.argv[1] == "nohup":
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
gone = hang_ups()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGHUP])
signal.signal(signal.SIGHUP, lambda *_: None)
print("waits", flush=True)
signal.sigwait([signal.SIGHUP])
print(gone(), flush=True)
"""


@pytest.mark.parametrize(
    ("started", "closed", "ends"),
    [("in it", True, "True"), ("in it", False, "False"), ("nohup", True, "False"), ("without", False, "False")],
)
def test_only_a_closed_terminal_ends_what_was_started_from_it(started: str, closed: bool, ends: str) -> None:
    ours, theirs = pty.openpty()

    def take() -> None:
        if started != "without":
            fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, started],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=take,
    ) as process:
        os.close(theirs)
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        if closed:
            os.close(ours)
        else:
            process.send_signal(signal.SIGHUP)
        assert process.communicate(timeout=60)[0] == f"{ends}\n"
        if not closed:
            os.close(ours)
