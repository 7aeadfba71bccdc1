"""Whether somebody set the clock (C32): said once, and believed when the database's server says the same.

The server is believed only if it was ahead by just so much before our clock was set: when both run on one machine, both
clocks are set together, and the server's proves nothing.
"""

from collections.abc import Callable
from datetime import timedelta

import structlog

from recado.engine.clock import SystemClock
from recado.engine.periodic import Periodic
from recado.engine.steady_time import SET
from recado.storage.core.connections import server_clock
from recado.storage.core.connections.pool import Pool

log = structlog.get_logger()

EVERY = 10.0  # seconds
SLOW = 5.0
"""Seconds after which an answer tells nothing of its moment."""
_ZERO = timedelta()


class ClockWatch:
    """A service."""

    def __init__(self, db: Pool, clock: SystemClock, believed: Callable[[], None] = lambda: None) -> None:
        """`believed` is told when the clock is believed again, which was set."""
        self._believed = believed
        self._db = db
        self._clock = clock
        self._said = _ZERO
        self._before: timedelta | None = None  # how far the server was ahead of us while our clock was believed
        self._worker = Periodic("clock", EVERY, self.look, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def look(self) -> None:
        """Compare the clocks."""
        began = self._clock.monotonic()
        self._clock.now()
        self._say()
        server = await server_clock.shown(self._db) - self._clock.now()
        if self._clock.monotonic() - began > SLOW:
            return
        set_by = self._clock.set_by
        if set_by <= SET:
            self._before = server
        elif self._before is not None and max(abs(server - set_by), abs(self._before - set_by)) <= SET:
            self._clock.follow()
            log.warning("clock_followed", seconds=round(set_by.total_seconds()))
            self._said, self._before = _ZERO, None
            self._believed()

    def _say(self) -> None:
        set_by = self._clock.set_by
        if abs(set_by - self._said) <= SET:
            return
        self._said = set_by
        seconds = round(set_by.total_seconds())
        if abs(set_by) <= SET:
            log.warning("clock_agrees", seconds=seconds)
            self._believed()
        else:
            log.error("clock_was_set", seconds=seconds, remedy="set it right; a restart believes what it shows")
