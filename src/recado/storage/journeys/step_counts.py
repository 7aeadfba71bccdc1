"""Numbers of the steps of journeys, without tests (C9.10): each commit adds rows, and a job folds them.

As with the counts of executions, nobody waits for another who counts in the same journey.
"""

from collections.abc import Mapping
from typing import Final

import orjson

from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.journeys.execution_counts import JourneyKey

SQL: Final = load("step_counts")

_BLOCK: Final = 1_000

StepChanges = Mapping[JourneyKey, Mapping[tuple[str, str], int]]
"""By journey: by step, and what is counted of it (`step_numbers.py`), by how much that changes."""


async def add(connection: Executor, changes: StepChanges) -> None:
    """Count, in the transaction in which it happens."""
    rows = []
    for journey, counted in changes.items():
        given = [(*key, change) for key, change in counted.items() if change]
        if given:
            rows.append((*journey, orjson.dumps(given).decode()))
    if rows:
        await connection.execute(SQL.add, *columns(rows, 4))


async def fold(executor: Executor, *, block: int = _BLOCK) -> None:
    """Let what commits have added become part of the counts; all of it, in commits of `block` rows."""
    while await executor.fetchval(SQL.fold, block) == block:
        pass


async def of_journey(executor: Executor, journey: JourneyKey) -> dict[str, dict[str, int]]:
    """By step, what is counted of it; a step that nobody came to is missing."""
    found: dict[str, dict[str, int]] = {}
    for row in await executor.fetch(SQL.counts, *journey):
        found.setdefault(row["step_id"], {})[row["counted"]] = row["total"]
    return found
