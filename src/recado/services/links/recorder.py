"""Gathers what people did with messages, by what they did it with, and has it recorded in batches.

Nobody waits for that record. When the database cannot keep up, what comes is dropped and counted as such: people get
their answer all the same, and those who send have the database's other connections.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.storage.core.moves import AfterCommit

MOST_WAITING: Final = 40_000  # times
MOST_OF_ORGANIZATION: Final = MOST_WAITING // 2
MOST_OF_ONE: Final = 100  # who does one thing without end fills no queue
IN_A_COMMIT: Final = 2_000
EVERY: Final = 0.1  # seconds in which they gather
NET: Final = 5.0  # seconds: what a record left is looked for again, whoever comes
TOLD_EVERY: Final = 60.0  # seconds between two lines of the log about what was dropped

log = structlog.get_logger(__name__)


class OfOrganization(Protocol):
    """What something is done with."""

    @property
    def organization_id(self) -> str: ...


K = TypeVar("K", bound=OfOrganization)


class Recorder(Generic[K]):
    """A service (`start`, `stop`). `dropped`: what nobody recorded, since the start.

    `record`: records when each of these was done, in order, in one commit; answers what follows the commit.
    """

    def __init__(
        self,
        name: str,
        record: Callable[[Mapping[K, Sequence[datetime]]], Awaitable[AfterCommit | None]],
        *,
        told_as: str,
        clock: Clock,
    ) -> None:
        """`told_as`: the entry of the log about what was dropped."""
        self._told_as = told_as
        self._record = record
        self._clock = clock
        self._waiting: dict[K, list[datetime]] = {}
        self._of_organization: Counter[str] = Counter()
        self._count = 0
        self.dropped = 0
        self._told = (0, float("-inf"))  # dropped then, and when (monotonic)
        self._recording = asyncio.Lock()
        self._recorder = Periodic(name, NET, self.record, clock)

    async def start(self) -> None:
        await self._recorder.start()

    async def stop(self) -> None:
        """What cannot be recorded now is dropped."""
        await self._recorder.stop()
        try:
            with suppress(Unavailable):
                await self.record()
        finally:
            self._drop(self._count)
            self._waiting, self._count = {}, 0
            self._of_organization.clear()

    def take(self, done: K) -> None:
        """A person did it now."""
        moments = self._waiting.get(done)
        if (
            self._count >= MOST_WAITING
            or self._of_organization[done.organization_id] >= MOST_OF_ORGANIZATION
            or (moments is not None and len(moments) >= MOST_OF_ONE)
        ):
            self._drop(1)
            return
        if not self._count:
            self._clock.call_at(self._clock.monotonic() + EVERY, self._recorder.hint)
        if moments is None:
            self._waiting[done] = [self._clock.now()]
        else:
            moments.append(self._clock.now())
        self._count += 1
        self._of_organization[done.organization_id] += 1

    async def record(self) -> None:
        """Record all that came before."""
        async with self._recording:
            while self._waiting:
                first = self._first()
                try:
                    committed = await self._record(first)
                except Unavailable:
                    raise
                except Exception:  # it would fail again, and everything behind it would wait for that
                    self._forget(first)
                    self._drop(sum(map(len, first.values())))
                    raise
                self._forget(first)
                if committed is not None:
                    committed()

    def _first(self) -> dict[K, list[datetime]]:
        """What is recorded in the next commit. It waits until then, and what is done anew waits beside it."""
        found: dict[K, list[datetime]] = {}
        times = 0
        for done, moments in self._waiting.items():
            found[done] = moments[:]
            times += len(moments)
            if times >= IN_A_COMMIT:
                break
        return found

    def _forget(self, recorded: Mapping[K, Sequence[datetime]]) -> None:
        """They wait no more; what was done since does."""
        for done, moments in recorded.items():
            later = self._waiting.pop(done)[len(moments) :]
            if later:
                self._waiting[done] = later
            self._count -= len(moments)
            self._of_organization[done.organization_id] -= len(moments)
            if not self._of_organization[done.organization_id]:
                del self._of_organization[done.organization_id]

    def _drop(self, times: int) -> None:
        self.dropped += times
        told, at = self._told
        now = self._clock.monotonic()
        if times and now - at >= TOLD_EVERY:
            self._told = (self.dropped, now)
            log.warning(self._told_as, since_last=self.dropped - told, since_start=self.dropped)
