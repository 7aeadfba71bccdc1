"""Claims that nobody will answer for (C29.2, C32), found by the notes that each statement of claims leaves."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from recado.domain.dispatch.retry import RETRY_DELAYS
from recado.storage.core.statements.rows import Executor, affected, columns
from recado.storage.core.statements.sql import load

SQL = load("rescue")


async def send_again(
    executor: Executor,
    channel: str,
    env: str,
    epoch: int,
    claimed_before: datetime,
    now: datetime,
    *,
    of_dead: bool,
) -> int:
    """Queue for its repeat what a call of this epoch that never came back left, and `of_dead` ones; answers how many.

    Only for a channel and environment whose adapter declares itself idempotent. The attempt counts.
    """
    delays = list(RETRY_DELAYS)
    return len(await executor.fetch(SQL.send_again, env, epoch, claimed_before, now, delays, channel, of_dead))


async def in_hand(executor: Executor, epoch: int) -> list[Mapping[str, Any]]:
    """What the owner of this epoch had claimed and not settled: keys and `claimed_at`."""
    rows: list[Mapping[str, Any]] = await executor.fetch(SQL.in_hand, epoch)
    return rows


async def departed(executor: Executor, epoch: int, calls: Sequence[tuple[str, str, datetime]]) -> None:
    """Record when calls of this epoch's owner, by organization and message, had begun."""
    await executor.execute(SQL.departed, epoch, *columns(calls, 3))


async def rescue(executor: Executor, epoch: int, claimed_before: datetime, *, of_dead: bool) -> int:
    """Mark uncertain what a call of this epoch that never came back left, and `of_dead` ones; answers how many."""
    return len(await executor.fetch(SQL.rescue, epoch, claimed_before, of_dead))


async def forget_settled(executor: Executor, epoch: int, noted_before: datetime) -> int:
    """Remove the notes of this epoch's claims of which nothing is under way any more; answers how many."""
    return affected(await executor.execute(SQL.forget_settled, epoch, noted_before))
