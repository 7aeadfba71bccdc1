"""What a process is to those that began it and that it begins: ends with them, takes their orphans, has a name."""

import ctypes
import os
import signal
from contextlib import suppress
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # of Linux's prctl


def end_with_parent() -> None:
    """Let the kernel kill this process when the one that began it ends. That may be over: look at its id afterwards."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def take_orphans() -> None:
    """What those that this process begins have begun becomes its own when they end. It stays so over an `exec`."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def take_name(name: str) -> None:
    """Be called that by `ps -o comm`: at most fifteen characters."""
    with suppress(OSError):
        Path(f"/proc/{os.getpid()}/comm").write_text(name)


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value)
