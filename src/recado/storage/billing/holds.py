"""Prices held in the statement that stores their messages, while the wallet keeps its status by it (C25.2).

What needs a look at the wallet first is held by `wallet.py`, in a transaction.
"""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

import asyncpg

from recado.storage.core.statements.sql import load

SQL = load("holds")

_REFUSED = "RC402"  # of `refuse_holds`


class HoldsRefused(Exception):
    """A wallet does not cover the batch, or would change its status by it; nothing was stored."""


def holding(statement: str, *, wanted: str, at: str) -> str:
    """A statement that holds the prices of its `queued`. `wanted`: its boolean parameter; `at`: the moment, in SQL."""
    held = SQL.held.replace("{wanted}", wanted).replace("{at}", at)
    return statement.replace("{held}", held).replace("{refused}", SQL.refused)


async def store(running: Awaitable[Sequence[Mapping[str, Any]]]) -> Sequence[Mapping[str, Any]]:
    """What a statement that holds answers; raises HoldsRefused."""
    try:
        return await running
    except asyncpg.PostgresError as error:
        if error.sqlstate == _REFUSED:
            raise HoldsRefused from None
        raise
