"""Who opened a notification: told by its app, many in one commit (C22.3). Only the first time of a device counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import not_found
from recado.domain.push.dispatch_ids import messages_of, place_in
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.push import messages
from recado.storage.push.messages import DispatchOpened

MOST_WAITING: Final = 10_000
IN_A_COMMIT: Final = 500


@dataclass(frozen=True, slots=True)
class OpenReport:
    """An app says that a dispatch was opened."""

    organization_id: str
    env: str
    dispatch_id: str


class PushOpens:
    """A service (`start`, `stop`)."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._batcher: Batcher[OpenReport, DispatchOpened] = Batcher(
            "push opens", self._run, clock=clock, max_rows=IN_A_COMMIT, max_queue=MOST_WAITING,
            owner=lambda row: row.organization_id, concurrency=1,
        )  # fmt: skip
        self.start = self._batcher.start
        self.stop = self._batcher.stop

    async def opened(self, report: OpenReport) -> DispatchOpened:
        """Note it. Raises `Problem` 404 for a dispatch that is not there."""
        return await self._batcher.put(report)

    async def _run(self, rows: Sequence[OpenReport]) -> list[DispatchOpened | Exception]:
        now = self._clock.now()
        async with self._db.hot.transaction() as connection:
            asked = [(row.organization_id, row.env, *messages_of(row.dispatch_id)) for row in rows]
            places: list[tuple[str, str, str, int] | None] = []
            for row, found in zip(rows, await messages.openable(connection, asked), strict=True):
                told = (
                    (each.organization_id, each.env, each.id, at)
                    for each in found
                    if (at := place_in(row.dispatch_id, each.id, each.dispatch_key)) is not None
                )
                places.append(next(told, None))
            there = [place for place in places if place is not None]
            opened = await messages.open_dispatches(connection, there, now) if there else {}
        results: list[DispatchOpened | Exception] = []
        counted: set[tuple[str, int]] = set()
        for told_place in places:
            key = None if told_place is None else (told_place[2], told_place[3])
            if key is None or key not in opened:
                results.append(not_found())
                continue
            one = opened[key]
            results.append(DispatchOpened(one.opened_at, one.counted and key not in counted))
            counted.add(key)
        return results
