"""How many executions of journeys there are by their states, without tests: `execucoes` of each read (C9.2).

Each commit adds rows of its own, and waits for nobody. A job folds them into one row for each journey.
"""

from collections.abc import Sequence
from typing import Final

from recado.domain.journeys.execution import ExecutionStatus
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL: Final = load("execution_counts")

FOLD_EVERY: Final = 5.0  # seconds
"""How long changes are kept one by one: a read sums up those of a journey."""

_BLOCK: Final = 5_000

JourneyKey = tuple[str, str, str]
"""Organization, environment, journey."""
Move = tuple[JourneyKey, ExecutionStatus | None, ExecutionStatus]
"""An execution of a journey came from one state to another; None: it is new."""


async def add(connection: Executor, moves: Sequence[Move]) -> None:
    """Count moves of executions, in the transaction that makes them."""
    changes: dict[JourneyKey, dict[ExecutionStatus, int]] = {}
    for journey, before, after in moves:
        change = changes.setdefault(journey, dict.fromkeys(ExecutionStatus, 0))
        change[after] += 1
        if before is not None:
            change[before] -= 1
    if changes:
        await connection.execute(SQL.add, *columns([(*key, *changes[key].values()) for key in changes], 7))


async def fold(executor: Executor, *, block: int = _BLOCK) -> None:
    """Let what commits have added become part of the counts; all of it, in commits of `block` rows."""
    while await executor.fetchval(SQL.fold, block) == block:
        pass


async def of_journeys(
    executor: Executor, organization_id: str, env: str, journey_ids: Sequence[str]
) -> dict[str, dict[str, int]]:
    """By journey, how many of its executions are in each state now; those that never had any are missing."""
    rows = await executor.fetch(SQL.counts, organization_id, env, list(journey_ids))
    return {row["journey_id"]: {status.value: row[status.value] for status in ExecutionStatus} for row in rows}
