"""The log of requests: each one at level debug, refusals at level info, and never more of these than a disk bears.

A caller who is refused thousands of times a second gets twenty entries a second and a count of the rest.
"""

import logging
from typing import Final

import structlog

from recado.domain.core.clock import Clock
from recado.http.api.call import Call
from recado.http.api.operation import Operation

REFUSALS_A_SECOND: Final = 20
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})

_log = structlog.get_logger(__name__)


class RequestLog:
    """Writes an entry with the request's id, and nothing of what was sent: ids and codes only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.every = logging.getLogger(__name__).isEnabledFor(logging.DEBUG)
        """Whether answers that are no refusals are logged too; asked once, not for each request."""
        self._window = 0  # the second that is counted
        self._written = 0
        self._left_out = 0

    def answered(self, operation: Operation | None, call: Call, status: int, code: str | None, seconds: float) -> None:
        """Log an answer. `code`: of the problem, None when it is none."""
        if code is not None and not self._admitted():
            return
        route = operation.route if operation is not None else None
        told = {
            "operation": route.operation_id if route is not None else None,
            "method": call.method if call.method in _METHODS else "other",  # else a caller could write into the log
            **({} if route is not None else {"nearest_route": call.route}),
            "status": status,
            **({} if code is None else {"code": code}),
            "request_id": call.request_id,
            "organization_id": call.principal.organization_id or None,
            "actor_id": call.principal.actor_id or None,
            "ms": round(seconds * 1_000, 1),
        }
        if code is None:
            _log.debug("request_answered", **told)
        else:
            _log.info("request_refused", **told)

    def _admitted(self) -> bool:
        second = int(self._clock.monotonic())
        if second != self._window:
            if self._left_out:
                _log.info("refusals_left_out", count=self._left_out)
            self._window, self._written, self._left_out = second, 0, 0
        self._written += 1
        if self._written > REFUSALS_A_SECOND:
            self._left_out += 1
            return False
        return True
