"""When e-mails were opened first, and clicked in first (C10.2.9), in their rows; many in a statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.email.public_tokens import EmailKey
from recado.storage.core.rows import Executor, columns
from recado.storage.core.sql import load

SQL = load("opens")


@dataclass(frozen=True, slots=True)
class Opened:
    """An e-mail that was opened. `status`: as it is now; `fresh`: nobody opened it before."""

    status: str
    fresh: bool
    campaign_id: str | None


async def record(connection: Executor, moments: Mapping[EmailKey, Sequence[datetime]]) -> dict[EmailKey, Opened]:
    """Record opens, in a transaction. `moments`: of each message, in order. Answers the messages that are there."""
    keys = {each.message_id: each for each in moments}
    rows = await connection.fetch(SQL.found, *_columns(keys))
    new = {row["id"]: keys[row["id"]] for row in rows if row["fresh"]}
    fresh: set[str] = set()
    if new:
        await connection.execute(SQL.lock, *_columns(new))
        first = [moments[each][0] for each in new.values()]
        fresh = {row["id"] for row in await connection.fetch(SQL.open, *_columns(new), first)}
    return {keys[row["id"]]: Opened(row["status"], row["id"] in fresh, row["campaign_id"]) for row in rows}


async def note_clicks(connection: Executor, first: Mapping[EmailKey, datetime]) -> None:
    """When these e-mails were clicked in first, in a transaction."""
    if first:
        given = _columns({each.message_id: each for each in first})
        await connection.execute(SQL.lock, *given)
        await connection.execute(SQL.click, *given, list(first.values()))


async def recipient(executor: Executor, key: EmailKey) -> str | None:
    """Whom an e-mail went to; None when it is past its time."""
    found: str | None = await executor.fetchval(SQL.recipient, *key)
    return found


def _columns(keys: Mapping[str, EmailKey]) -> list[list[str]]:
    return columns(list(keys.values()), 3)
