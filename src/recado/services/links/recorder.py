"""Gathers what people did with messages, by what they did it with, and has it recorded in batches.

Nobody waits for that record. When the database cannot keep up, what comes is dropped and counted as such: people get
their answer all the same, and those who send have the database's other connections.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.storage.core.statements.moves import AfterCommit

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
Done: TypeAlias = tuple[K, list[datetime]]
"""What something was done with, and when, in order."""


class Recorder(Generic[K]):
    """A service (`start`, `stop`). `dropped`: what nobody recorded, since the start.

    `record`: records these in one commit, each once; answers what follows the commit.
    """

    def __init__(
        self,
        name: str,
        record: Callable[[Sequence[Done[K]]], Awaitable[AfterCommit | None]],
        *,
        key: Callable[[K], Hashable],
        told_as: str,
        clock: Clock,
    ) -> None:
        """`key`: tells things apart; cheaper than they are themselves. `told_as`: the entry of the log about what was
        dropped.
        """
        self._told_as = told_as
        self._record = record
        self._key = key
        self._clock = clock
        self._now = clock.now
        self._waiting: dict[Hashable, Done[K]] = {}
        self._taken: list[Done[K]] = []  # they waited before those, and are being recorded
        self._of_organization: dict[str, int] = {}  # times, of both
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
        key = self._key(done)
        there = self._waiting.get(key)
        organization_id = done.organization_id
        of_organization = self._of_organization.get(organization_id, 0)
        if (
            self._count >= MOST_WAITING
            or of_organization >= MOST_OF_ORGANIZATION
            or (there is not None and len(there[1]) >= MOST_OF_ONE)
        ):
            self._drop(1)
            return
        if not (self._waiting or self._recording.locked()):
            self._record_soon()
        if there is None:
            self._waiting[key] = (done, [self._now()])
        else:
            there[1].append(self._now())
        self._count += 1
        self._of_organization[organization_id] = of_organization + 1

    async def record(self) -> None:
        """Record all that came before; what comes meanwhile gathers, unless it fills a commit already."""
        async with self._recording:
            await self._record_waiting()
            while len(self._waiting) >= IN_A_COMMIT:
                await self._record_waiting()
        if self._waiting:
            self._record_soon()

    async def _record_waiting(self) -> None:
        self._taken, self._waiting = list(self._waiting.values()), {}
        try:
            while self._taken:
                await self._record_first()
        finally:
            if self._taken:
                self._put_back()

    async def _record_first(self) -> None:
        first = self._first()
        try:
            committed = await self._record(first)
        except Unavailable:
            raise
        except Exception:  # it would fail again, and everything behind it would wait for that
            self._drop(self._forget(first))
            raise
        self._forget(first)
        if committed is not None:
            committed()

    def _record_soon(self) -> None:
        self._clock.call_at(self._clock.monotonic() + EVERY, self._recorder.hint)

    def _put_back(self) -> None:
        """What was not recorded waits again, before what came since."""
        came, self._waiting = self._waiting, {self._key(done): (done, moments) for done, moments in self._taken}
        self._taken = []
        for key, (done, moments) in came.items():
            self._waiting.setdefault(key, (done, []))[1].extend(moments)

    def _first(self) -> list[Done[K]]:
        """What is recorded in the next commit."""
        times = 0
        for number, (_, moments) in enumerate(self._taken):
            times += len(moments)
            if times >= IN_A_COMMIT:
                return self._taken[: number + 1]
        return self._taken[:]

    def _forget(self, recorded: Sequence[Done[K]]) -> int:
        """They wait no more; how many times that was."""
        del self._taken[: len(recorded)]
        before, left = self._count, self._of_organization
        for done, moments in recorded:
            times = len(moments)
            self._count -= times
            of_organization = left[done.organization_id] - times
            if of_organization:
                left[done.organization_id] = of_organization
            else:
                del left[done.organization_id]
        return before - self._count

    def _drop(self, times: int) -> None:
        self.dropped += times
        told, at = self._told
        now = self._clock.monotonic()
        if times and now - at >= TOLD_EVERY:
            self._told = (self.dropped, now)
            log.warning(self._told_as, since_last=self.dropped - told, since_start=self.dropped)
