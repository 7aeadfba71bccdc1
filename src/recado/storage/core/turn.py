"""A turn of the event loop for others, amid work that waits for nothing: no time passes by it, so no clock is asked."""

from collections.abc import Generator
from types import coroutine


@coroutine
def others_run() -> Generator[None]:
    """Goes on once everybody who can run has run."""
    yield
