"""The 24 h windows that inbound messages open (C15.2.2), looked up in batches: one query for many sends at once."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from recado.domain.core.clock import Clock
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.sql import load

SQL = load("chat_windows")

WINDOW: Final = timedelta(hours=24)

WindowKey = tuple[str, str, int]
"""Organization, number, and the recipient's hash."""


class ChatWindows:
    """When a person last wrote to a number."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._look_ups: Batcher[WindowKey, datetime | None] = Batcher("chat windows", self._find, clock=clock)

    async def start(self) -> None:
        await self._look_ups.start()

    async def stop(self) -> None:
        await self._look_ups.stop()

    def last_inbound(
        self, organization_id: str, sender_id: str, recipient_hash: int
    ) -> "asyncio.Future[datetime | None]":
        """The moment of the last inbound message, None when there was none. Raises `Unavailable` under overload."""
        return self._look_ups.put((organization_id, sender_id, recipient_hash))

    async def _find(self, keys: Sequence[WindowKey]) -> list[datetime | None]:
        organizations, numbers, hashes = zip(*keys, strict=True)
        rows = await self._db.hot.fetch(SQL.last_inbound, list(organizations), list(numbers), list(hashes))
        found: dict[WindowKey, datetime] = {(row[0], row[1], row[2]): row[3] for row in rows}
        return [found.get(key) for key in keys]
