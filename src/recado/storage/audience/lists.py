"""Static lists (C7): their records, and changes of their members, each one transaction with exact counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

import orjson

from recado.domain.audience.members import MAX_LISTS, SAMPLE, Identifiers, Named
from recado.domain.core.errors import Problem
from recado.domain.core.ids import Identified
from recado.domain.core.names import name_key
from recado.storage.core.statements.rows import Executor, pack
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table, Unique


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticList(Identified):
    """One list. `size`: how many members it has now; their changes do not raise `revision` (C6.3.1)."""

    organization_id: str
    env: str
    id: str
    name: str
    description: str | None = None
    size: int = 0
    revision: int = 1
    updated_at: datetime


class MemberChange(StrEnum):
    """What a call does with those it names (C7.1). The values name statements."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"


@dataclass(frozen=True, slots=True)
class NotFound:
    """Of one kind of identifiers: how many no contact has, and a sample of at most 100."""

    count: int
    sample: list[str]


@dataclass(frozen=True, slots=True)
class Membership:
    """What became of a call (C7.2.3). `total`: members afterwards."""

    matched: int
    added: int
    removed: int
    total: int
    contact_ids: NotFound
    phones: NotFound
    external_ids: NotFound

    @property
    def not_found(self) -> int:
        return self.contact_ids.count + self.phones.count + self.external_ids.count


LISTS: Final = Table(
    "static_lists",
    StaticList,
    "list",
    own=load("lists"),
    derived={"name_key": lambda static_list: name_key(static_list.name)},
    unique=Unique(("name_key",), "LIST_NAME_TAKEN", "Another list has this name.", "listId"),
    limit=Limit(MAX_LISTS, "lists"),
)
SQL = LISTS.sql
get, get_locked, insert, save, delete = LISTS.get, LISTS.get_locked, LISTS.insert, LISTS.save, LISTS.delete


# Members ------------------------------------------------------------------------------------------------------------


async def change_members(
    connection: Executor, static_list: StaticList, change: MemberChange, named: Identifiers, now: datetime
) -> Membership:
    """Add, replace or remove those named, in the transaction that locked the list before (C7.2.5).

    Problem 422 `NO_MEMBER_MATCHED` when a replacement would leave nobody: the transaction must then be undone.
    """
    statement = "\n".join((SQL.resolved, getattr(SQL, change.value), SQL.outcome))
    await connection.execute(SQL.in_bulk)
    row = await connection.fetchrow(
        statement,
        static_list.organization_id,
        static_list.env,
        pack(named.contact_ids.keys),
        pack(named.phones.keys),
        orjson.dumps(named.external_ids.keys).decode(),  # an array would be written text by text, for 50 ms
        static_list.id,
        now,
        SAMPLE,
    )
    if change is MemberChange.REPLACE and not row["matched"]:
        raise nobody_matched()
    return Membership(
        row["matched"],
        row["added"],
        row["removed"],
        row["total"],
        _missing(named.contact_ids, **row["kinds"]["contact_ids"]),
        _missing(named.phones, **row["kinds"]["phones"]),
        _missing(named.external_ids, **row["kinds"]["external_ids"]),
    )


def nobody_matched() -> Problem:
    """422: no contact has any of the identifiers that a list is to consist of (C7.2.4)."""
    return Problem("NO_MEMBER_MATCHED", "No contact matched; to empty a list, remove its members.")


def _missing(named: Named, *, found: int, missing: Sequence[int]) -> NotFound:
    sample = [*named.malformed[:SAMPLE], *(named.given[place - 1] for place in missing)][:SAMPLE]
    return NotFound(len(named.keys) - found + len(named.malformed), sample)


async def join(
    connection: Executor, organization_id: str, env: str, list_id: str, contact_ids: Sequence[str], now: datetime
) -> int | None:
    """Make contacts members, in a transaction; answers the list's size, None when there is no such list.

    Contacts that this transaction has just made, or has locked, cannot go away meanwhile.
    """
    if await get_locked(connection, organization_id, env, list_id) is None:
        return None
    size: int = await connection.fetchval(SQL.join, organization_id, env, list_id, list(contact_ids), now)
    return size


async def leave(connection: Executor, organization_id: str, env: str, contact_ids: Sequence[str]) -> None:
    """Contacts that this transaction has removed leave every list, and the lists count it (C12.6)."""
    found = [row["id"] for row in await connection.fetch(SQL.lock_all, organization_id, env)]
    if found:
        await connection.execute(SQL.leave, organization_id, env, found, list(contact_ids))
