"""Domains that we told a provider of e-mail: noted before that is done, and taken back with their last sender (C10.4).

A note is written first, so that what a lost answer or a crash leaves at the provider is taken back, too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from recado.domain.email.sender import parents_of
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import lock_organization

SQL = load("email_identities")

CALL_WITHIN: Final = timedelta(minutes=1)  # no call to the provider lasts longer


@dataclass(frozen=True, slots=True)
class Note:
    """`is_new`: the domain was not noted before."""

    id: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class IdentityRemoval:
    """A domain that nobody sends from any more."""

    id: int
    domain: str
    organization_id: str


async def told_since(connection: Executor, organization_id: str, since: datetime) -> tuple[int, datetime | None]:
    """How many domains an organization had told after a moment, and when the first of them; it is held, so that it
    tells one at a time."""
    await lock_organization(connection, organization_id)
    row = await connection.fetchrow(SQL.told_since, organization_id, since)
    return row["told"], row["first"]


async def note(connection: Executor, place: str, domain: str, organization_id: str, now: datetime) -> Note | None:
    """Note that the provider is told a domain. None: another caller may be telling it, or it is taken back now."""
    row = await connection.fetchrow(SQL.note, place, domain, organization_id, now, now - CALL_WITHIN)
    return None if row is None else Note(row["id"], row["is_new"])


async def withdraw(executor: Executor, note: Note) -> None:
    """The provider has nothing of us."""
    await executor.execute(SQL.withdraw, note.id)


async def is_going(connection: Executor, place: str, domains: Sequence[str], now: datetime, *, since: datetime) -> bool:
    """Whether one of these domains is taken back at the moment, or was after `since`. None is, from now on, until this
    transaction ends."""
    return any(row["going"] for row in await connection.fetch(SQL.held, place, list(domains), now, since))


async def forsake(connection: Executor, domain: str, now: datetime) -> None:
    """A sender of this domain is gone: it may have been the last of it, and of each above it."""
    await connection.execute(SQL.forsake, [domain, *parents_of(domain)], now)


async def begin_removals(
    database: Database, place: str, now: datetime, *, again: timedelta, limit: int
) -> tuple[list[IdentityRemoval], bool]:
    """Those to take back now, due again after `again` should it come to nothing, and whether there may be more.

    A domain that a sender of live leaves from, whoever that belongs to, or from one under it, stays. The rows are
    locked before the senders are looked at: so none that is made meanwhile is missed.
    """
    async with database.transaction() as connection:
        due = [row["id"] for row in await connection.fetch(SQL.lock_due, place, now, limit)]
        rows = await connection.fetch(SQL.begin_removal, due, now + again, now + CALL_WITHIN) if due else []
    removals = [IdentityRemoval(row["id"], row["domain"], row["organization_id"]) for row in rows if not row["used"]]
    return removals, len(due) == limit


async def removed(executor: Executor, removal: IdentityRemoval, now: datetime) -> None:
    """The provider has it no more."""
    await executor.execute(SQL.removed, removal.id, now)


async def not_removed(executor: Executor, removal: IdentityRemoval) -> None:
    """The provider said no: it is tried again when it is due."""
    await executor.execute(SQL.not_removed, removal.id)


async def forget(executor: Executor, before: datetime) -> None:
    """Those that were taken back before a moment."""
    await executor.execute(SQL.forget, before)
