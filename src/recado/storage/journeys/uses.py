"""What journeys use: kept from being deleted while one that is not archived does (C7.1, C11.1, C13.1, C14.1).

Who keeps a journey holds what it uses, in the same transaction; who deletes such a record has its row alone
(`for update`), and looks then. So one of both waits for the other, and sees what it did.
"""

from typing import Final

from recado.domain.core.errors import conflict
from recado.domain.journeys.uses import uses_of
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.journeys.journeys import Journey

SQL: Final = load("journeys")


async def hold_used(connection: Executor, journey: Journey) -> None:
    """Let nobody delete what the journey uses until this transaction ends. Before the organization is locked."""
    used = uses_of(journey.gatilho, journey.passos)
    if used:
        await connection.execute(SQL.hold_used, journey.organization_id, journey.env, used)


async def refuse_while_used(connection: Executor, organization_id: str, env: str, record_id: str) -> None:
    """Raises `Problem` RESOURCE_IN_USE while a journey that is not archived uses a record.

    It is so until the transaction ends when that has locked the record's row `for update` before.
    """
    users = [row["id"] for row in await connection.fetch(SQL.users_of, organization_id, env, record_id)]
    if users:
        detail = "A journey that is not archived uses it: give that journey another one, or archive it."
        raise conflict("RESOURCE_IN_USE", detail, journeyId=min(users))
