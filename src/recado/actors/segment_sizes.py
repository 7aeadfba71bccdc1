"""Counts segments again every hour (C32): two at a time, one of an organization, so that messages keep the server."""

import asyncio
from collections import deque
from collections.abc import Collection

import structlog

from recado.domain.clock import Clock
from recado.domain.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.storage import segments
from recado.storage.postgres import Database
from recado.storage.segment_evaluation import AT_ONCE, Evaluation
from recado.storage.segments import Segment

log = structlog.get_logger()

LOOK_EVERY = 60.0  # seconds
CLAIMED = 10  # segments, of as many organizations


class SegmentSizes:
    """A service. What cannot be counted in time keeps its last size until the next hour."""

    def __init__(self, db: Database, evaluation: Evaluation, *, clock: Clock) -> None:
        self._db = db
        self._evaluation = evaluation
        self._clock = clock
        self._claimed: deque[Segment] = deque()  # each of another organization, of which none is being counted
        self._had: set[str] = set()  # organizations that had a turn in this round
        self._worker = Periodic("segment sizes", LOOK_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """Every segment that is due, and those that become due meanwhile.

        Organizations take turns, and a slow segment keeps one of the two places at most from those of the others.
        """
        under_way: dict[asyncio.Task[None], str] = {}
        try:
            while True:
                while len(under_way) < AT_ONCE and (segment := await self._next(under_way.values())) is not None:
                    counting = asyncio.create_task(self._count(segment), name=f"size of {segment.id}")
                    under_way[counting] = segment.organization_id
                if not under_way:
                    return
                done, _ = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    del under_way[task]
                await asyncio.gather(*done)
        except asyncio.CancelledError:
            for task in under_way:
                task.cancel()
            raise
        finally:  # also after an error: a count that is cut off would not be made again for an hour
            await asyncio.gather(*under_way, return_exceptions=True)

    async def _next(self, busy: Collection[str]) -> Segment | None:
        """What has its turn, of an organization that is not `busy`; a second one of any after the first of each."""
        if not self._claimed:
            now = self._clock.now()
            self._claimed += await segments.claim_due(self._db, now, CLAIMED, without=self._had.union(busy))
            if not self._claimed and self._had:
                self._had.clear()
                self._claimed += await segments.claim_due(self._db, now, CLAIMED, without=busy)
            self._had.update(segment.organization_id for segment in self._claimed)
        return self._claimed.popleft() if self._claimed else None

    async def _count(self, segment: Segment) -> None:
        now = self._clock.now()
        try:
            size = await self._evaluation.count(segment.organization_id, segment.env, segment.tree, now)
            await segments.note_size(self._db, segment, size, now)
        except Unavailable:
            log.warning("segment_not_counted", segment_id=segment.id)
