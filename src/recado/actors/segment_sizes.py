"""Counts segments again every hour (C32): a few at a time, so that messages keep the server."""

import structlog

from recado.domain.clock import Clock
from recado.domain.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.storage import segments
from recado.storage.postgres import Database
from recado.storage.segment_evaluation import Evaluation

log = structlog.get_logger()

LOOK_EVERY = 60.0  # seconds
AT_ONCE = 10  # segments, of as many organizations


class SegmentSizes:
    """A service. What cannot be counted in time keeps its last size until the next hour."""

    def __init__(self, db: Database, evaluation: Evaluation, *, clock: Clock) -> None:
        self._db = db
        self._evaluation = evaluation
        self._clock = clock
        self._worker = Periodic("segment sizes", LOOK_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """One round: every segment that is due."""
        while due := await segments.claim_due(self._db, self._clock.now(), AT_ONCE):
            for segment in due:
                now = self._clock.now()
                try:
                    size = await self._evaluation.count(segment.organization_id, segment.env, segment.tree, now)
                except Unavailable:
                    log.warning("segment_not_counted", segment_id=segment.id)
                    continue
                await segments.note_size(self._db, segment, size, now)
