"""Segments (C13): their records; what their filters find is in `segment_evaluation.py`.

`revision` rises with what a caller changes, not with the size.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from recado.domain.audience.segment import MAX_SEGMENTS, Node
from recado.domain.audience.segment_reading import tree_of
from recado.domain.core.ids import Identified
from recado.domain.core.names import name_key
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import fragments
from recado.storage.core.statements.tables import Limit, Table, Unique

REFRESH_EVERY: Final = timedelta(hours=1)  # C32


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment(Identified):
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
    def tree(self) -> Node:
        """What matches."""
        return tree_of(list(self.filters), self.filter_tree)


SEGMENTS: Final = Table(
    "segments",
    Segment,
    "segment",
    own=fragments("segments"),
    convert={"filters": tuple},
    derived={"name_key": lambda segment: name_key(segment.name)},
    unique=Unique(("name_key",), "SEGMENT_NAME_TAKEN", "Another segment has this name.", "segmentId"),
    limit=Limit(MAX_SEGMENTS, "segments"),
    wide=("filters", "filter_tree"),
)
SQL = SEGMENTS.sql
get, insert, list_page = SEGMENTS.get, SEGMENTS.insert, SEGMENTS.list_page


# Sizes --------------------------------------------------------------------------------------------------------------


async def claim_due(executor: Executor, now: datetime, limit: int, *, without: Collection[str] = ()) -> list[Segment]:
    """Segments whose size is an hour old, one of an organization; nobody else counts them for another hour.

    `without`: of which organizations none.
    """
    rows = await executor.fetch(SQL.claim_due, now, now + REFRESH_EVERY, limit, list(without))
    return [SEGMENTS.read(row) for row in rows]


async def note_size(executor: Executor, segment: Segment, size: int, at: datetime) -> None:
    """Write what was counted, unless the segment was changed meanwhile."""
    key = (segment.organization_id, segment.env, segment.id)
    await executor.execute(SQL.note_size, *key, segment.revision, size, at, at + REFRESH_EVERY)
