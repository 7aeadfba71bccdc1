"""Epochs: which process owns the numbers, and which did before (C14.5.6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.dispatch.leases import TTL
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("epochs")

FENCE = 0x7266
"""Of the lock, with the epoch, that claims share until they are committed: 29286 in the statements that claim."""


@dataclass(frozen=True, slots=True)
class TakenEpoch:
    """An ownership: its epoch, and the moment at which it was taken.

    `opens_at`: monotonic moment from which messages may depart. `opened_before`: epoch and moment of the last owner
    that began a file of begun calls; None: there is none.
    """

    epoch: int
    at: datetime
    opens_at: float
    opened_before: tuple[int, datetime] | None


async def opened(executor: Executor, epoch: int) -> tuple[int, datetime] | None:
    """Epoch and moment of the last owner before this one that could claim: they name its file of begun calls."""
    row = await executor.fetchrow(SQL.opened, epoch)
    return None if row is None else (row["epoch"], row["taken_at"])


async def note_opened(executor: Executor, epoch: int) -> None:
    """The owner of this epoch begins its file now: what earlier ones had in hand is sorted out."""
    await executor.execute(SQL.note_opened, epoch)


async def take_epoch(
    executor: Executor,
    now: datetime,
    *,
    host: str | None = None,
    pid: int | None = None,
    sessions: str | None = None,
    dead: Sequence[int] = (),
) -> int:
    """Become the one process that may claim; earlier owners can claim nothing from now on.

    `dead`: the epochs whose processes are certainly no more.
    """
    epoch: int = await executor.fetchval(SQL.take_epoch, now, host, pid, sessions, TTL, list(dead))
    return epoch


async def current_epoch(executor: Executor) -> int:
    """The epoch of the process that owns the numbers now."""
    epoch: int = await executor.fetchval(SQL.current_epoch)
    return epoch
