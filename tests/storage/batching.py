"""What tests of the batcher begin with: a run that waits at a gate, and a table with a row that breaks its check."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from recado.storage.core.connections.postgres import Database

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
INSERT = "insert into t (a) select unnest($1::integer[]) on conflict do nothing returning a"


class Recorder:
    """A `run` that notes its batches and waits at a gate, which stands open at first."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.arrived = asyncio.Condition()

    async def __call__(self, rows: Sequence[int]) -> list[int]:
        self.batches.append(list(rows))
        async with self.arrived:
            self.arrived.notify_all()
        await self.gate.wait()
        return [row * 10 for row in rows]

    async def batches_begun(self, number: int) -> None:
        async with self.arrived:
            await self.arrived.wait_for(lambda: len(self.batches) >= number)


async def make_table(database: Database) -> None:
    await database.execute("create table t (a integer primary key check (a <> 13))")


def inserter(database: Database) -> Any:
    async def insert(rows: Sequence[int]) -> list[int]:
        await database.hot.fetch(INSERT, list(rows))
        return list(rows)

    return insert


async def stored(database: Database) -> list[int]:
    return [row["a"] for row in await database.fetch("select a from t order by a")]
