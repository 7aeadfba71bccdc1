"""On which channels contacts cannot be reached: set by a provider's final word, cleared by a delivery (C13.2)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from recado.domain.channels.policies import POLICIES
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("reachability")

Environment = tuple[str, str]
"""Organization, environment."""

Told = tuple[str, str, str]
"""A message that told something: organization, environment, id."""


_MARK_AT_ONCE, _CLEAR_AT_ONCE = (sql.replace("for update", "for update skip locked") for sql in (SQL.mark, SQL.clear))


@dataclass(frozen=True, slots=True)
class Noted:
    """`there`: where contacts were found. `left`: messages whose contact somebody else was changing at that moment."""

    there: frozenset[Environment]
    left: tuple[Told, ...]


async def mark(executor: Executor, failed: Sequence[Told], channel: str, *, waiting: bool = True) -> Noted:
    """Mark the recipients of messages that failed because nobody is there.

    `waiting`: for those who are changing a contact; in a transaction that has locked messages it must not.
    """
    sql = SQL.mark if waiting else _MARK_AT_ONCE
    codes = sorted(POLICIES[channel].nobody_there)
    return _noted(await executor.fetch(sql, *columns(list(failed), 3), channel, codes))


async def clear(executor: Executor, reached: Sequence[Told], channel: str, *, waiting: bool = True) -> Noted:
    """Take the mark from the recipients of messages that arrived."""
    sql = SQL.clear if waiting else _CLEAR_AT_ONCE
    return _noted(await executor.fetch(sql, *columns(list(reached), 3), channel))


async def with_marks(executor: Executor, environments: Collection[Environment]) -> set[Environment]:
    """Those of these in which anybody is marked."""
    rows = await executor.fetch(SQL.with_marks, *columns(list(environments), 2))
    return {(row["organization_id"], row["env"]) for row in rows}


def _noted(rows: Sequence[Any]) -> Noted:
    return Noted(
        frozenset((row["organization_id"], row["env"]) for row in rows),
        tuple((row["organization_id"], row["env"], row["message_id"]) for row in rows if not row["done"]),
    )
