"""The end of a program: everything is stopped in reverse of its start, by one deadline (C32)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

_log = logging.getLogger(__name__)

Stop = Callable[[], Awaitable[object]]


class ShutdownOutcome(NamedTuple):
    """How the stops went: the names of those that were cut off, and of those that did not write what they held."""

    cut_off: list[str]
    not_flushed: list[str]


class Shutdown:
    """What has been started, and how it is stopped."""

    def __init__(self) -> None:
        self._stops: list[tuple[str, Stop, bool]] = []

    def add(self, name: str, stop: Stop, *, flushes: bool = True) -> None:
        """`name` was started, or is about to be. `flushes`: its stop writes what would be lost, or finishes work."""
        self._stops.append((name, stop, flushes))

    async def run(self, seconds: float) -> ShutdownOutcome:
        """Stop everything that was added, and cut off what has not ended after so many seconds, in all.

        What is stopped after those seconds has a moment each. An error is logged, and keeps nothing from its stop.
        """
        ended = ShutdownOutcome([], [])
        end = asyncio.get_running_loop().time() + seconds
        while self._stops:
            name, stop, flushes = self._stops.pop()
            try:
                async with asyncio.timeout_at(end):
                    await stop()
                continue
            except TimeoutError:
                ended.cut_off.append(name)
            except Exception as error:  # noqa: BLE001 - the others must stop all the same
                _log.error("%s failed to stop (%s)", name, type(error).__name__)
            if flushes:
                ended.not_flushed.append(name)
        return ended
