"""Which binaries are in the storage, and until when: noted before they are written, so that none is left behind."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from recado.storage.blobs.blobs import end_of_month
from recado.storage.core.statements.rows import Executor, affected
from recado.storage.core.statements.sql import load

SQL = load("kept_blobs")

UNFINISHED: Final = timedelta(hours=1)
"""Until a binary is deleted whose record was never stored: longer than any takes to be written."""

WRITTEN_AND_GONE: Final = datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)
"""When one is deleted that was written to its end, and that nobody keeps any more: whatever the clock says."""


class KeptBlob(NamedTuple):
    organization_id: str
    env: str
    key: str


async def note(executor: Executor, blob: KeptBlob, now: datetime) -> datetime:
    """Before it is written; until when it may stay without a record."""
    until = now + UNFINISHED
    await executor.execute(SQL.note, *blob, until)
    return until


async def abandon(executor: Executor, blob: KeptBlob, noted: datetime) -> bool:
    """It was written to its end, and is to be deleted, unless it was kept after all: a commit may have come through
    whose answer was lost.
    """
    return affected(await executor.execute(SQL.abandon, *blob, noted, WRITTEN_AND_GONE)) > 0


async def keep(executor: Executor, blob: KeptBlob, until: datetime) -> bool:
    """It is written: keep it until then. False: it is not noted here any more, as its organization was moved."""
    return affected(await executor.execute(SQL.keep, *blob, until)) > 0


async def due(executor: Executor, now: datetime, limit: int) -> Sequence[tuple[KeptBlob, bool]]:
    """What is to be deleted, each with whether it is known that it was written to its end."""
    rows = await executor.fetch(SQL.due, now, limit)
    return [(KeptBlob(*blob), _was_written(blob[-1], delete_at)) for *blob, delete_at in rows]


def _was_written(key: str, delete_at: datetime) -> bool:
    """Whoever is only noted goes an hour after the month in its key at the latest. What is kept stays for longer.

    One of the first of a month goes in the same one, and no time says so.
    """
    return delete_at == WRITTEN_AND_GONE or delete_at - UNFINISHED >= end_of_month(key)


async def forget(executor: Executor, blob: KeptBlob, now: datetime) -> None:
    """It is deleted."""
    await executor.execute(SQL.forget, *blob, now)
