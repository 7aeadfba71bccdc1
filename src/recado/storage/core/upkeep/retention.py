"""Removing what is past its time, in blocks: messages and their content, what belongs to them, the audit (C32).

A month of messages is one table, and goes as a whole. What only counts for a day is walked through along its key: an
index by age would cost each send more than the walk costs a day.
"""

from contextlib import suppress
from datetime import datetime

import asyncpg

from recado.domain.core.ids import AUDIT, MESSAGE, created_at, lowest_id
from recado.domain.core.retention import AUDIT_MONTHS, CONTENT_MONTHS, MESSAGES_MONTHS, REACHED, WINDOWS, months_before
from recado.storage.core.connections.pool import Pool
from recado.storage.core.statements.rows import in_blocks
from recado.storage.core.statements.sql import load
from recado.storage.core.upkeep.partitions import bounds_of

SQL = load("retention")

BLOCK = 2_000
DETACH_LIMIT = 600.0  # seconds that the end of older transactions is waited for; the next round goes on


async def last_confirmation(database: Pool, before: datetime) -> datetime | None:
    """The last moment before `before` at which a number sent, the audit noted something, or a provider called back."""
    (found,) = await database.fetch(SQL.last_confirmation, before, lowest_id(AUDIT, before))
    noted = [] if found["audit_id"] is None else [created_at(found["audit_id"])]
    return max(noted + [at for at in (found["sent_at"], found["called_at"]) if at is not None], default=None)


async def clear_contents(database: Pool, now: datetime, *, block: int = BLOCK) -> None:
    """Take `payload` and `templateVars` from messages of more than 12 months, except those still to be sent."""
    before = lowest_id(MESSAGE, months_before(now, CONTENT_MONTHS))
    for month in await _months(database):
        low, high = bounds_of(month["name"])
        if month["emptied"] or not month["attached"] or low >= before:
            continue
        kept = 0
        after = ("", "", "", "")
        statement = _of(month["name"], SQL.clear_content)
        while last := await database.fetchrow(statement, *after, before, block):
            *key, still = last
            after = tuple(key)
            kept += still
        if high <= before and not kept:
            await database.execute(_of(month["name"], SQL.remember_emptied))


async def drop_months(database: Pool, now: datetime, *, block: int = BLOCK) -> list[str]:
    """Drop the months of messages that ended more than 24 months ago; answers their tables.

    With them goes what finds their messages by a provider's ids. A month of which something has still to be sent stays.
    """
    before = lowest_id(MESSAGE, months_before(now, MESSAGES_MONTHS))
    dropped: list[str] = []
    for month in await _months(database):
        name = month["name"]
        low, high = bounds_of(name)
        if high > before or await database.fetchval(SQL.waiting, low, high):
            continue
        after = ("", "", "", "")
        while last := await database.fetchrow(_of(name, SQL.forget_provider_ids), *after, block):
            after = tuple(last)
        if month["attached"]:
            await _detach(database, name, half_detached=month["half_detached"])
        await database.execute(_of(name, SQL.drop))
        dropped.append(name)
    return dropped


async def purge_windows(database: Pool, now: datetime, *, block: int = BLOCK) -> None:
    """Remove the recipients that no tier counts any more, and the windows that are closed."""
    for statement in (SQL.tier_recipients, SQL.chat_windows):
        after = ("", "", 0)
        while last := await database.fetchrow(statement, *after, now - WINDOWS, block):
            after = tuple(last)


async def purge_reached(database: Pool, now: datetime, *, block: int = BLOCK) -> None:
    """Forget whom shared senders reached more than 30 days ago (C28.1)."""
    after: tuple[str, str, bytes, str] = ("", "", b"", "")
    while last := await database.fetchrow(SQL.reached_recipients, *after, now - REACHED, block):
        env, channel, address_hash, organization_id = last
        after = (env, channel, address_hash, organization_id)


async def purge_minutes(database: Pool, now: datetime, *, block: int = BLOCK) -> int:
    """Remove what numbers sent in the minutes of more than 24 months ago."""
    return await in_blocks(database, SQL.sender_minutes, months_before(now, MESSAGES_MONTHS), block=block)


async def purge_audit(database: Pool, organization_id: str, now: datetime, *, block: int = BLOCK) -> int:
    """Remove one organization's entries of more than five years ago."""
    before = lowest_id(AUDIT, months_before(now, AUDIT_MONTHS))
    return await in_blocks(database, SQL.audit, organization_id, before, block=block)


async def _months(database: Pool) -> list[asyncpg.Record]:
    return await database.fetch(SQL.months)


async def _detach(database: Pool, month: str, *, half_detached: bool) -> None:
    """Other months are read and written meanwhile; a detachment that was broken off is finished."""
    async with database.acquire() as connection:
        statement = SQL.finish_detaching if half_detached else SQL.detach
        # What was broken off goes on in the server until the order to stop reaches it: it may finish in between.
        with suppress(asyncpg.UndefinedTableError):
            await connection.execute(_of(month, statement), timeout=DETACH_LIMIT)


def _of(month: str, statement: str) -> str:
    return statement.replace("{month}", month)  # a name of the calendar: nothing in it needs quoting
