"""Rows on their way from one database into another: as the server writes them, a few pieces in memory."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import asyncpg

_PIECES: Final = 16  # of 64 KB and less that wait to be written


async def copy_rows(
    source: "asyncpg.Connection[asyncpg.Record]",
    query: str,
    target: "asyncpg.Connection[asyncpg.Record]",
    table: str,
    columns: Sequence[str],
    told: Callable[[int], None],
    *arguments: str,
) -> None:
    """Write what the query finds into the table, inside the transactions that are open.

    `told`: of rows, as they go; `arguments`: of the query.
    """
    pieces: asyncio.Queue[bytes | None] = asyncio.Queue(_PIECES)

    async def read() -> None:
        try:
            await source.copy_from_query(query, *arguments, output=pieces.put)
        except Exception:
            await pieces.put(None)  # and not of one that is cancelled: nobody takes from the queue then
            raise
        await pieces.put(None)

    async def written() -> AsyncIterator[bytes]:
        while (piece := await pieces.get()) is not None:
            told(piece.count(b"\n"))  # each row ends with one, and has none inside
            yield piece

    reading = asyncio.create_task(read())
    try:
        await target.copy_to_table(table, source=written(), columns=[name.strip('"') for name in columns])
        await reading
    except BaseException:
        reading.cancel()
        await asyncio.wait({reading})
        raise
