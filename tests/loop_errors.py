"""What nobody awaited in an event loop of another thread: noted in words, and told when that loop has ended.

asyncio's own handler would format tracebacks in the loop's thread while the collector may run in that of the tests, and
that ends the interpreter of Python 3.11 now and then. Here no frame is looked at, and a plain failure tells the cause.
"""

import asyncio
import gc
from typing import Any


class LoopErrors:
    """The errors of one loop, each as a line."""

    def __init__(self) -> None:
        self._noted: list[str] = []

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Take the place of the loop's handler."""
        loop.set_exception_handler(lambda _, context: self._noted.append(_line(context)))

    def check(self) -> None:
        """AssertionError when there was any. Once the loop has ended: what only the collector finds is found here."""
        gc.collect()
        assert not self._noted, "nobody awaited what failed in the service's loop:\n" + "\n".join(self._noted)


def _line(context: dict[str, Any]) -> str:
    """The message of a context, the types in it, and which coroutine a task ran."""
    types = (f"{name} {_name(thing)}" for name, thing in context.items() if name != "message")
    return ", ".join((str(context.get("message")), *types))


def _name(thing: object) -> str:
    name = type(thing).__name__
    return f"{name} of {thing.get_coro().__qualname__}" if isinstance(thing, asyncio.Task) else name
