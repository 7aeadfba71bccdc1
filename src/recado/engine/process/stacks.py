"""Where the threads of this process are, on standard error: when it crashes, and when somebody asks by a signal.

Files, lines and names of functions only: no values, so nothing of a message or a person.
"""

import faulthandler
import signal
import sys
from typing import Final

ASKED_BY: Final = signal.SIGUSR1


def tell_stacks() -> None:
    """From now on. The interpreter need not be able to run for it: a process that is stuck in C answers, too."""
    error = sys.__stderr__
    if error is None:
        return  # whoever started it closed it
    faulthandler.enable(file=error)
    faulthandler.register(ASKED_BY, file=error)
