"""Epochs: which process owns the numbers, which has some beside it, and which did before (C14.5.6, C14.5.7)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from recado.domain.dispatch.leases import TTL, closed_at
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("epochs")


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


async def opened_beside(executor: Executor) -> list[tuple[int, datetime]]:
    """Epoch and moment of each dead process beside an owner whose file of begun calls nobody has sorted out."""
    return [(row["epoch"], row["taken_at"]) for row in await executor.fetch(SQL.opened_beside)]


async def note_sorted_out(executor: Executor, epoch: int) -> None:
    """What the process of this epoch had in hand is sorted out: its file is needed no more."""
    await executor.execute(SQL.note_sorted_out, epoch)


async def take_epoch(
    executor: Executor,
    now: datetime,
    *,
    host: str | None = None,
    pid: int | None = None,
    sessions: str | None = None,
    dead_at: Mapping[int, datetime] | None = None,
) -> int:
    """Become the one process that may claim; earlier owners can claim nothing from now on.

    `dead_at`: of epochs whose processes are certainly no more, since when. In a transaction where others may take, too.
    """
    dead = dead_at or {}
    closed = {
        row["epoch"]: closed_at(row["lease_until"], free_at=row["free_at"], dead_at=dead.get(row["epoch"]))
        for row in await executor.fetch(SQL.standing)
    }
    epoch: int = await executor.fetchval(
        SQL.take_epoch, now, host, pid, sessions, TTL, list(closed), list(closed.values())
    )
    return epoch


async def join_epoch(executor: Executor, owner: int, pid: int, now: datetime) -> int | None:
    """Begin an epoch beside the owner's; None: that is over. While nobody else takes one (ownership.sql: one_takes)."""
    epoch: int | None = await executor.fetchval(SQL.join_epoch, owner, pid, now)
    return epoch


async def lives(executor: Executor, epoch: int) -> bool:
    """Whether the process of this epoch may still claim."""
    alive: bool = await executor.fetchval(SQL.lives, epoch)
    return alive


async def current_epoch(executor: Executor) -> int:
    """The epoch of the process that owns the numbers now."""
    epoch: int = await executor.fetchval(SQL.current_epoch)
    return epoch
