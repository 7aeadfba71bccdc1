"""Counts segments again every hour (C32): one at a time, so that a place for evaluations stays for callers (C13.3)."""

from collections import deque

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.storage.audience import segments
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.audience.segments import Segment
from recado.storage.core.connections.postgres import Database

log = structlog.get_logger()

LOOK_EVERY = 60.0  # seconds
CLAIMED = 10  # segments, of as many organizations


class SegmentSizes:
    """A service. What cannot be counted in time keeps its last size until the next hour."""

    def __init__(self, db: Database, evaluation: Evaluation, *, clock: Clock) -> None:
        self._db = db
        self._evaluation = evaluation
        self._clock = clock
        self._claimed: deque[Segment] = deque()  # each of another organization
        self._had: set[str] = set()  # organizations that had a turn in this round
        self._worker = Periodic("segment sizes", LOOK_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """Every segment that is due, and those that become due meanwhile; organizations take turns."""
        failure: Exception | None = None
        while (segment := await self._next()) is not None:
            try:
                await self._count(segment)
            except Exception as error:  # noqa: BLE001 - it is raised when the others are counted
                failure = failure or error
        if failure is not None:
            raise failure

    async def _next(self) -> Segment | None:
        """What has its turn; a second one of any organization after the first of each."""
        if not self._claimed:
            now = self._clock.now()
            self._claimed += await segments.claim_due(self._db, now, CLAIMED, without=self._had)
            if not self._claimed and self._had:
                self._had.clear()
                self._claimed += await segments.claim_due(self._db, now, CLAIMED)
            self._had.update(segment.organization_id for segment in self._claimed)
        return self._claimed.popleft() if self._claimed else None

    async def _count(self, segment: Segment) -> None:
        now = self._clock.now()
        try:
            size = await self._evaluation.count(segment.organization_id, segment.env, segment.tree, now)
            await segments.note_size(self._db, segment, size, now)
        except Unavailable:
            log.warning("segment_not_counted", segment_id=segment.id)
