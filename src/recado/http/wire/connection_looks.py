"""Looks at a server's connections once a second: ends those whose head does not come, and tells of refused ones."""

from typing import Final

import structlog
from aiohttp import web

from recado.domain.core.clock import Clock, TimerHandle
from recado.http.wire.connection_limits import ConnectionLimits

LOOK_SECONDS: Final = 1.0
_TOLD_EVERY: Final = 60.0  # seconds

log = structlog.get_logger(__name__)


class ConnectionLooks:
    """Begins with `start`, for one server at a time; `stop` is safe to call twice, and without a start."""

    def __init__(self, limits: ConnectionLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._timer: TimerHandle | None = None
        self._told = 0
        self._tell_again_at = 0.0

    def start(self, server: web.Server) -> None:
        self._look(server)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self, server: web.Server) -> None:
        now = self._clock.monotonic()
        for connection in server.connections:
            connection.look(now)  # type: ignore[attr-defined]
        if self._limits.refused > self._told and now >= self._tell_again_at:
            log.warning("connections_refused", count=self._limits.refused - self._told, open=self._limits.open)
            self._told, self._tell_again_at = self._limits.refused, now + _TOLD_EVERY
        self._timer = self._clock.call_at(now + LOOK_SECONDS, lambda: self._look(server))
