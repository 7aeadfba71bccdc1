"""Segments (C13): their records; what their filters find is in `segment_evaluation.py`.

`revision` rises with what a caller changes, not with the size.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.audience.segment import MAX_SEGMENTS, Node
from recado.domain.audience.segment_reading import tree_of
from recado.domain.core.errors import Problem, conflict
from recado.domain.core.ids import created_at
from recado.domain.core.names import name_key
from recado.storage.audience.segment_query import SQL
from recado.storage.core.rows import Executor, Page, page, reader
from recado.storage.core.wide_rows import bounded, rows_of

REFRESH_EVERY: Final = timedelta(hours=1)  # C32
PAGE: Final = bounded(SQL.page, ("filters", "filter_tree"), "p.id desc")


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment. `filter_tree`: when a tree was given; `size`: matches at `size_at`."""

    organization_id: str
    env: str
    id: str
    name: str
    description: str | None = None
    filters: Sequence[Mapping[str, Any]] = ()
    filter_tree: Mapping[str, Any] | None = None
    size: int | None = None
    size_at: datetime | None = None
    due_at: datetime
    created_by_id: str | None = None
    revision: int = 1
    updated_at: datetime

    @property
    def created_at(self) -> datetime:
        return created_at(self.id)

    @property
    def tree(self) -> Node:
        """What matches."""
        return tree_of(list(self.filters), self.filter_tree)


read = reader(Segment, filters=tuple)


async def insert(connection: Executor, new: Segment) -> Segment:
    """Store a new segment, in a transaction; 409 `LIMIT_REACHED` beyond 500 (C31), `SEGMENT_NAME_TAKEN`."""
    await connection.execute(SQL.lock_organization, new.organization_id)
    if await connection.fetchval(SQL.count_of_environment, new.organization_id, new.env) >= MAX_SEGMENTS:
        raise conflict("LIMIT_REACHED", f"An environment holds at most {MAX_SEGMENTS} segments.", limit=MAX_SEGMENTS)
    row = await connection.fetchrow(
        SQL.insert,
        new.organization_id,
        new.env,
        new.id,
        new.name,
        name_key(new.name),
        new.description,
        list(new.filters),
        new.filter_tree,
        new.size,
        new.size_at,
        new.due_at,
        new.created_by_id,
        new.updated_at,
    )
    if row is None:
        holder = await connection.fetchval(SQL.named, new.organization_id, new.env, name_key(new.name))
        raise name_taken(holder)
    return read(row)


def name_taken(holder: str | None) -> Problem:
    """409: another segment of the environment has the name. `holder`: its id; None: it is gone meanwhile."""
    return Problem("SEGMENT_NAME_TAKEN", "Another segment has this name.", meta={"segmentId": holder})


async def get(executor: Executor, organization_id: str, env: str, segment_id: str) -> Segment | None:
    """The segment, when it exists in this environment."""
    row = await executor.fetchrow(SQL.by_id, organization_id, env, segment_id)
    return read(row) if row else None


async def get_locked(connection: Executor, organization_id: str, env: str, segment_id: str) -> Segment | None:
    """As `get`, and nobody else changes the row until this transaction ends."""
    row = await connection.fetchrow(SQL.by_id_locked, organization_id, env, segment_id)
    return read(row) if row else None


async def list_page(
    executor: Executor,
    organization_id: str,
    env: str,
    *,
    q: str | None = None,
    limit: int,
    skip: int = 0,
    before_id: str | None = None,
) -> Page[Segment]:
    """Newest first, what is read of the page at once; `q`: a part of the name.

    `before_id`: only older ones, and nobody counts them.
    """
    filters = (organization_id, env, None if q is None else name_key(q))
    rows = await executor.fetch(PAGE, *filters, before_id, limit, skip)
    total = 0 if before_id else await executor.fetchval(SQL.page_count, *filters)
    return page([read(row) for row in rows], total, more=rows_of(rows) > len(rows))


async def save(connection: Executor, before: Segment, after: Segment, now: datetime) -> Segment:
    """Write what differs, and raise the revision; the row of `before` is locked by this transaction."""
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
        list(after.filters),
        after.filter_tree,
        after.size,
        after.size_at,
        after.due_at,
        now,
    )
    return read(row)


async def delete(connection: Executor, segment: Segment) -> None:
    """Remove the segment, whose row is locked by this transaction."""
    await connection.execute(SQL.delete, segment.organization_id, segment.env, segment.id)


# Sizes --------------------------------------------------------------------------------------------------------------


async def claim_due(executor: Executor, now: datetime, limit: int, *, without: Collection[str] = ()) -> list[Segment]:
    """Segments whose size is an hour old, one of an organization; nobody else counts them for another hour.

    `without`: of which organizations none.
    """
    rows = await executor.fetch(SQL.claim_due, now, now + REFRESH_EVERY, limit, list(without))
    return [read(row) for row in rows]


async def note_size(executor: Executor, segment: Segment, size: int, at: datetime) -> None:
    """Write what was counted, unless the segment was changed meanwhile."""
    key = (segment.organization_id, segment.env, segment.id)
    await executor.execute(SQL.note_size, *key, segment.revision, size, at, at + REFRESH_EVERY)
