"""Where the threads of this process are, on standard error: when it crashes, and when somebody asks by a signal.

Files, lines and names of functions only: no values, so nothing of a message or a person.
"""

import faulthandler
import os
import signal
import sys
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

ASKED_BY: Final = signal.SIGUSR1


def tell_stacks() -> None:
    """From now on. The interpreter need not be able to run for it: a process that is stuck in C answers, too."""
    error = sys.__stderr__
    if error is None:
        return  # whoever started it closed it
    faulthandler.enable(file=error)
    faulthandler.register(ASKED_BY, file=error)


def below_its_name(process: str, work: Callable[[], T]) -> T:
    """Do the work below a function that is called as this process is: `front 2, pid 4711`.

    Nothing but names of functions can be told where the interpreter cannot run: by this one, below which is only how
    the program began, the stack of this thread says whose it is. One of more than a hundred calls is cut off before it.
    """

    def run() -> T:
        return work()

    run.__code__ = run.__code__.replace(co_name=f"{process}, pid {os.getpid()}")
    return run()
