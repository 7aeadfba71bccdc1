"""Takes what is due block by block, so that one row that cannot be taken holds up none of the others."""

from collections.abc import Awaitable, Callable

from recado.storage.core.connections.failures import worth_repeating
from recado.storage.core.connections.postgres import Database


async def take_due(
    db: Database, most: int, take: Callable[[int], Awaitable[int]], put_off: Callable[[Exception], Awaitable[None]]
) -> None:
    """Take all. Raises what fails while the database is away, or takes no writes: then no row is at fault.

    `take`: a block of so many at most, the first ones; answers how many there were. After a failure the blocks are ever
    smaller. `put_off`: has the first one, which fails alone, wait until later.
    """
    block = most
    while True:
        try:
            if await take(block) < block:
                return
        except Exception as error:
            if worth_repeating(error):
                if db.refuses_writes:
                    raise
                await db.fetchval("select 1")  # raises while the database is away
            if block > 1:
                block = max(1, block // 10)
                continue
            await put_off(error)
            block = most
