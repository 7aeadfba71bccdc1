"""What is wrong with the server, told once: that it is away, or answers and does not write; and when that is over."""

import asyncio
import contextlib
import contextvars
from collections.abc import Awaitable, Callable

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.storage.core.connections.failures import refusal_to_write

log = structlog.get_logger(__name__)

TRY_EVERY = 2.0  # seconds between two tries to write: longer than anyone pauses who repeats what was refused
QUIET = 10.0  # seconds after an outage was told in which another that ends is only counted


class Outage:
    """What the pools of one server know together. `since`: its first failure (monotonic seconds), while it lasts."""

    def __init__(self, clock: Clock, try_write: Callable[[], Awaitable[None]]) -> None:
        """`try_write`: writes something that nobody needs; Unavailable when that cannot be."""
        self._clock = clock
        self._try_write = try_write
        self._running = False
        self._refusals = 0
        self._trying: asyncio.Task[None] | None = None
        self._told = False  # of the outage that lasts
        self._quiet_until = float("-inf")
        self._left_out = 0
        self.since: float | None = None

    async def start(self) -> None:
        """The pools begin. Safe to call twice."""
        self._running = True

    async def stop(self) -> None:
        """Tries to write no more. Safe to call twice."""
        self._running = False
        trying, self._trying = self._trying, None
        if trying is not None:
            trying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await trying

    def lost(self, error: BaseException) -> None:
        """A call found no server, or no answer.

        Told once; after another that was told a moment ago, only when it lasts: connections may break one by one.
        """
        now = self._clock.monotonic()
        if self.since is None:
            self.since = now
        if not self._told and now >= self._quiet_until:
            log.error("database_away", cause=_cause(error), left_out=self._left_out)
            self._told, self._quiet_until, self._left_out = True, now + QUIET, 0

    def over(self) -> None:
        """A call was answered."""
        if self.since is None:
            return
        if self._told:
            log.warning("database_back", seconds=round(self._clock.monotonic() - self.since, 1))
        else:
            self._left_out += 1
        self.since, self._told = None, False

    @property
    def refuses_writes(self) -> bool:
        """Whether the server answers, and refused to write when it was last asked to."""
        return self._trying is not None

    def refused(self, error: BaseException) -> bool:
        """Whether a call failed because the server does not write. Told once, until a try to write succeeds."""
        cause = refusal_to_write(error)
        if cause is None:
            return False
        self._refusals += 1
        if self._trying is None and self._running:
            log.error("database_refuses_writes", cause=cause)
            # In a context of its own: whoever was refused first has no part in the tries.
            self._trying = asyncio.create_task(self._until_written(), context=contextvars.Context())
        return True

    async def _until_written(self) -> None:
        """Tells when the server writes again.

        A caller's success does not say so: on a full disk, whatever needs no new page is written still. Nor does a try
        while callers are refused, who may need more than it does.
        """
        since = self._clock.monotonic()
        written = False
        while not written:
            refusals = self._refusals
            await self._clock.sleep(TRY_EVERY)
            if refusals == self._refusals:
                written = await self._writes()
        self._trying = None
        log.warning("database_writes_again", seconds=round(self._clock.monotonic() - since, 1))

    async def _writes(self) -> bool:
        try:
            await self._try_write()
        except Unavailable:
            return False
        except Exception as error:  # noqa: BLE001 - such a user may make no table: that nobody is refused must do
            log.debug("write_not_tried", error=type(error).__name__)
        return True


def _cause(error: BaseException) -> str:
    """The kind of error, and what the system says of it; a server's own text may hold what a caller sent."""
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = getattr(error, "strerror", None)
    return f"{type(error).__name__}: {text}" if isinstance(error, OSError) and text else type(error).__name__
