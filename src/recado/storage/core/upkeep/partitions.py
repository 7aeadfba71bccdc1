"""Monthly partitions of `messages`: a month is a range of ids (C2.1), and its table is made before it begins.

Called at the start of the program, once a day, and by a batch that met a row without a partition.
"""

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import asyncpg

from recado.domain.core.clock import Clock
from recado.domain.core.ids import MESSAGE, lowest_id
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor

_LOCK = int.from_bytes(hashlib.sha256(b"recado partitions").digest()[:8], "big", signed=True)
# Rows are updated three or four times soon after they were written, often all rows of a page in one transaction: half a
# page of room keeps those updates heap-only, and vacuum returns the room afterwards.
_FILLFACTOR = 50


async def ensure_partitions(database: Database, now: datetime, months_ahead: int = 2) -> list[str]:
    """Makes the partitions from last month to `months_ahead` months after this one; answers the names of the new ones.

    A table is made apart and attached, which blocks neither readers nor writers of the other months. From now on
    statements may name these (`months.py`).
    """
    wanted = [partition(now, offset) for offset in range(-1, months_ahead + 1)]
    async with database.transaction() as connection:
        made = await make_partitions(connection, wanted)
    database.months.know(wanted)
    return made


async def make_partitions(connection: Executor, wanted: Sequence[tuple[str, str, str]]) -> list[str]:
    """Makes those that are missing, in the transaction of the connection; answers their names."""
    made: list[str] = []
    await connection.execute("select pg_advisory_xact_lock($1)", _LOCK)
    for name, low, high in wanted:
        if not await connection.fetchval("select to_regclass($1) is not null", name):
            await _make(connection, name, low, high)
            made.append(name)
    return made


def months(first: datetime, last: datetime) -> list[tuple[str, str, str]]:
    """The partitions from the month of one moment to that of another, as `partition` has them."""
    count = (last.year - first.year) * 12 + last.month - first.month
    return [partition(first, offset) for offset in range(count + 1)]


def partition(now: datetime, offset: int = 0) -> tuple[str, str, str]:
    """Table name and id bounds (low included, high not) of the month `offset` months after that of `now`, in UTC."""
    start, end = _month(now, offset), _month(now, offset + 1)
    return f"messages_{start:%Y_%m}", lowest_id(MESSAGE, start), lowest_id(MESSAGE, end)


def bounds_of(name: str) -> tuple[str, str]:
    """The id bounds (low included, high not) of the month whose table has this name."""
    _, low, high = partition(datetime.strptime(name, "messages_%Y_%m").replace(tzinfo=UTC))
    return low, high


def partition_repair(database: Database, clock: Clock) -> Callable[[Exception], Awaitable[bool]]:
    """A batcher's `repair`: when a row found no partition, or one that is gone, makes what is missing and asks for
    another try."""

    async def repair(error: Exception) -> bool:
        if not lacks_partition(error) and not isinstance(error, asyncpg.UndefinedTableError):
            return False
        await ensure_partitions(database, clock.now())
        return True  # also when another batch made it meanwhile; a row of a month far away fails again, by itself

    return repair


def lacks_partition(error: Exception) -> bool:
    """Whether a row belongs to no partition: 23514 like a broken check, but without a constraint's name."""
    return isinstance(error, asyncpg.CheckViolationError) and error.constraint_name is None


async def _make(connection: Executor, name: str, low: str, high: str) -> None:
    # Names and bounds come from the calendar and the id alphabet: nothing here needs quoting.
    await connection.execute(
        f"create table {name} (like messages including defaults including constraints including storage"
        f" including compression including generated) with (fillfactor = {_FILLFACTOR})"
    )
    await connection.execute(f"alter table messages attach partition {name} for values from ('{low}') to ('{high}')")


def _month(now: datetime, offset: int) -> datetime:
    utc = now.astimezone(UTC)
    month = utc.year * 12 + utc.month - 1 + offset
    return datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC)
