"""What is logged meanwhile, in this thread: some tests share a whole application, which runs and logs in another."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog.testing
from structlog import DropEvent
from structlog.typing import EventDict


@contextmanager
def capture_logs() -> Iterator[list[EventDict]]:
    """As structlog's own, which takes the lines of every thread; of every level, whichever a command left behind."""
    mine = threading.get_ident()

    def of_this_thread(_logger: Any, _method: str, event: EventDict) -> EventDict:
        if threading.get_ident() != mine:
            raise DropEvent
        return event

    former = structlog.get_config()["wrapper_class"]
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.NOTSET))
    try:
        with structlog.testing.capture_logs(processors=[of_this_thread]) as lines:
            yield lines
    finally:
        structlog.configure(wrapper_class=former)
