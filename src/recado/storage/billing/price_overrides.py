"""Prices that the administrator agreed with one organization: they stand before everybody's (C24.1, C25.3).

What was agreed before is ended, never deleted: which price was in force on a day can be told afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.domain.billing.prices import BR, INTL
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("price_overrides")


@dataclass(frozen=True, slots=True)
class Override:
    """The price of one kind. `coins`: in the region BR, by tier; None or empty: everybody's price holds there."""

    coins: Sequence[int] | None = None
    international_coins: int | None = None


async def in_force(executor: Executor, organization_id: str, at: datetime) -> dict[str, Override]:
    """The organization's own prices, by kind."""
    coins: dict[str, list[int]] = {}
    elsewhere: dict[str, int] = {}
    for row in await executor.fetch(SQL.in_force, organization_id, at):
        if row["region"] == BR:
            coins.setdefault(row["kind"], []).append(row["coins"])
        else:
            elsewhere[row["kind"]] = row["coins"]
    kinds = sorted(coins.keys() | elsewhere.keys())
    return {kind: Override(coins.get(kind), elsewhere.get(kind)) for kind in kinds}


async def replace_all(
    connection: Executor, organization_id: str, overrides: Mapping[str, Override], now: datetime
) -> None:
    """From now on these are the organization's own prices, and no others. The organization's row is locked."""
    rows = [
        (kind, BR, tier, coins)
        for kind, override in overrides.items()
        for tier, coins in enumerate(override.coins or (), 1)
    ]
    rows += [
        (kind, INTL, 1, override.international_coins)
        for kind, override in overrides.items()
        if override.international_coins is not None
    ]
    await connection.execute(SQL.end_all, organization_id, now)
    await connection.execute(SQL.insert, organization_id, now, *columns(rows, 4))
