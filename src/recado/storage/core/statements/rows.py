"""From rows of the database to the frozen records of the aggregates, and what a query may be run on.

A record takes the columns that it names and no other, so that a column added by a migration harms no reader.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from operator import attrgetter, itemgetter
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

in_order = attrgetter("id")
"""The order in which statements for many messages take their rows, so that no two of them wait for each other."""

COUNTED_TO = 10_000  # C5.1: beyond this many matches, a total says "at least"


class Executor(Protocol):
    """A connection in a transaction, or the database itself for a single statement."""

    async def fetch(self, query: str, /, *args: Any) -> Any: ...

    async def fetchrow(self, query: str, /, *args: Any) -> Any: ...

    async def fetchval(self, query: str, /, *args: Any) -> Any: ...

    async def execute(self, query: str, /, *args: Any) -> Any: ...


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """One page of a skip/limit list. `estimated`: `total` only says that there are more than 10,000 matches (C5.1).

    `more`: other records follow, on the page as well where it was ended early (`wide_rows`).
    """

    items: list[T]
    total: int
    estimated: bool
    more: bool = False


def page(items: list[T], counted: int, *, more: bool = False) -> Page[T]:
    """`counted`: the matches counted up to 10,001."""
    return Page(items, counted, estimated=counted > COUNTED_TO, more=more)


def reader(record: type[T], **convert: Callable[[Any], Any]) -> Callable[[Mapping[str, Any]], T]:
    """A function that makes one `record` of one row. `convert`: by column, applied to values that are not null.

    A field that `record` does not take (`init=False`) is no column.
    """
    described = [field for field in fields(record) if field.init]  # type: ignore[arg-type]
    names = [field.name for field in described]
    pick = itemgetter(*names)
    positions = [(names.index(name), function) for name, function in convert.items()]
    by_name = any(field.kw_only for field in described)

    def read(row: Mapping[str, Any]) -> T:
        values: list[Any] = list(pick(row))
        for position, function in positions:
            if values[position] is not None:
                values[position] = function(values[position])
        return record(**dict(zip(names, values, strict=True))) if by_name else record(*values)

    return read


def affected(status: str) -> int:
    """The number of rows in a command's completion tag, such as `UPDATE 3`."""
    return int(status.rsplit(" ", 1)[-1])


async def in_blocks(executor: Executor, statement: str, *arguments: Any, block: int) -> int:
    """Run a statement whose last argument bounds its rows until there are no more; answers how many there were."""
    total = 0
    while True:
        found = affected(await executor.execute(statement, *arguments, block))
        total += found
        if found < block:
            return total


def columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[list[Any]]:
    """Rows turned into the parallel arrays that `unnest` takes."""
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(width)]


def pack(values: Sequence[str | None]) -> str:
    """A column of texts as one text, which `unpack` reads in SQL: ids, enumerated texts, phones and JSON texts.

    None of those holds a control character; whatever may hold one travels as an array.
    """
    try:
        return "\x1f".join(values)  # type: ignore[arg-type] # most columns have no None: then nothing is looked at
    except TypeError:
        return "\x1f".join(["\x1e" if value is None else value for value in values])


def pack_some(values: Sequence[str | None]) -> str | None:
    """As `pack`, of a column that is usually empty: nothing at all when it is, which `unnest` reads as nulls."""
    return pack(values) if values.count(None) < len(values) else None


def pack_numbers(values: Iterable[int]) -> str:
    """A column of whole numbers as one text; `unpack(…)::bigint[]` in SQL."""
    return "\x1f".join(map(str, values))


def pack_moments(values: Iterable[datetime | None]) -> str:
    """A column of moments as microseconds since 1970; `unpack(…)::bigint[]`, each through `moment(…)`, in SQL."""
    return "\x1f".join(map(_moment_text, values))


@lru_cache(maxsize=4096)
def _moment_text(value: datetime | None) -> str:
    """Rows of a batch share most moments: what came in one millisecond, and what is scheduled together."""
    return "\x1e" if value is None else str((value - _EPOCH) // _MICROSECOND)


def array(values: list[T | None]) -> list[T | None] | None:
    """A column that is usually empty: no array at all when it is, which `unnest` reads as nulls."""
    if values and values[0] is not None:
        return values
    return None if values.count(None) == len(values) else values
