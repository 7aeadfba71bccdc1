"""Removes push messages with their devices' outcomes after 24 months, and what they showed after 12 (C32), in blocks.

Only those that are over: nobody moves such a message any more, so that nobody waits for this. A round that was broken
off leaves a message with fewer devices, which no list shows, and the next one goes on with it.
"""

from datetime import datetime
from typing import Final

from recado.domain.core.ids import PUSH_MESSAGE, lowest_id
from recado.domain.core.retention import CONTENT_MONTHS, MESSAGES_MONTHS, months_before
from recado.storage.core.connections.pool import Pool
from recado.storage.core.statements.rows import in_blocks
from recado.storage.push.messages import SQL

BLOCK: Final = 2_000
_DEVICES_OF_A_BLOCK: Final = 100
"""A row of `push_blocks` is as long as so many others."""


async def clear_contents(database: Pool, organization_id: str, env: str, now: datetime, *, block: int = BLOCK) -> None:
    """Take title, text, links and data from messages of more than 12 months."""
    before = lowest_id(PUSH_MESSAGE, months_before(now, CONTENT_MONTHS))
    after = ""
    while last := await database.fetchval(SQL.clear_content, organization_id, env, after, before, block):
        after = last


async def purge(database: Pool, organization_id: str, env: str, now: datetime, *, block: int = BLOCK) -> None:
    """Remove messages of more than 24 months: first what became of their devices, then their audience, then they."""
    before = lowest_id(PUSH_MESSAGE, months_before(now, MESSAGES_MONTHS))
    after = ""
    while found := await database.fetch(SQL.past, organization_id, env, after, before, block):
        for row in found:
            after = row["id"]
            await in_blocks(database, SQL.forget_dispatches, organization_id, env, after, block=block)
            blocks = max(block // _DEVICES_OF_A_BLOCK, 1)
            await in_blocks(database, SQL.forget_blocks, organization_id, env, after, block=blocks)
            await database.execute(SQL.forget, organization_id, env, after)
