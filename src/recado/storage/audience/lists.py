"""Static lists (C7): their records, and changes of their members, each one transaction with exact counts."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import orjson

from recado.domain.audience.members import MAX_LISTS, SAMPLE, Identifiers, Named
from recado.domain.core.errors import Problem, conflict
from recado.domain.core.ids import created_at
from recado.domain.core.names import name_key
from recado.storage.core.rows import Executor, Page, pack, page, reader
from recado.storage.core.sql import load

SQL = load("lists")


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticList:
    """One list. `size`: how many members it has now; their changes do not raise `revision` (C6.3.1)."""

    organization_id: str
    env: str
    id: str
    name: str
    description: str | None = None
    size: int = 0
    revision: int = 1
    updated_at: datetime

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)


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


read = reader(StaticList)


async def insert(connection: Executor, new: StaticList) -> StaticList:
    """Store a new list, in a transaction; 409 `LIMIT_REACHED` beyond 1,000 (C31), `LIST_NAME_TAKEN` for its name."""
    await connection.execute(SQL.lock_organization, new.organization_id)
    if await connection.fetchval(SQL.count_of_environment, new.organization_id, new.env) >= MAX_LISTS:
        raise conflict("LIMIT_REACHED", f"An environment holds at most {MAX_LISTS:,} lists.", limit=MAX_LISTS)
    row = await connection.fetchrow(
        SQL.insert,
        new.organization_id,
        new.env,
        new.id,
        new.name,
        name_key(new.name),
        new.description,
        new.updated_at,
    )
    if row is None:
        holder = await connection.fetchval(SQL.named, new.organization_id, new.env, name_key(new.name))
        raise name_taken(holder)
    return read(row)


def name_taken(holder: str | None) -> Problem:
    """409: another list of the environment has the name. `holder`: its id; None: it is gone meanwhile."""
    return Problem("LIST_NAME_TAKEN", "Another list has this name.", meta={"listId": holder})


async def get(executor: Executor, organization_id: str, env: str, list_id: str) -> StaticList | None:
    """The list, when it exists in this environment."""
    row = await executor.fetchrow(SQL.by_id, organization_id, env, list_id)
    return read(row) if row else None


async def get_locked(connection: Executor, organization_id: str, env: str, list_id: str) -> StaticList | None:
    """As `get`, and nobody else changes the list or its members until this transaction ends."""
    row = await connection.fetchrow(SQL.by_id_locked, organization_id, env, list_id)
    return read(row) if row else None


async def list_page(
    executor: Executor, organization_id: str, env: str, *, q: str | None = None, limit: int, skip: int
) -> Page[StaticList]:
    """Newest first; `q`: a part of the name."""
    filters = (organization_id, env, None if q is None else name_key(q))
    rows = await executor.fetch(SQL.page, *filters, limit, skip)
    return page([read(row) for row in rows], await executor.fetchval(SQL.page_count, *filters))


async def save(connection: Executor, before: StaticList, after: StaticList, now: datetime) -> StaticList:
    """Write name and description where they differ, and raise the revision; `before` is locked by this transaction."""
    if after == before:
        return before
    if name_key(after.name) != name_key(before.name):
        await connection.execute(SQL.lock_organization, before.organization_id)
        holder = await connection.fetchval(SQL.named, before.organization_id, before.env, name_key(after.name))
        if holder is not None:
            raise name_taken(holder)
    row = await connection.fetchrow(
        SQL.save,
        before.organization_id,
        before.env,
        before.id,
        before.revision,
        after.name,
        name_key(after.name),
        after.description,
        now,
    )
    return read(row)


async def delete(connection: Executor, static_list: StaticList) -> None:
    """Remove the list and its memberships; the contacts stay. Its row is locked by this transaction."""
    await connection.execute(SQL.delete, static_list.organization_id, static_list.env, static_list.id)


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
