"""The orderly end of a command that is told to stop: it closes what it opened, and removes what it began."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Any, Final, TypeVar

import typer

T = TypeVar("T")

STOPPED: Final = 128 + signal.SIGTERM  # exit status, as of a program that the signal ended


async def until_told(work: Coroutine[Any, Any, T]) -> T:
    """The work, cancelled at SIGTERM: the command then ends with status 143, and says nothing."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()
    working = asyncio.create_task(work)

    def end() -> None:
        if not told.is_set():  # a second signal does not break off the end that the first one asked for
            told.set()
            working.cancel()

    loop.add_signal_handler(signal.SIGTERM, end)
    try:
        return await working
    except (Exception, asyncio.CancelledError):
        if told.is_set():
            raise typer.Exit(STOPPED) from None
        raise
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
