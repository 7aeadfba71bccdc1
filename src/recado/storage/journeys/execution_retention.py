"""Removes executions, with their trails, that ended more than 24 months ago (C32), in blocks.

What was counted of them stays, and so does the claim of the chain: who entered a journey once has entered it.
"""

from datetime import datetime
from typing import Final

from recado.domain.core.ids import EXECUTION, lowest_id
from recado.domain.core.retention import EXECUTIONS_MONTHS, months_before
from recado.storage.core.connections.pool import Pool
from recado.storage.core.statements.sql import load

SQL: Final = load("execution_retention")

_BLOCK: Final = 1_000


async def purge(database: Pool, organization_id: str, env: str, now: datetime, *, block: int = _BLOCK) -> None:
    """Those of one environment. One that is over moves no more, so that nobody is waited for."""
    ended_before = months_before(now, EXECUTIONS_MONTHS)
    before_id = lowest_id(EXECUTION, ended_before)
    where = (organization_id, env)
    for row in await database.fetch(SQL.journeys, *where, before_id):
        after = ""
        while last := await database.fetchval(
            SQL.purge, *where, row["journey_id"], after, before_id, ended_before, block
        ):
            after = last
