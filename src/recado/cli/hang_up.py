"""What `SIGHUP` means: somebody asks for a reload, or the terminal is closed from which the command was started."""

import signal
from collections.abc import Callable

from recado.fronts.launcher import has_terminal


def hang_ups() -> Callable[[], bool]:
    """Returns what tells, when the signal came, whether the terminal is gone and the command is to end with it.

    Ask before the signal gets a handler: who started the command with `nohup` wants it to go on.
    """
    ends_with_it = has_terminal() and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return lambda: ends_with_it and not has_terminal()
