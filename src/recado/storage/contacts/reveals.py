"""How often an account has documents of contacts revealed to it (C12.4)."""

from datetime import datetime, timedelta

from recado.domain.core.errors import Problem
from recado.domain.core.ids import AUDIT, created_at, lowest_id
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load

SQL = load("reveals")

MOST = 60  # in any hour
PERIOD = timedelta(hours=1)


async def count(connection: Executor, organization_id: str, account_id: str, entry_id: str, now: datetime) -> None:
    """Count one reveal, whose entry in the audit has this id; raises RATE_LIMITED (429) after 60 in the hour before.

    To be run in the transaction that writes the entry.
    """
    await connection.execute(SQL.lock_account, organization_id, account_id)
    await connection.execute(SQL.forget_older, organization_id, account_id, lowest_id(AUDIT, now - PERIOD))
    newest = await connection.fetch(SQL.newest, organization_id, account_id, MOST)
    if len(newest) == MOST:
        left = (created_at(newest[-1]["id"]) + PERIOD - now).total_seconds()
        raise Problem(
            "RATE_LIMITED",
            f"An account can reveal documents at most {MOST} times an hour.",
            meta={"limit": MOST},
            headers={"Retry-After": str(max(1, -int(-left // 1)))},
        )
    await connection.execute(SQL.insert, organization_id, account_id, entry_id)
