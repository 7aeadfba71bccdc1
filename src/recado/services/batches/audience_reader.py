"""Reads the audiences of batches into blocks, beside what makes their messages (C15.5).

A filter may be slow, or wait for its organization's share of the long work: so each organization has a task of its own,
one at a time, and its batches take turns. How far each is read is a row.
"""

import asyncio
from collections.abc import Callable

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.engine.periodic import Periodic
from recado.services.batches.batch_audience import Audiences
from recado.storage.batches import batches
from recado.storage.batches.batches import BatchKey
from recado.storage.core.connections.postgres import Database

log = structlog.get_logger()

LOOK_EVERY = 1.0  # seconds
PAUSE = 1.0  # seconds, of an organization after an audience that could not be read
AT_ONCE = 100  # organizations; the others wait in their rows


class AudienceReader:
    """A service. `read` is told of each batch of which more was read, or that there is no more, and its blocks left."""

    def __init__(
        self, db: Database, audiences: Audiences, *, clock: Clock, read: Callable[[BatchKey, int], None]
    ) -> None:
        self._db = db
        self._audiences = audiences
        self._clock = clock
        self._told = read
        self._under_way: dict[str, tuple[str, asyncio.Task[None]]] = {}  # by organization: a batch
        # By organization: the batch that had its turn last; whose turn is longest ago first.
        self._last: dict[str, str] = {}
        self._worker = Periodic("audiences of batches", LOOK_EVERY, self._look, clock, at_once=True)

    async def start(self) -> None:
        """Takes up what is not read to its end."""
        await self._worker.start()

    async def stop(self) -> None:
        """Breaks off what is being read; the next start goes on."""
        await self._worker.stop()
        tasks = [task for _, task in self._under_way.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def hint(self) -> None:
        """A batch may have an audience to be read."""
        self._worker.hint()

    def let_go(self, key: BatchKey) -> None:
        """A batch was paused or canceled: what is being read of it is broken off, and its organization goes on."""
        batch_id, task = self._under_way.get(key[0], ("", None))
        if task is not None and batch_id == key[2]:
            task.cancel()

    async def _look(self) -> None:
        """Begin to read for each organization for which nothing is read, those first that have waited longest."""
        keys = await batches.next_in_turn(self._db.hot, in_blocks=False, last=self._last)
        left = {key[0] for key in keys} | self._under_way.keys()
        self._last = {organization_id: last for organization_id, last in self._last.items() if organization_id in left}
        place = {organization_id: place for place, organization_id in enumerate(self._last, start=1)}
        for key in sorted(keys, key=lambda key: place.get(key[0], 0)):
            if len(self._under_way) >= AT_ONCE:
                return
            if key[0] not in self._under_way:
                self._begin(key)

    def _begin(self, key: BatchKey) -> None:
        organization_id, _, batch_id = key
        self._last.pop(organization_id, None)
        self._last[organization_id] = batch_id
        task = asyncio.get_running_loop().create_task(self._read(key), name=f"audience of {batch_id}")
        self._under_way[organization_id] = (batch_id, task)
        task.add_done_callback(lambda _: self._ended(organization_id))

    def _ended(self, organization_id: str) -> None:
        del self._under_way[organization_id]
        self._worker.hint()

    async def _read(self, key: BatchKey) -> None:
        try:
            blocks_left = await self._audiences.read(key)
        except Unavailable:  # the server is away, as all who call it find
            blocks_left = None
        except Exception as error:  # noqa: BLE001 - one that cannot be read must not keep the others waiting
            log.error("audience_not_read", batch_id=key[2], error=type(error).__name__)
            blocks_left = None
        if blocks_left is None:
            await self._clock.sleep(PAUSE)
        else:
            self._told(key, blocks_left)
