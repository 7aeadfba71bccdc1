"""Lets whoever comes to match a segment arrive at the journeys that begin with it (C9.7): a look every 15 minutes.

A look goes along the ids of the contacts in blocks, and compares each with what the last look found there.
"""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Final

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.storage.audience import segments
from recado.storage.audience.segment_evaluation import AFTER_ALL_IDS, Evaluation
from recado.storage.batches.audiences import Audience
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import doors, segment_looks
from recado.storage.journeys.segment_looks import SegmentLook

log = structlog.get_logger()

LOOK_EVERY: Final = timedelta(minutes=15)
AGAIN_IN: Final = timedelta(minutes=1)
"""When a look goes on that could not be made, or whose process died."""
POLL_EVERY: Final = 1.0  # seconds
AT_ONCE: Final = 10  # looks, of as many organizations
BLOCK: Final = 1_000  # contacts that match
BLOCKS: Final = 10  # of a look in its turn


class SegmentLooks:
    """A service (`start`, `stop`)."""

    def __init__(self, db: Database, evaluation: Evaluation, *, clock: Clock) -> None:
        self._db = db
        self._evaluation = evaluation
        self._clock = clock
        self._waited: dict[tuple[str, str, str], timedelta] = {}  # before those whose last look took too long
        self._worker = Periodic("segments of journeys", POLL_EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """Every look that is due; organizations take turns."""
        while True:
            now = self._clock.now()
            due = await segment_looks.claim_due(self._db, now, now + AGAIN_IN, AT_ONCE)
            if not due:
                return
            await asyncio.gather(*(self._look_by_itself(look) for look in due))

    async def _look_by_itself(self, look: SegmentLook) -> None:
        """One that fails is due again in a minute, and keeps no other from its turn."""
        try:
            await self._look(look)
        except Exception as error:  # noqa: BLE001 - see above
            log.warning("segment_look_failed", journey_id=look.journey_id, error=type(error).__name__)

    async def _look(self, look: SegmentLook) -> None:
        """A turn of one. What takes too long is tried again a minute later, then two, four and eight."""
        waited = self._waited.pop(look.key, AGAIN_IN / 2)
        door = (await doors.read(self._db, look.organization_id, look.env, [look.journey_id])).get(look.journey_id)
        segment = await segments.SEGMENTS.get(self._db, look.organization_id, look.env, look.segment_id)
        if door is None or door.shut_for_good or segment is None:
            await segment_looks.forget(self._db, look)
            return
        if door.kept_shut:
            await segment_looks.rest(self._db, look)
            return
        audience = Audience(before_id=AFTER_ALL_IDS, tree=segment.tree)
        try:
            for _ in range(BLOCKS):
                found = await self._evaluation.next_of(
                    look.organization_id, look.env, audience, self._clock.now(), after_id=look.after_id, limit=BLOCK
                )
                ids = [contact_id for contact_id, _ in found.people]
                last_id = AFTER_ALL_IDS if found.ended else ids[-1]
                now = self._clock.now()
                await segment_looks.lose(self._db, look, ids, last_id)
                async with self._db.transaction() as connection:
                    await segment_looks.saw(connection, look, ids)
                    if found.ended:
                        await segment_looks.go_on(connection, look, "", now + LOOK_EVERY)
                        return
                    await segment_looks.go_on(connection, look, last_id, now)
                look = replace(look, after_id=last_id)
        except Unavailable:
            log.warning("segment_not_looked_at", segment_id=look.segment_id, journey_id=look.journey_id)
            self._waited[look.key] = again_in = min(LOOK_EVERY, 2 * waited)
            await segment_looks.go_on(self._db, look, look.after_id, self._clock.now() + again_in)
