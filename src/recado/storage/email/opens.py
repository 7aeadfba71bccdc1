"""When e-mails were opened first, and clicked in first (C10.2.9), in their rows; many in a statement."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.email.public_tokens import EmailKey
from recado.storage.core.statements.months import ALL_MONTHS, Months
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("opens")


@dataclass(frozen=True, slots=True)
class Opened:
    """An e-mail that was opened. `status`: as it is now; `fresh`: nobody opened it before."""

    status: str
    fresh: bool
    campaign_id: str | None


async def record(
    connection: Executor, moments: Mapping[EmailKey, Sequence[datetime]], *, months: Months = ALL_MONTHS
) -> dict[EmailKey, Opened]:
    """Record opens, in a transaction. `moments`: of each message, in order. Answers the messages that are there."""
    keys = {each.message_id: each for each in moments}
    rows = await months.fetch(connection, SQL.found, list(keys), *_columns(keys))
    new = {row["id"]: keys[row["id"]] for row in rows if row["fresh"]}
    fresh: set[str] = set()
    if new:
        ids, given = list(new), _columns(new)
        await months.fetch(connection, SQL.lock, ids, *given)
        first = [moments[each][0] for each in new.values()]
        fresh = {row["id"] for row in await months.fetch(connection, SQL.open, ids, *given, first)}
    return {keys[row["id"]]: Opened(row["status"], row["id"] in fresh, row["campaign_id"]) for row in rows}


async def note_clicks(connection: Executor, first: Mapping[EmailKey, datetime], *, months: Months = ALL_MONTHS) -> None:
    """When these e-mails were clicked in first, in a transaction."""
    if first:
        keys = {each.message_id: each for each in first}
        ids, given = list(keys), _columns(keys)
        await months.fetch(connection, SQL.lock, ids, *given)
        await months.fetch(connection, SQL.click, ids, *given, list(first.values()))


async def recipient(executor: Executor, key: EmailKey) -> str | None:
    """Whom an e-mail went to; None when it is past its time."""
    found: str | None = await executor.fetchval(SQL.recipient, *key)
    return found


def _columns(keys: Mapping[str, EmailKey]) -> list[list[str]]:
    return columns(list(keys.values()), 3)
