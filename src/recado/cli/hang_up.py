"""What `SIGHUP` means: somebody asks for a reload, or the terminal is closed from which the command was started."""

import os
import signal
from collections.abc import Callable


def hang_ups() -> Callable[[], bool]:
    """Returns what tells, when the signal came, whether the terminal is gone and the command is to end with it.

    Ask before the signal gets a handler: who started the command with `nohup` wants it to go on.
    """
    ends_with_it = _has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return lambda: ends_with_it and not _has_terminal()


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
    except OSError:
        return False
    return True
