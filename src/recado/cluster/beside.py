"""Becomes another program that ends in order when its parent ends, however that does: `beside PID ARGUMENT…`.

PID is the parent's. The kernel tells of its end (SIGTERM), and keeps that over the change of programs.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1  # of Linux's prctl


def main(arguments: Sequence[str]) -> int:
    """Never returns but where the parent is gone already."""
    parent, *command = arguments
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != int(parent):
        return 1  # it ended before this was to end with it
    os.execv(command[0], command)  # noqa: S606 - what the parent wants; no shell


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
