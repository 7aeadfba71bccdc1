"""The end of a process that does not end by itself: a thread in a name look-up, a task that will not be cancelled."""

import os
import threading

import structlog

STOP_LIMIT = 20.0  # seconds (C32)
LEAVE_LIMIT = 1.0  # seconds that the interpreter gets after everything is stopped
NOT_FLUSHED = 3  # exit status

log = structlog.get_logger(__name__)


class LastResort:
    """Ends the process from a thread of its own; nothing before `begin`. What was accepted is in the database."""

    def __init__(self) -> None:
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """The stop begins: the process ends within its limit, whatever happens."""
        self._end_in(STOP_LIMIT, NOT_FLUSHED)

    def leave(self, status: int) -> None:
        """Everything is stopped: only the interpreter is left to end, with this exit status."""
        self._end_in(LEAVE_LIMIT, status)

    def _end_in(self, seconds: float, status: int) -> None:
        def end() -> None:
            log.error("ended_by_force", status=status)
            os._exit(status)

        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(seconds, end)
        self._timer.daemon = True
        self._timer.start()
